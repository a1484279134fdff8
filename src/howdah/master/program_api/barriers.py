"""Decides where programs wait for each other: who has arrived, who is missing, and which rounds are over. The module is
pure.

A complete round is written to the journal before any task may go on, so that the others may go on under a master that
takes over. A process that waits repeats its arrival, so that arrivals need no journal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import field

from howdah.errors import Conflict, LimitExceeded
from howdah.master.broadcast import Broadcast
from howdah.master.program_api.kv_store import Owner
from howdah.spec import TaskId
from howdah.spec.values import dataclass

MAX_OPEN = 10_000


@dataclass(frozen=True)
class BarrierName:
    """A round of a barrier."""

    name: str
    """The barrier's name."""
    scope: int
    """The oldest epoch among the tasks of the barrier. When all of them restart it changes, and the rounds begin anew;
    when one task restarts alone it stays, and the task catches up with its peers."""
    round: int
    """The number of the round."""


@dataclass
class BarrierRound:
    """A round that is not over."""

    count: int | None
    """How many processes the round needs; None when it needs tasks."""
    needed: frozenset[TaskId]
    """The tasks that the round needs."""
    missing: set[TaskId] = field(default_factory=set)
    """The tasks that the round needs and that have not arrived."""
    arrived: dict[str, Owner] = field(default_factory=dict)
    """The owner of each process that has arrived, by process."""
    unreachable_reason: str = ""
    """Why the round can never be complete; "" while it can."""
    broadcast: Broadcast = field(default_factory=Broadcast)
    """Wakes those who wait."""

    @property
    def complete(self) -> bool:
        """Return whether everybody has arrived."""
        return len(self.arrived) >= self.count if self.count is not None else not self.missing

    @property
    def missing_text(self) -> str:
        """Return a sentence that says which tasks are missing."""
        if self.count is not None:
            return f"{len(self.arrived)} of {self.count} have come"
        names = ", ".join(map(str, sorted(self.missing)[:5])) + (", …" if len(self.missing) > 5 else "")
        return f"{len(self.needed) - len(self.missing)} of {len(self.needed)} have come; missing: {names}"


class Barriers:
    """Holds the barriers of a job. `over` is the highest complete round by name and scope."""

    def __init__(self, journal: Callable[[str], None]) -> None:
        self.journal = journal
        self.completed: dict[tuple[str, int], int] = {}
        self._open: dict[BarrierName, BarrierRound] = {}

    def passed(self, name: BarrierName) -> bool:
        """Return whether this round is over."""
        return self.completed.get((name.name, name.scope), 0) >= name.round

    def arrive(
        self, name: BarrierName, who: str, owner: Owner, count: int | None, needed: frozenset[TaskId]
    ) -> BarrierRound:
        """Note that a process has arrived, perhaps again; with the last one the round is over.

        Raises:
            LimitExceeded: the job has too many barriers.
            Conflict: others wait there with another count or other roles.
        """
        round = self._open.get(name)
        if round is None:
            if len(self._open) >= MAX_OPEN:
                raise LimitExceeded(f"barrier {name.name!r}: the job has {MAX_OPEN} barriers at which tasks wait")
            round = self._open[name] = BarrierRound(count, needed, set(needed))
        if (round.count, round.needed) != (count, needed):
            raise Conflict(f"barrier {name.name!r}: others wait there with another count or other roles")
        round.arrived[who] = owner
        round.missing.discard(owner.task)
        if round.complete:
            del self._open[name]
            self.completed[name.name, name.scope] = max(name.round, self.completed.get((name.name, name.scope), 0))
            self.journal(self._line(name.name, name.scope))
            round.broadcast.notify_all()
        return round

    def withdraw(self, name: BarrierName, who: str) -> None:
        """Note that a process does not wait any more."""
        round = self._open.get(name)
        if round is not None and who in round.arrived:
            self._leave(name, round, who)

    def forget(self, alive: Callable[[Owner], bool]) -> None:
        """Remove the processes that are not `alive`."""
        for name, round in list(self._open.items()):
            for who in [who for who, owner in round.arrived.items() if not alive(owner)]:
                self._leave(name, round, who)

    def ended(self, task: TaskId, why: str) -> None:
        """Note that this task will never arrive."""
        for round in self._open.values():
            if task in round.missing:
                round.unreachable_reason = f"{task} will not come: {why}"
                round.broadcast.notify_all()

    def restore(self, lines: Iterable[str]) -> None:
        """Restore the rounds that were over under an earlier master."""
        for line in lines:
            try:
                record = json.loads(line)
                if "over" in record:
                    self.completed[str(record["over"]), int(record["scope"])] = int(record["round"])
            except (ValueError, TypeError, KeyError):
                continue

    def lines(self) -> list[str]:
        """Return all that `restore` needs."""
        return [self._line(name, scope) for name, scope in self.completed]

    def prune(self, oldest: int) -> None:
        """Forget rounds of epochs before `oldest`, in which no task is any more."""
        self.completed = {key: round for key, round in self.completed.items() if key[1] >= oldest}

    def _leave(self, name: BarrierName, round: BarrierRound, who: str) -> None:
        owner = round.arrived.pop(who)
        if owner.task in round.needed and not any(one.task == owner.task for one in round.arrived.values()):
            round.missing.add(owner.task)
        if not round.arrived:
            del self._open[name]

    def _line(self, name: str, scope: int) -> str:
        record = {"over": name, "scope": scope, "round": self.completed[name, scope]}
        return json.dumps(record, separators=(",", ":")) + "\n"
