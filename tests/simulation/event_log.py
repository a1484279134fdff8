"""Simulates a job's directory on a file system with outages, and each master's copy of the event log there.

The real `AppendedFile`, or `SegmentedFile` (object_store.py), decides which master owns the log. This module has only
the file system below it, and the work of `Journal` around it in real time.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from executors import Broken

from howdah.errors import EngineUnavailable, HowdahError, StagingError
from howdah.master.owned_file import AppendedFile, OwnedFile
from howdah.spec import event_lines
from howdah.spec.events import Event
from howdah.storage.begun_files import BEGUN_LOG, EMPTY_LINE

if TYPE_CHECKING:
    from cluster import Simulation

URI = "simulated://job-1/events.jsonl"
BEGUN = f"simulated://job-1/{BEGUN_LOG}"


@dataclass(eq=False)
class Files:
    """One file, which the submitter has begun. `writer` is the number of the master that owns it: the one that claimed
    it last, or wrote its first line."""

    sim: Simulation
    away: bool = False
    content: bytes = b""
    begun: bool = True
    """The file still has the name that the submitter gave it."""
    writer: int = 0
    replaced_at: float = 0.0
    """When a master last made the file its own."""
    failed_at: float = -1.0
    """When a request last got no answer. A master that fails tries only once to write its end."""

    def own(self, writer: int) -> None:
        self.writer, self.replaced_at = writer, self.sim.now

    def owned_file(self) -> OwnedFile:
        return AppendedFile(URI, "event log", self, BEGUN)  # type: ignore[arg-type]

    def _reach(self) -> None:
        if self.away:
            raise EngineUnavailable("the NameNode does not answer")

    def stat(self, _: str) -> Any:
        self._reach()
        return SimpleNamespace(size=len(self.content)) if self.content else None

    def read_bytes(self, _: str) -> bytes:
        self._reach()
        return self.content

    def rename(self, _: str, __: str) -> None:
        self._reach()
        if not self.begun or self.content:
            raise StagingError("renamed already")
        self.content, self.begun = EMPTY_LINE, False

    def append(self, _: str, data: bytes) -> None:
        self._reach()
        self.content += data

    def write_bytes(self, _: str, content: bytes, mode: int) -> None:
        self._reach()
        if not content.startswith(self.content.rstrip(b"\n")):
            raise Broken("lines of the log are lost when it is claimed")
        self.content = content

    def recover_lease(self, _: str) -> None:
        self._reach()

    def ignore_others(self, owned: OwnedFile) -> None:
        """Let a master treat another master's lines as its own."""
        owned.known = len(self.content)

    def tear(self, log: Log, whole: int, part: float) -> bool:
        """Write `whole` of the pending lines, and a part of the next, unless another master has written; return whether
        this was done."""
        if self.writer not in (0, log.number) or log.owned.known != len(self.content):
            return False
        if self.begun and not self.content:
            self.rename(BEGUN, URI)
        line = log.pending[whole]
        self.content += "".join((*log.pending[:whole], line[: int(part * len(line))])).encode()
        return True

    @property
    def lines(self) -> list[str]:
        return self.content.decode().splitlines(keepends=True)


@dataclass(eq=False)
class Log:
    """The master `number`'s copy of the event log in memory, and its hold on the file. `exclusive` is False for a
    master that does not check whether another one writes the file."""

    files: Files
    number: int
    exclusive: bool = True
    pending: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.owned = self.files.owned_file()

    def read(self) -> list[str]:
        """Return the lines of the previous master; end a line that was cut short when that master was killed.

        Raises:
            EngineUnavailable: the file system is away.
        """
        text = self.owned.read().decode()
        self.pending = ["\n"] if text and not text.endswith("\n") else []
        return text.splitlines()

    def claim(self, lines: list[str], line: str) -> None:
        """Make the file this master's alone, with `line` at its end.

        Raises:
            LogChanged: the master before this one has written to it meanwhile.
            EngineUnavailable: the file system is away.
        """
        self.owned.claim("".join(f"{each}\n" for each in lines).encode(), line.encode())
        self.pending = []
        self.files.own(self.number)

    def write(self, event: Event) -> None:
        self.pending.append(event_lines.to_line(event))

    def flush(self) -> bool:
        """Return whether all lines are in the file.

        Raises:
            LogOwnerChanged: another master writes it.
        """
        if self.pending:
            try:
                if not self.exclusive:
                    self.files.ignore_others(self.owned)
                self.owned.append("".join(self.pending).encode())
            except EngineUnavailable:
                return False
            self.pending = []
            with contextlib.suppress(HowdahError):
                self.owned.merge()
            if self.files.writer < self.number:
                self.files.own(self.number)
            if self.files.writer != self.number:
                raise Broken(f"masters {self.files.writer} and {self.number} write the log")
        return True

    def confirm(self) -> bool:
        """Return whether all lines are in the file, and none of another master; False if this is unknown.

        Raises:
            LogOwnerChanged: another master writes it.
        """
        if not self.flush():
            return False
        try:
            if self.exclusive:
                self.owned.check()
        except EngineUnavailable:
            return False
        return True

    def tear(self, whole: int, part: float) -> None:
        """The master dies while it appends: `whole` lines are there, and a part of the next."""
        if not self.files.away and self.files.tear(self, whole, part) and self.files.writer < self.number:
            self.files.own(self.number)
