"""Simulates a job's directory on an object store that loses answers, and carries out requests late or never."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from event_log import URI, Files, Log
from executors import Broken

from howdah.errors import EngineUnavailable, StagingError
from howdah.master.owned_file import OwnedFile, SegmentedFile
from howdah.storage.filesystem import Entry
from howdah.storage.segmented_log import find_log, segment_uri

if TYPE_CHECKING:
    from cluster import Simulation

LOST, LATE, LATE_S = 0.03, 0.03, 20.0
"""The share of write requests that are carried out although their answer is lost, the share of those carried out late,
and the longest delay in seconds."""


class SmallBlocks(SegmentedFile):
    """Merges early: a simulated job has a hundred segments."""

    block = 4


class Store:
    """Holds objects by URI. Nothing fails."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def appends_cheaply(self, _: str) -> bool:
        return False

    def exists(self, _: str) -> bool:
        return True

    def stat(self, uri: str) -> Entry | None:
        return Entry(uri, len(self.objects[uri]), 0) if uri in self.objects else None

    def children(self, _: str) -> list[Entry]:
        return [Entry(uri, len(data), 0) for uri, data in sorted(self.objects.items())]

    def read_bytes(self, uri: str) -> bytes:
        if uri not in self.objects:
            raise StagingError(f"{uri}: no such object")
        return self.objects[uri]

    def create_new(self, uri: str, data: bytes) -> bool:
        if uri in self.objects:
            return False
        self.objects[uri] = data
        return True

    def write_bytes(self, uri: str, data: bytes, mode: int) -> None:
        self.objects[uri] = data

    def delete_files(self, gone: Sequence[str]) -> None:
        for uri in gone:
            self.objects.pop(uri, None)


@dataclass(eq=False)
class Objects(Files):
    """The event log in segments."""

    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"requests {self.sim.seed}")

    def owned_file(self) -> OwnedFile:
        return SmallBlocks(URI, "event log", self)  # type: ignore[arg-type]

    def _reach(self) -> None:
        if self.away:
            raise EngineUnavailable("the object store does not answer")

    def appends_cheaply(self, uri: str) -> bool:
        return False

    def stat(self, uri: str) -> Entry | None:
        self._reach()
        return self.store.stat(uri)

    def exists(self, uri: str) -> bool:
        self._reach()
        return True

    def children(self, directory: str) -> list[Entry]:
        self._reach()
        return self.store.children(directory)

    def read_bytes(self, uri: str) -> bytes:
        self._reach()
        return self.store.read_bytes(uri)

    def create_new(self, uri: str, data: bytes) -> bool:
        return bool(self._request(lambda: self.store.create_new(uri, data), "a segment"))

    def write_bytes(self, uri: str, data: bytes, mode: int) -> None:
        self._request(lambda: self.store.write_bytes(uri, data, mode), "a merged file")

    def delete_files(self, gone: Sequence[str]) -> None:
        self._request(lambda: self.store.delete_files(gone), "a removal")

    def _request(self, act: Callable[[], object], what: str) -> object:
        self._reach()
        dice = 1.0 if self.sim.calm else self.chance.random()
        if dice < LOST + LATE:
            self.failed_at = self.sim.now
        if dice < LOST:
            self._carry_out(act)
            self.sim.seen[f"{what}: its answer is lost"] += 1
            raise EngineUnavailable("the answer of the object store is lost")
        if dice < LOST + LATE:
            self.sim.later(self.chance.uniform(0, LATE_S), lambda: self._carry_out(act))
            self.sim.seen[f"{what} is written late"] += 1
            raise EngineUnavailable("the object store does not answer in time")
        return self._carry_out(act)

    def _carry_out(self, act: Callable[[], object]) -> object:
        """Carry out a request. It must lose no line, even if segments are merged or removed meanwhile."""
        answer = act()
        try:
            log = find_log(self.store, URI)  # type: ignore[arg-type]
        except StagingError as error:
            raise Broken(f"the log can't be read: {error}") from error
        content = log.read() if log is not None else b""
        if not content.startswith(self.content):
            raise Broken("lines of the log are lost")
        self.content = content
        return answer

    def ignore_others(self, owned: OwnedFile) -> None:
        assert isinstance(owned, SegmentedFile)
        log = find_log(self.store, URI)  # type: ignore[arg-type]
        owned.last = log.last if log is not None else -1

    def tear(self, log: Log, whole: int, part: float) -> bool:
        """Write all lines or none: a segment is one request, which may end after the master."""
        assert isinstance(log.owned, SegmentedFile)
        uri, data = segment_uri(URI, log.owned.last + 1), "".join(log.pending).encode()
        if part < 0.3:
            self.sim.later(LATE_S * part, lambda: self._carry_out(lambda: self.store.create_new(uri, data)))
        return part > 0.6 and bool(self._carry_out(lambda: self.store.create_new(uri, data)))


def files_of(simulation: Simulation, objects: bool) -> Files:
    """Return the job's directory."""
    return Objects(simulation) if objects else Files(simulation)
