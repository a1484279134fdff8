"""Handles the calls of programs (`howdah.program`): values, barriers, metrics, snapshots.

Only the program that runs now is answered: one of an older epoch or attempt is refused. A change is answered once it is
in the journal, so that a master that takes over knows of it. A call that waits is woken by what it waits for.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from howdah.errors import Conflict, HowdahError, InvalidRequest, LimitExceeded, NoLongerThere, NotFound, NotReady
from howdah.master.broadcast import Broadcast
from howdah.master.decisions.heartbeat_timeouts import LEASE_S
from howdah.master.journal import Journal
from howdah.master.program_api.barriers import BarrierName, BarrierRound, Barriers
from howdah.master.program_api.kv_store import KeyValueEntry, KeyValueStore, Owner, Value
from howdah.master.program_api.metrics import MetricThinning
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import GangState, TaskState
from howdah.spec import State, TaskId, events
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.wire import program_protocol as wire

EXPIRE_S = 0.5
"""Seconds between two searches for values whose time is over."""
GATHER_S = 0.05
"""Seconds by which the answer to a call that watches a prefix is delayed, so that a thousand changes are not reported
one by one."""
PAGE = 2 << 20
"""The approximate limit, in bytes, of the values in one answer to a watcher."""
COMPACT_FROM = 8 << 20
"""The journal is rewritten when it has this many bytes more than three times what is stored, so rarely."""
_PASSING = (events.Ended, events.GangRestarted, events.GangReleased, events.Launched, events.WorldFormed)
_COPIES = (events.SaveDone, events.SaveFailed)

Message = Mapping[str, Any]


class ProgramApi:
    """Answers the programs of one job. `directory` is the URI of the job's directory; `apply` hands an event to `step`,
    `append` writes one to the event log."""

    def __init__(
        self,
        state: GangState,
        directory: str,
        view: JobView,
        apply: Callable[[events.Event], None],
        append: Callable[[events.Event], None],
    ) -> None:
        self.state, self.view, self.apply, self.append = state, view, apply, append
        self.journal = Journal(f"{directory.rstrip('/')}/here.jsonl", "values of the programs")
        self.store, self.barriers = KeyValueStore(self.journal.write), Barriers(self.journal.write)
        self.metrics = MetricThinning()
        self._keys, self._prefixes, self._snapshot_ended = _KeyedBroadcast(), _KeyedBroadcast(), Broadcast()
        self._needs: dict[tuple[int, tuple[str, ...] | None], tuple[frozenset[TaskId], int]] = {}
        self._name = f"{time.time():.6f}"
        self._calls: dict[str, Callable[[TaskState, Owner, Message], Awaitable[Any]]] = {
            "world": self._world,
            "put": self._put,
            "get": self._get,
            "keys": self._list,
            "delete": self._delete,
            "swap": self._compare_and_set,
            "watch": self._watch,
            "barrier": self._barrier,
            "withdraw": self._withdraw,
            "metrics": self._metrics,
            "save": self._save,
            "saved": self._wait_for_snapshots,
        }

    async def answer(self, principal: str, call: str, body: bytes) -> Any:
        """Return the answer to the program that signed as `principal`.

        Raises:
            RequestRefused: the call is not answered; the message says why.
            ValueError, TypeError, KeyError: the message is malformed.
        """
        owner = _owner(principal)
        task = self._running_task(owner)
        if call not in self._calls:
            raise NotFound(f"no call here.{call}")
        message = json.loads(body)
        if not isinstance(message, dict):
            raise ValueError("the body must be a JSON object")
        return await self._calls[call](task, owner, message)

    def observe(self, event: events.Event) -> None:
        """Apply a recorded event: end the waits, values and barrier arrivals of programs that it ends."""
        if isinstance(event, _COPIES):
            self._snapshot_ended.notify_all()
        elif isinstance(event, events.TimeLost):
            self.store.shift_deadlines(lambda deadline: deadline + event.seconds)
        elif isinstance(event, _PASSING):
            self._needs.clear()
            task = event.task if isinstance(event, (events.Ended, events.Launched)) else None
            self._drop_values_of_ended(self.store.owners(task))
            self.barriers.forget(self._is_alive)
            if isinstance(event, events.Ended):
                self._note_end(event)
            elif isinstance(event, events.GangRestarted):
                members = (task for task in self.state.tasks.values() if self.state.takes_part(task.id))
                self.barriers.prune(min(task.epoch for task in members))

    async def restore(self, log: Iterable[events.Event]) -> None:
        """Continue where an earlier master was killed. `state` is that of its last moment already.

        Raises:
            StagingError, EngineUnavailable: the journal cannot be read.
        """
        lines = await self.journal.take_over(lambda: "\n")
        self.store.restore(lines)
        spared = time.time() + LEASE_S  # programs may search for this master until then
        self.store.shift_deadlines(lambda deadline: max(deadline, spared))
        self.barriers.restore(lines)
        for event in log:
            if isinstance(event, events.Measured):
                self.metrics.restore(event)
        self._drop_values_of_ended(self.store.owners())

    async def expire_forever(self) -> None:
        """Expire values and compact the journal, until cancelled."""
        while True:
            await asyncio.sleep(EXPIRE_S)
            self._notify(self.store.expire(time.time()))
            if self.journal.size > COMPACT_FROM + 3 * self.store.bytes:
                await self._compact()

    def discard(self) -> None:
        """Remove the journal, because the job is over."""
        try:
            if self.journal.size:
                self.journal.remove()
        except HowdahError as error:
            print(f"{self.journal.uri} can't be removed: {error}", file=sys.stderr, flush=True)

    # Owners: programs that run, and programs that have ended

    def _running_task(self, owner: Owner) -> TaskState:
        task = self.state.tasks.get(owner.task)
        if task is not None and owner.epoch > task.epoch and owner.attempt >= task.attempt:
            raise NotReady(f"{owner.task} is not known in formation {owner.epoch} yet")
        if task is None or not self._is_alive(owner):
            raise NoLongerThere(
                f"{owner.task} of formation {owner.epoch} (attempt {owner.attempt}) is over: {_present_state(task)}"
            )
        return task

    def _is_alive(self, owner: Owner) -> bool:
        return self._is_current(owner) and self.state.tasks[owner.task].live

    def _is_current(self, owner: Owner) -> bool:
        task = self.state.tasks[owner.task]
        return (task.attempt, task.epoch) == (owner.attempt, owner.epoch)

    def _drop_values_of_ended(self, owners: Iterable[Owner]) -> None:
        gone = [owner for owner in owners if not self._is_alive(owner)]
        self._notify(self.store.drop_owned_by(gone, ended=self._is_current))

    def _note_end(self, event: events.Ended) -> None:
        task = self.state.tasks[event.task]
        for point in self.metrics.end(task.id):
            self.append(point)
        if self._will_not_come(task):
            self.barriers.ended(task.id, str(task.exit))

    def _will_not_come(self, task: TaskState) -> bool:
        """Return whether the task's program has ended in this formation and the job goes on without it. A task that is
        to start again has no recorded end."""
        return task.exit is not None and (task.exit.ok or self.state.open)

    async def _world(self, task: TaskState, _: Owner, message: Message) -> Any:
        if task.world is None:
            raise NotReady(f"the world of {task.id} has not formed")
        roles: dict[str, list[Any]] = {}
        for member in task.world.members:
            peer = self.state.tasks[member.task]
            address = peer if message.get("now") and peer.ports else member
            record = {"index": member.task.index, "host": address.host, "ports": dict(address.ports)}
            roles.setdefault(member.task.role, []).append(record)
        return {"epoch": task.world.epoch, "roles": roles}

    # Values

    async def _put(self, _: TaskState, owner: Owner, message: Message) -> Any:
        self._notify(self._set(owner, message, _value(message)))
        await self._confirm_written()
        return {}

    def _set(self, owner: Owner, message: Message, value: Value) -> tuple[str, ...]:
        life, ttl = str(message["life"]), message.get("ttl")
        if life not in wire.LIVES:
            raise InvalidRequest(f"life={life!r}: must be one of {', '.join(wire.LIVES)}")
        deadline = time.time() + float(ttl) if ttl else 0.0
        return self.store.put(str(message["key"]), value, owner, life, deadline, str(message["op"]))

    async def _get(self, _: TaskState, __: Owner, message: Message) -> Any:
        key, until = str(message["key"]), _wait_deadline(message)
        while (entry := self.store.get(key)) is None and await self._keys.wait_until(key, until):
            pass
        return {"done": entry is not None, **(_entry_record(entry) if entry else {})}

    async def _list(self, _: TaskState, __: Owner, message: Message) -> Any:
        return {"keys": self.store.keys(str(message["prefix"]))}

    async def _delete(self, _: TaskState, __: Owner, message: Message) -> Any:
        gone = self.store.remove(str(message["key"]))
        self._notify(gone)
        await self._confirm_written()
        return {"done": bool(gone)}

    async def _compare_and_set(self, _: TaskState, owner: Owner, message: Message) -> Any:
        key, op = str(message["key"]), str(message["op"])
        expected, new = (_value(message[name]) if message[name] else None for name in ("expected", "new"))
        known = self.store.get(key)
        done = known is not None and known.op == op  # a repeated request whose answer was lost
        if not done and (known.value if known else None) == expected:
            done = True
            self._notify(self.store.remove(key) if new is None else self._set(owner, message, new))
        await self._confirm_written()
        return {"done": done}

    async def _watch(self, _: TaskState, __: Owner, message: Message) -> Any:
        prefix, seen = str(message["prefix"]), message["since"]
        same = seen["master"] == self._name
        since, until = int(seen["revision"]) if same else 0, _wait_deadline(message)
        while same and not self.store.has_changed(prefix, since) and await self._prefixes.wait_until(prefix, until):
            pass
        entries, size, upto = [], 0, self.store.revision
        for key, entry in self.store.newer(prefix, since):
            entries.append({"key": key, "revision": entry.revision, **_entry_record(entry)})
            size += entry.value.size
            if size > PAGE:
                upto = entry.revision
                break
        names = self.store.keys(prefix) if not same or self.store.removed_at > since else None
        return {"since": {"master": self._name, "revision": upto}, "entries": entries, "names": names}

    def _notify(self, keys: tuple[str, ...]) -> None:
        if keys:
            for key in keys:
                self._keys.notify_all(key)
            for prefix in self._prefixes.names():
                if any(key.startswith(prefix) for key in keys):
                    asyncio.get_running_loop().call_later(GATHER_S, self._prefixes.notify_all, prefix)

    async def _confirm_written(self) -> None:
        if not await self.journal.flush() and not self.journal.is_local:  # a full disk here ends no program
            raise NotReady(f"{self.journal.uri} can't be written at the moment")

    async def _compact(self) -> None:
        try:
            await self.journal.replace([*self.store.lines(), *self.barriers.lines()])
        except HowdahError as error:
            print(f"{self.journal.what}: {error}; tried again later", file=sys.stderr, flush=True)
            await asyncio.sleep(60.0)

    # Barriers

    async def _barrier(self, task: TaskState, owner: Owner, message: Message) -> Any:
        name, count, needed = self._barrier_round(task, message)
        until = _wait_deadline(message)
        if not self.barriers.passed(name):
            round = self.barriers.arrive(name, str(message["who"]), owner, count, needed)
            self._check_already_ended(round)
            while not (round.complete or round.unreachable_reason) and await round.broadcast.wait_until(until):
                pass
            self._running_task(owner)
            if round.unreachable_reason and not round.complete:
                raise Conflict(f"barrier {name.name!r}: {round.unreachable_reason}")
            if not round.complete:
                return {"done": False, "lacking": round.missing_text}
        await self._confirm_written()
        return {"done": True}

    async def _withdraw(self, task: TaskState, _: Owner, message: Message) -> Any:
        name = self._barrier_round(task, message)[0]
        self.barriers.withdraw(name, str(message["who"]))
        return {"done": self.barriers.passed(name)}

    def _barrier_round(self, task: TaskState, message: Message) -> tuple[BarrierName, int | None, frozenset[TaskId]]:
        count, roles = message.get("count"), message.get("roles")
        if count is not None and (not isinstance(count, int) or count < 1):
            raise InvalidRequest(f"count={count!r}: must be a number of processes")
        needed, scope = self._needed_tasks(task, None if roles is None else tuple(map(str, roles)))
        name = BarrierName(str(message["name"]), scope, int(message["round"]))
        return (name, count, frozenset()) if count is not None else (name, None, needed)

    def _needed_tasks(self, task: TaskState, roles: tuple[str, ...] | None) -> tuple[frozenset[TaskId], int]:
        """Return the tasks that a round needs and its scope; computed once, since a thousand processes ask at the same
        time."""
        if (task.epoch, roles) not in self._needs:
            if task.world is None:
                raise NotReady(f"the world of {task.id} has not formed")
            members = [member.task for member in task.world.members]
            unknown = set(roles or ()) - {member.role for member in members}
            if unknown:
                known = ", ".join(dict.fromkeys(member.role for member in members))
                raise InvalidRequest(f"roles={sorted(unknown)}: the roles of this world are {known}")
            needed = frozenset(member for member in members if roles is None or member.role in roles)
            self._needs[task.epoch, roles] = needed, min(self.state.tasks[each].epoch for each in needed)
        return self._needs[task.epoch, roles]

    def _check_already_ended(self, round: BarrierRound) -> None:
        """Find for the first process that arrives a task that has ended already; later ends are noted as they come."""
        if len(round.arrived) == 1 and not round.unreachable_reason:
            ended = (self.state.tasks[task] for task in sorted(round.missing))
            gone = next(filter(self._will_not_come, ended), None)
            round.unreachable_reason = f"{gone.id} will not come: {gone.exit}" if gone else ""

    # Metrics and snapshots

    async def _metrics(self, task: TaskState, _: Owner, message: Message) -> Any:
        points = message["points"]
        if len(points) > wire.MAX_POINTS or any(len(str(point[0])) > wire.MAX_KEY for point in points):
            raise LimitExceeded(f"at most {wire.MAX_POINTS} points at once, with names of {wire.MAX_KEY} bytes")
        kept, problem = self.metrics.add(task.id, points)
        for point in kept:
            self.append(point)
        return {"problem": problem}

    async def _save(self, task: TaskState, _: Owner, __: Message) -> Any:
        if task.started != task.epoch:
            raise NotReady(f"the program of {task.id} has not been reported as running yet")
        if problem := snapshot_policy.explain_refusal(self.state, -1):
            raise Conflict(problem)
        self.apply(events.SaveRequested(time.time(), str(task.id)))
        outputs = snapshot_policy.wanted_outputs(self.state, -1)
        return {"saves": [[number, snapshot_policy.number_of(self.state, number)] for number in outputs]}

    async def _wait_for_snapshots(self, _: TaskState, __: Owner, message: Message) -> Any:
        numbers, until = set(map(int, message["numbers"])), _wait_deadline(message)
        while missing := numbers - {save.number for save in self.view.snapshots if save.state is not State.RUNNING}:
            if not await self._snapshot_ended.wait_until(until):
                return {
                    "done": False,
                    "lacking": f"{len(numbers) - len(missing)} of {len(numbers)} snapshots are there",
                }
        ended = (save for save in self.view.snapshots if save.state is not State.RUNNING and save.number in numbers)
        return {"done": True, "saves": [{"uri": save.uri, "reason": save.reason} for save in ended]}


@dataclass
class _KeyedBroadcast:
    """Keeps a Broadcast for each name that a call waits for."""

    _waiting: dict[str, tuple[Broadcast, list[None]]] = field(default_factory=dict)

    def names(self) -> list[str]:
        return list(self._waiting)

    def notify_all(self, name: str) -> None:
        if name in self._waiting:
            self._waiting[name][0].notify_all()

    async def wait_until(self, name: str, until: float) -> bool:
        """Wait for `notify_all` of `name`; return True if it came before `until` (loop time)."""
        broadcast, waiting = self._waiting.setdefault(name, (Broadcast(), []))
        waiting.append(None)
        try:
            return await broadcast.wait_until(until)
        finally:
            waiting.pop()
            if not waiting and self._waiting.get(name, (None,))[0] is broadcast:
                del self._waiting[name]


def _owner(principal: str) -> Owner:
    task, attempt, epoch = principal[len(wire.PROGRAM) :].split("/")
    return Owner(TaskId.parse(task), int(attempt), int(epoch))


def _present_state(task: TaskState | None) -> str:
    if task is None:
        return "the job has no such task"
    if task.exit is not None:
        return f"it has ended ({task.exit})"
    return f"now there is formation {task.epoch} (attempt {task.attempt})"


def _value(message: Message) -> Value:
    text, binary = message["value"], bool(message["binary"])
    if not isinstance(text, str) or (binary and not text.isascii()):
        raise InvalidRequest("a value is text, or base64")
    return Value(text, binary)


def _entry_record(entry: KeyValueEntry) -> dict[str, Any]:
    return {"value": entry.value.text, "binary": entry.value.binary}


def _wait_deadline(message: Message) -> float:
    return asyncio.get_running_loop().time() + max(0.0, min(float(message.get("wait", 0.0)), wire.MAX_WAIT_S))
