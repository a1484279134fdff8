"""Stores the values that the programs of a job share: the keys of `howdah.program`, and the programs that own them.

The module is pure: times and owners come with the calls, what must outlive this master goes to `journal` line by line,
and calls return the keys that have changed. Every change has a number, so that a watcher can ask for what is newer than
it knows.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from howdah.errors import InvalidRequest, LimitExceeded
from howdah.spec import TaskId
from howdah.spec.values import dataclass
from howdah.wire.program_protocol import MAX_KEY, MAX_TOTAL, MAX_VALUE

MAX_KEYS = 50_000
_NEXT_MASTER = 1 << 20


@dataclass(frozen=True)
class Owner:
    """One run of a task's program."""

    task: TaskId
    """The task."""
    attempt: int
    """The number of its attempt."""
    epoch: int
    """The epoch in which the program runs."""


@dataclass(frozen=True)
class Value:
    """The value of a key: a text, or bytes."""

    text: str
    """The value as text, or as base64."""
    binary: bool = False
    """True when the text is base64."""

    @property
    def size(self) -> int:
        """Return the number of bytes, as the program counts them."""
        if self.binary:
            return len(self.text) // 4 * 3 - self.text[-2:].count("=")
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class KeyValueEntry:
    """The value of a key, with the program that set it and how long it lasts."""

    value: Value
    """The value."""
    revision: int
    """The store's revision at the last change."""
    owner: Owner
    """The program that set it."""
    life: str
    """How long the value lasts: one of `howdah.wire.program_protocol.LIVES`."""
    deadline: float = 0.0
    """When the value expires, in epoch seconds; 0 for never."""
    op: str = ""
    """The number of the request that set the value, so that a request that is sent twice counts once."""


class KeyValueStore:
    """Holds keys and values in the order of their last change. `bytes` counts all names and values."""

    def __init__(self, journal: Callable[[str], None]) -> None:
        self.journal = journal
        self.revision = self.removed_at = self.bytes = 0
        self._entries: dict[str, KeyValueEntry] = {}
        self._owned: dict[Owner, set[str]] = {}
        self._deadlines: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> KeyValueEntry | None:
        """Return the key's present entry."""
        return self._entries.get(key)

    def keys(self, prefix: str) -> list[str]:
        """Return the names that begin with `prefix`, sorted."""
        return sorted(key for key in self._entries if key.startswith(prefix))

    def newer(self, prefix: str, since: int) -> Iterator[tuple[str, KeyValueEntry]]:
        """Return what changed after revision `since`, the oldest change first."""
        newest = itertools.takewhile(lambda item: item[1].revision > since, reversed(self._entries.items()))
        return reversed([(key, entry) for key, entry in newest if key.startswith(prefix)])

    def has_changed(self, prefix: str, since: int) -> bool:
        """Return whether a key that begins with `prefix`, or any removal, is newer than revision `since`."""
        return self.removed_at > since or any(True for _ in self.newer(prefix, since))

    def put(self, key: str, value: Value, owner: Owner, life: str, deadline: float, op: str) -> tuple[str, ...]:
        """Set a key. A change that was made before (the same `op`) is not made again.

        Raises:
            InvalidRequest: the key is empty or too long.
            LimitExceeded: a limit would be passed.
        """
        known = self._entries.get(key)
        if known is not None and known.op == op:
            return ()
        self._check(key, value, known)
        self._set(
            key, KeyValueEntry(value, revision=self.revision + 1, owner=owner, life=life, deadline=deadline, op=op)
        )
        self.journal(_line(put=key, **asdict(self._entries[key])))
        return (key,)

    def remove(self, *keys: str) -> tuple[str, ...]:
        """Remove the keys; return those that existed."""
        found = tuple(key for key in keys if self._pop(key) is not None)
        if found:
            self.revision += 1
            self.removed_at = self.revision
            self.journal(_line(removed=found, revision=self.revision))
        return found

    def drop_owned_by(self, owners: Iterable[Owner], ended: Callable[[Owner], bool]) -> tuple[str, ...]:
        """Remove what these owners kept alive; owners that merely `ended` leave values that live as long as their
        epoch."""
        gone = []
        for owner in list(owners):
            keys = self._owned.get(owner, ())
            spared = ("job", "epoch") if ended(owner) else ("job",)
            gone += [key for key in keys if self._entries[key].life not in spared]
        return self.remove(*gone)

    def owners(self, task: TaskId | None = None) -> list[Owner]:
        """Return who keeps a value alive: the owners of this task, or all."""
        return [owner for owner in self._owned if task in (None, owner.task)]

    def expire(self, now: float) -> tuple[str, ...]:
        """Remove the values whose deadline is over."""
        due = []
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, key = heapq.heappop(self._deadlines)
            entry = self._entries.get(key)
            if entry is not None and entry.deadline == deadline:
                due.append(key)
        return self.remove(*due)

    def shift_deadlines(self, moved: Callable[[float], float]) -> None:
        """Replace each deadline by what `moved` makes of it."""
        for key, entry in self._entries.items():
            if entry.deadline and (deadline := moved(entry.deadline)) != entry.deadline:
                self._entries[key] = replace(entry, deadline=deadline)
                heapq.heappush(self._deadlines, (deadline, key))
                self.journal(_line(put=key, **asdict(self._entries[key])))

    def restore(self, lines: Iterable[str]) -> None:
        """Restore the values of an earlier master; ignore a line that is cut short."""
        for line in lines:
            try:
                record = json.loads(line)
                self._replay(record)
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
        # A change that was not written down may have been seen under any number up to this one.
        self.revision += _NEXT_MASTER

    def lines(self) -> list[str]:
        """Return all that `restore` needs."""
        return [_line(put=key, **asdict(entry)) for key, entry in self._entries.items()]

    def _replay(self, record: dict[str, Any]) -> None:
        if "put" in record:
            owner = Owner(TaskId(**record["owner"]["task"]), record["owner"]["attempt"], record["owner"]["epoch"])
            fields = {name: record[name] for name in ("revision", "life", "deadline", "op")}
            self._set(record["put"], KeyValueEntry(Value(**record["value"]), owner=owner, **fields))
        elif "removed" in record:
            for key in record["removed"]:
                self._pop(key)
            self.revision = self.removed_at = max(self.revision, int(record["revision"]))

    def _set(self, key: str, entry: KeyValueEntry) -> None:
        self._pop(key)
        self._entries[key] = entry
        self.bytes += len(key.encode("utf-8", "surrogatepass")) + entry.value.size
        self.revision = max(self.revision, entry.revision)
        if entry.life != "job":
            self._owned.setdefault(entry.owner, set()).add(key)
        if entry.deadline:
            heapq.heappush(self._deadlines, (entry.deadline, key))

    def _pop(self, key: str) -> KeyValueEntry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= len(key.encode("utf-8", "surrogatepass")) + entry.value.size
            owned = self._owned.get(entry.owner, set())
            owned.discard(key)
            if not owned:
                self._owned.pop(entry.owner, None)
        return entry

    def _check(self, key: str, value: Value, known: KeyValueEntry | None) -> None:
        length = len(key.encode("utf-8", "surrogatepass"))
        if not 0 < length <= MAX_KEY:
            raise InvalidRequest(f"a key has 1 to {MAX_KEY} bytes, not {length}")
        if value.size > MAX_VALUE:
            raise LimitExceeded(f"{key!r}: {value.size} bytes; a value has at most {MAX_VALUE}")
        after = self.bytes + value.size + (length if known is None else -known.value.size)
        if after > MAX_TOTAL:
            raise LimitExceeded(f"{key!r}: no room: with it the job's keys would have {after} bytes, of {MAX_TOTAL}")
        if known is None and len(self._entries) >= MAX_KEYS:
            raise LimitExceeded(f"{key!r}: no room: the job has {MAX_KEYS} keys already")


def _line(**record: Any) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"
