"""One directory with event files, in it or below, and what was read of them so far; looked at again when asked.

The rule: a file is read on when it has changed, from behind the last whole record; a file that has become another one
makes its run be read anew. What can't be read is told, and what was read before stays.
"""

from __future__ import annotations

import posixpath
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from howdah.errors import HowdahError
from howdah.eventfiles import parallel
from howdah.eventfiles.decoder import HEAD
from howdah.eventfiles.event_batch import Batch
from howdah.eventfiles.parallel import FilePart
from howdah.eventfiles.run_store import Run, share
from howdah.spec import uris
from howdah.storage.filesystem import Entry, FileSystem, filesystem

PAUSE_S = 1.0
"""Between looks. A look that takes long is taken more seldom: a tenth of the time is spent with looking."""
MOST_PAUSE_S = 60.0
FAILED_PAUSE_S = 5.0
MOST_FILES = 50_000
MOST_EVENT_FILES = 10_000
MOST_TOLD = 50
_MARK = "tfevents"


@dataclass
class EventFile:
    """An event file: `offset` is where it is read on, `seen` its size and time when it was read last."""

    uri: str
    run: str
    offset: int = 0
    seen: tuple[int, int] = (-1, 0)
    head: bytes = b""
    told: list[str] = field(default_factory=list)
    failed: str = ""


class EventDirectory:
    """Everything below `uri`. Hold `lock` to look at the runs; their names are folders below it, "." its own. `grown`
    is called, without the lock, when there is more of it."""

    def __init__(self, uri: str, grown: Callable[[], object] = int) -> None:
        self.uri, self._grown = uri, grown
        self.lock = threading.Lock()
        self.runs: dict[str, Run] = {}
        self.version = 0
        self.complete = False
        self.used_at = time.monotonic()
        self._files: dict[str, EventFile] = {}
        self._failed: list[str] = []
        self._not_flushed = ""
        self._news = threading.Condition()
        self._busy, self._next = False, 0.0
        self.halved, self.full, self._closed = 0, False, False

    def look(self, limit_s: float) -> None:
        """See what is new, unless that was done just now; go on without waiting for it after `limit_s`."""
        self.used_at = time.monotonic()
        with self._news:
            if not self._busy and time.monotonic() >= self._next:
                self._busy = True
                threading.Thread(target=self._look, daemon=True, name="look").start()
            self._news.wait_for(lambda: not self._busy, limit_s)

    def errors(self) -> list[dict[str, str]]:
        """What could not be read: file (or directory), text."""
        found = [{"file": self.uri, "text": text} for text in self._failed]
        if self._not_flushed:
            text = f"what is being written is seen when its file is closed: {self._not_flushed}"
            found.append({"file": self.uri, "text": text})
        for file in list(self._files.values()):
            name = uris.below(file.uri, self.uri) or uris.name(file.uri)
            texts = [*file.told, *([file.failed] if file.failed else [])]
            found += [{"file": name, "text": text} for text in texts]
        left_out = sum(run.left_out for run in self.runs.values())
        if left_out:
            found.append({"file": self.uri, "text": f"{left_out} values of more tags than can be kept are left out"})
        if self.halved:
            told = f"there is no memory for all of it: of each tag about one step in {2**self.halved} is kept"
            found.insert(0, {"file": self.uri, "text": told + (", and no further tags" if self.full else "")})
        return found[:MOST_TOLD]

    @property
    def points(self) -> int:
        """Of all scalars in memory."""
        with self.lock:
            return sum(run.points for run in self.runs.values())

    @property
    def size(self) -> int:
        """Bytes in memory, as far as they grow with what is read."""
        with self.lock:
            return sum(run.size for run in self.runs.values())

    def halve(self) -> None:
        """Keep half of it; when that leaves as much as there was, no further tags."""
        before = self.size
        with self.lock:
            for run in self.runs.values():
                run.halve()
            self.halved, self.version = self.halved + 1, self.version + 1
        self.full = self.size > 0.9 * before

    def close(self) -> None:
        """Forget all of it, and what is being read."""
        with self.lock:
            self._closed = True
            self.runs.clear()

    def _look(self) -> None:
        begun = time.monotonic()
        try:
            self._refresh(begun)
        except HowdahError as error:
            self._failed = [str(error)]
        except Exception as error:  # the library's own, or a bug: whoever asks is told
            self._failed = [f"{type(error).__name__}: {error}"]
        finally:
            with self._news:
                self._busy = False
                self._news.notify_all()

    def _refresh(self, begun: float) -> None:
        fs = filesystem(self.uri)
        if not fs.exists(self.uri):  # a program that has not begun to write
            self._failed = ["it is not there any more"] if self._files else []
            self.complete, self._next = True, begun + PAUSE_S
            return
        try:
            entries, whole = self._listed(fs)
        finally:
            pause = min(MOST_PAUSE_S, max(PAUSE_S, 10 * (time.monotonic() - begun)))
            self._next = time.monotonic() + pause
        self._failed = [] if whole else [f"more than {MOST_FILES} files here: not all were looked at"]
        parts = list(self._changed(fs, entries))
        if parts:
            sizes = {entry.uri: (entry.size, entry.modified_ms) for entry in entries}
            self._read(parts, sizes)
        self.complete = whole and not any(file.failed for file in self._files.values())

    def _listed(self, fs: FileSystem) -> tuple[list[Entry], bool]:
        """The event files by name, which has the time of their making; whether that is all of them."""
        found: list[Entry] = []
        count = 0
        for entry in islice(fs.walk(self.uri), MOST_FILES):
            count += 1
            if _MARK in posixpath.basename(uris.path(entry.uri)) and len(found) < MOST_EVENT_FILES:
                found.append(entry)
        self._not_flushed = fs.why_not_flushed() if any(entry.may_be_open for entry in found) else ""
        found = [entry for entry in fs.stat_flushed(found) if not self._is_hidden(entry)]
        return sorted(found, key=lambda entry: entry.uri), count < MOST_FILES and len(found) < MOST_EVENT_FILES

    def _is_hidden(self, entry: Entry) -> bool:
        """Whether less of it is told than was read before, only because it is open and nobody can be asked."""
        return entry.may_be_open and entry.uri in self._files and entry.size < self._files[entry.uri].offset

    def _changed(self, fs: FileSystem, entries: list[Entry]) -> Iterator[FilePart]:
        for entry in entries:
            file = self._files.get(entry.uri)
            if file is None:
                file = self._files[entry.uri] = EventFile(entry.uri, self._run(entry.uri))
            if file.seen != (entry.size, entry.modified_ms) and file.head and self._replaced(fs, file, entry):
                self._forget(file.run)
        for entry in entries:
            file = self._files[entry.uri]
            if file.seen != (entry.size, entry.modified_ms):
                yield FilePart(file.run, entry.uri, file.offset, max(0, entry.size - file.offset))

    def _run(self, uri: str) -> str:
        return posixpath.dirname(uris.below(uri, self.uri)) or "."

    def _replaced(self, fs: FileSystem, file: EventFile, entry: Entry) -> bool:
        """Whether it begins otherwise; one that is only shorter than it was keeps what was read."""
        try:
            with fs.open_read(file.uri) as stream:
                head = stream.read(HEAD)
        except HowdahError:
            return False
        if head[: len(file.head)] == file.head or (len(head) < len(file.head) and file.head.startswith(head)):
            if entry.size < file.offset:
                _tell(file, f"it has {entry.size} bytes, {file.offset} were read before")
            return False
        return True

    def _forget(self, run: str) -> None:
        with self.lock:
            self.runs.get(run, Run()).clear()
            self.version += 1
        for file in self._files.values():
            if file.run == run:
                file.offset, file.seen, file.head, file.told = 0, (-1, 0), b"", []

    def _read(self, parts: list[FilePart], sizes: dict[str, tuple[int, int]]) -> None:
        for part in parts:
            self._files[part.uri].failed = ""
        parallel.read(parts, {part.run: dict(self._kinds(part.run)) for part in parts}, self._take)
        for part in parts:
            file = self._files[part.uri]
            if file.failed:
                self._next = max(self._next, time.monotonic() + FAILED_PAUSE_S)
            else:
                file.seen = sizes[part.uri]

    def _kinds(self, run: str) -> dict[bytes, bytes]:
        return self.runs[run].kinds if run in self.runs else {}

    def _take(self, part: FilePart, found: Batch | str) -> None:
        file = self._files[part.uri]
        if isinstance(found, str):
            file.failed = found
            return
        with self.lock:
            if found.next > file.offset and not self._closed:
                run = self.runs.setdefault(file.run, Run())
                run.take(found, share(sum(len(run.scalars) for run in self.runs.values())), self.halved, self.full)
                self.version += 1
        self._grown()
        file.offset = max(file.offset, found.next)
        file.head = file.head or found.head
        for flaw in found.flaws:
            _tell(file, f"at byte {flaw.offset}: {flaw.length} bytes passed over: {flaw.text}")


def _tell(file: EventFile, text: str) -> None:
    if text not in file.told and len(file.told) < MOST_TOLD:
        file.told.append(text)
