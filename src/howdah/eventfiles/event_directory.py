"""Reads the event files in a directory and below it, and keeps their values; each request checks for changes.

The rule: of a changed file, the bytes after its last complete record are read; if a file was replaced, its whole run is
read anew. Errors are reported, and the values that were read before stay.
"""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice
from typing import Any

from howdah.errors import HowdahError
from howdah.eventfiles import parallel
from howdah.eventfiles.decoder import HEAD
from howdah.eventfiles.event_batch import Batch
from howdah.eventfiles.parallel import FilePart
from howdah.eventfiles.run_store import Run, points_per_scalar
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.files_of_owner import FilesOfOwner, files_of
from howdah.storage.filesystem import Entry, FileSystem

PAUSE_S = 1.0
"""The pause between two refreshes. After a slow refresh it is longer: refreshes take a tenth of the time."""
MAX_PAUSE_S = 60.0
FAILED_PAUSE_S = 5.0
MAX_FILES = 50_000
MAX_EVENT_FILES = 10_000
MAX_REPORTED = 50
_NAME_PART = "tfevents"


@dataclass
class EventFile:
    """Keeps how far an event file was read."""

    uri: str
    run: str
    offset: int = 0
    """The byte at which reading continues."""
    seen: tuple[int, int] = (-1, 0)
    """The size and the modification time when the file was last read."""
    head: bytes = b""
    """The file's first bytes, by which a replaced file is noticed."""
    warnings: list[str] = field(default_factory=list)
    failed: str = ""
    """Why the file could not be read; "" if it could."""


class EventDirectory:
    """Keeps the runs that were read below `uri`. Hold `lock` to access `runs`, which are named by their directory below
    `uri`, or "." for `uri` itself. `on_growth` is called, without the lock, after more was read. Only files of `owner`
    are read; "": all files."""

    def __init__(self, uri: str, on_growth: Callable[[], object] = int, owner: str = "") -> None:
        self.uri, self.owner, self._on_growth = uri, owner, on_growth
        self.lock = threading.Lock()
        self.runs: dict[str, Run] = {}
        self.version = 0
        self.complete = False
        self.used_at = time.monotonic()
        self._files: dict[str, EventFile] = {}
        self._failed: list[str] = []
        self._not_flushed = ""
        self._refreshed = threading.Condition()
        self._busy, self._next = False, 0.0
        self.halvings, self.full, self._closed = 0, False, False

    def refresh(self, limit_s: float) -> None:
        """Read changed files, unless that was done just now. Wait for it at most `limit_s`; reading then continues."""
        self.used_at = time.monotonic()
        with self._refreshed:
            if not self._busy and time.monotonic() >= self._next:
                self._busy = True
                threading.Thread(target=self._refresh_and_notify, daemon=True, name="refresh").start()
            self._refreshed.wait_for(lambda: not self._busy, limit_s)

    def errors(self) -> list[dict[str, Any]]:
        """Return the errors of reading and the values left out: file or directory, text, whether memory was short."""
        of_memory: list[str] = []
        if self.halvings:
            text = f"there is no memory for all of it: of each tag about one step in {2**self.halvings} is kept"
            of_memory.append(text + (", and no further tags" if self.full else ""))
        left_out = sum(run.left_out for run in self.runs.values())
        if left_out:
            of_memory.append(f"{left_out} values of more tags than can be kept are left out")
        found = [(self.uri, text) for text in self._failed]
        if self._not_flushed:
            found.append((self.uri, f"an open event file is shown when it is closed: {self._not_flushed}"))
        for file in list(self._files.values()):
            name = uris.below(file.uri, self.uri) or uris.name(file.uri)
            found += [(name, text) for text in (*file.warnings, file.failed) if text]
        errors = [{"file": self.uri, "text": text, "memory": True} for text in of_memory]
        return [*errors, *({"file": file, "text": text, "memory": False} for file, text in found)][:MAX_REPORTED]

    @property
    def points(self) -> int:
        """Return how many points of scalars are in memory."""
        with self.lock:
            return sum(run.points for run in self.runs.values())

    @property
    def size(self) -> int:
        """Return the bytes in memory that grow with the values that are read."""
        with self.lock:
            return sum(run.size for run in self.runs.values())

    def halve(self) -> None:
        """Keep half of everything; if this frees little, accept no further tags."""
        before = self.size
        with self.lock:
            for run in self.runs.values():
                run.halve()
            self.halvings, self.version = self.halvings + 1, self.version + 1
        self.full = self.size > 0.9 * before

    def close(self) -> None:
        """Remove all runs, and ignore the values of a read that is still running."""
        with self.lock:
            self._closed = True
            self.runs.clear()

    def _refresh_and_notify(self) -> None:
        try:
            self._refresh(time.monotonic())
        except HowdahError as error:
            self._failed = [str(error)]
        except Exception as error:  # of a library, or a bug: the answer to the request says so
            self._failed = [f"{type(error).__name__}: {error}"]
        finally:
            with self._refreshed:
                self._busy = False
                self._refreshed.notify_all()

    def _refresh(self, start: float) -> None:
        fs = files_of(self.owner, self.uri)
        if not fs.exists(self.uri):  # a program that has not begun to write
            self._failed = ["it is not there any more"] if self._files else []
            self.complete, self._next = True, start + PAUSE_S
            return
        try:
            entries, is_all = self._list_files(fs)
        finally:
            pause = min(MAX_PAUSE_S, max(PAUSE_S, 10 * (time.monotonic() - start)))
            self._next = time.monotonic() + pause
        self._failed = [] if is_all else [f"more than {MAX_FILES} files here: not all were looked at"]
        if isinstance(fs, FilesOfOwner) and fs.others:
            self._failed.append(fs.why_incomplete())
        parts = list(self._changed_parts(fs, entries))
        if parts:
            self._read(parts, {entry.uri: (entry.size, entry.modified_ms) for entry in entries})
        self.complete = is_all and not any(file.failed for file in self._files.values())

    def _list_files(self, fs: FileSystem) -> tuple[list[Entry], bool]:
        """Return the event files in the order of their names, which contain their creation times, and whether these are
        all files."""
        found: list[Entry] = []
        count = 0
        for entry in islice(fs.walk(self.uri), MAX_FILES):
            count += 1
            if _NAME_PART in posixpath.basename(uris.path(entry.uri)) and len(found) < MAX_EVENT_FILES:
                found.append(entry)
        self._not_flushed = fs.why_not_flushed() if any(entry.may_be_open for entry in found) else ""
        found = [entry for entry in fs.stat_flushed(found) if not self._is_hidden(entry)]
        return sorted(found, key=lambda entry: entry.uri), count < MAX_FILES and len(found) < MAX_EVENT_FILES

    def _is_hidden(self, entry: Entry) -> bool:
        """Return whether a file only seems shorter than the bytes that were read, since an open file's length is
        unknown."""
        return entry.may_be_open and entry.uri in self._files and entry.size < self._files[entry.uri].offset

    def _changed_parts(self, fs: FileSystem, entries: list[Entry]) -> Iterator[FilePart]:
        for entry in entries:
            file = self._files.get(entry.uri)
            if file is None:
                run = posixpath.dirname(uris.below(entry.uri, self.uri)) or "."
                file = self._files[entry.uri] = EventFile(entry.uri, run)
            if file.seen != (entry.size, entry.modified_ms) and file.head and self._is_replaced(fs, file, entry):
                self._clear_run(file.run)
        for entry in entries:
            file = self._files[entry.uri]
            if file.seen != (entry.size, entry.modified_ms):
                yield FilePart(file.run, entry.uri, file.offset, max(0, entry.size - file.offset), self.owner)

    def _is_replaced(self, fs: FileSystem, file: EventFile, entry: Entry) -> bool:
        """Return whether a file begins with other bytes than before. If it is only shorter, its values are kept."""
        try:
            with fs.open_read(file.uri) as stream:
                head = stream.read(HEAD)
        except HowdahError:
            return False
        if head[: len(file.head)] == file.head or (len(head) < len(file.head) and file.head.startswith(head)):
            if entry.size < file.offset:
                _add_warning(file, f"it has {entry.size} bytes, {file.offset} were read before")
            return False
        return True

    def _clear_run(self, run: str) -> None:
        with self.lock:
            self.runs.get(run, Run()).clear()
            self.version += 1
        for file in self._files.values():
            if file.run == run:
                file.offset, file.seen, file.head, file.warnings = 0, (-1, 0), b"", []

    def _read(self, parts: list[FilePart], sizes: dict[str, tuple[int, int]]) -> None:
        for part in parts:
            self._files[part.uri].failed = ""
        kinds = {part.run: dict(self.runs[part.run].kinds) if part.run in self.runs else {} for part in parts}
        parallel.read(parts, kinds, self._add)
        for part in parts:
            file = self._files[part.uri]
            if file.failed:
                self._next = max(self._next, time.monotonic() + FAILED_PAUSE_S)
            else:
                file.seen = sizes[part.uri]

    def _add(self, part: FilePart, content: Batch | str) -> None:
        file = self._files[part.uri]
        if isinstance(content, str):
            file.failed = content
            return
        with self.lock:
            if content.next > file.offset and not self._closed:
                run = self.runs.setdefault(file.run, Run())
                run.add(
                    content,
                    points_per_scalar(sum(len(run.scalars) for run in self.runs.values())),
                    self.halvings,
                    self.full,
                )
                self.version += 1
        self._on_growth()
        file.offset = max(file.offset, content.next)
        file.head = file.head or content.head
        for each in content.damaged:
            _add_warning(file, f"at byte {each.offset}: {each.length} bytes skipped: {each.text}")


def _add_warning(file: EventFile, text: str) -> None:
    if text not in file.warnings and len(file.warnings) < MAX_REPORTED:
        file.warnings.append(text)
