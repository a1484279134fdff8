"""The view and the events of one job, read from its event log as far as the log is written.

The rule: the events in memory are bounded by bytes of log, and a log of any size is read in pieces. Of the usage
samples of a task between two other events only the last is folded, because the view shows the present usage, not its
history.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, BinaryIO

from howdah.spec import Outcome, uris
from howdah.spec.event_lines import parse_line, read_lines, to_line
from howdah.spec.events import JobFinished, Noted
from howdah.spec.fold import fold, fold_recorded
from howdah.spec.values import dataclass
from howdah.spec.view import JobView
from howdah.storage.filesystem import CHUNK, FileSystem
from howdah.storage.segmented_log import find_log

LOG = "events.jsonl"
"""The name of the event log in the job's directory."""
MAX_LINE = 4 << 20
"""Bytes of the longest line that is read: JobStarted, with the whole spec, is the longest that a master writes."""
MAX_BYTES = 64 << 20
"""Bytes of one log that are folded from its beginning; of a larger log the middle is left out."""
LAST_BYTES = 1 << 20
"""Bytes that are read of the end of a log whose middle is left out."""
LEFT_OUT = Noted(0.0, "the log is too large to be shown whole: what is between is left out")
"""The event that stands in place of the events that are left out."""
SAMPLES = _USED, _MEASURED = b'{"kind":"Used"', b'{"kind":"Measured"'
"""The beginnings of the lines of samples and of points of metrics; most lines of a large log are of these kinds."""
_TASK = re.compile(rb'"task":\{[^}]{0,300}\}')


@dataclass
class LineReader:
    """Cuts a file that grows into whole lines, in memory that does not grow with the length of a line."""

    offset: int = 0
    """The offset of the first line that has not been returned."""
    skipping: bool = False
    """True in the middle of a line that is longer than MAX_LINE, and is skipped."""
    skipped: int = 0
    """The number of lines that were skipped."""

    def lines(self, pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Yield the lines of `pieces`, which begin at `offset`, without their line ends. A last line that has no end
        yet is left for the next call."""
        rest = b""
        for piece in pieces:
            data = rest + piece
            *whole, rest = data.split(b"\n")
            self.offset += len(data) - len(rest)
            if self.skipping and whole:
                self.skipping, whole = False, whole[1:]
            if self.skipping or len(rest) > MAX_LINE:
                self.skipped += not self.skipping
                self.skipping = True
                self.offset += len(rest)
                rest = b""
            if whole:
                yield whole

    def read(self, file: BinaryIO, size: int, until: int) -> Iterator[list[bytes]]:
        """Yield the lines of a file of about `size` bytes from `offset` to about offset `until`."""
        file.seek(self.offset)
        pieces = iter(lambda: file.read(min(CHUNK, max(size, 1))), b"")
        return self.lines(itertools.takewhile(lambda _: self.offset < until, pieces))


class LogReplaced(Exception):
    """The event log that was read before has been replaced by another one."""


@dataclass(frozen=True)
class NewLines:
    """The lines that were added to a log since the last reading."""

    lines: list[list[bytes]]
    reader: LineReader
    """The reader after the last of these lines."""
    size_and_time: tuple[int, int]
    """Size and modification time of the log when this reading began."""
    owner: str | None = None
    """The user who owns the log; "" on a file system without owners, None while there is no log."""


class RecordedLog:
    """The view and the events of one job as far as its event log has been read."""

    def __init__(self, job_id: str, directory: str, files: FileSystem) -> None:
        self.id, self.directory, self.view = job_id, directory, JobView(id=job_id)
        self.lines: list[bytes] = []
        """All events that have been read, except samples, one line each."""
        self.version, self.bytes = 1, 0
        self.checked_at = float("-inf")
        self.owner: str | None = None
        self._files, self._reader, self._size_and_time = files, LineReader(), (-1, 0)
        self._ended = False

    def read(self) -> NewLines | None:
        """Return the new lines of the log, None if there are none. The view is not changed here, so that a log whose
        reading fails is read again from the same place.

        Raises:
            LogReplaced: the log is not the one that was read before.
            StagingError, EngineUnavailable: the log can't be read.
        """
        uri = uris.join(self.directory, LOG)
        found = find_log(self._files, uri)
        size_and_time = (found.size, found.modified_ms) if found else (0, 0)
        if size_and_time == self._size_and_time:
            return None
        size, reader = size_and_time[0], replace(self._reader)
        if size < reader.offset or self._ended:
            raise LogReplaced
        if found is None:
            return NewLines([], reader, size_and_time)
        owner = found.segments[0].owner
        if self.owner is not None and owner != self.owner:
            raise LogReplaced  # else the events of one user would count as those of another
        with found.open() as log:
            if uris.split(uri)[0] == "file" and str(os.fstat(log.fileno()).st_uid) != owner:
                raise LogReplaced
            lines = list(reader.read(log, size, MAX_BYTES))
            if MAX_BYTES <= reader.offset < size:
                end, reader = read_end(log, size, reader)
                lines += end
        return NewLines(lines, reader, size_and_time, owner)

    def apply(self, new: NewLines | None) -> None:
        """Add new lines to the events, and fold them into the view."""
        if new is None:
            return
        self._reader, self._size_and_time, self.owner = new.reader, new.size_and_time, new.owner
        for lines in new.lines:
            events = [line for line in lines if line and not line.startswith(SAMPLES)]
            self.lines += events
            self.bytes += sum(map(len, events))
            self.version += 1
            fold_recorded(read_lines(line.decode("utf-8", "replace") for line in latest_use(lines)), self.view)
        self.view.id = self.id

    def add_outcome(self, outcome: Outcome, finished: float) -> None:
        """Fold the outcome of a job whose log does not hold it, because its master was killed."""
        if outcome.state.ended and self.view.outcome is None:
            fold([JobFinished(finished, outcome)], self.view)
            self._ended, self.version = True, self.version + 1

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Return the number to ask from next, and up to `limit` events as JSON from number `since` on."""
        lines = self.lines[since : since + limit]
        return since + len(lines), [record for record in map(parse_line, lines) if record is not None]


def read_end(log: BinaryIO, size: int, reader: LineReader) -> tuple[list[list[bytes]], LineReader]:
    """Return the last lines of a log that was read up to MAX_BYTES, after one that says that the middle is left out;
    and the reader after them."""
    lines: list[list[bytes]] = []
    if reader.offset < size - LAST_BYTES:
        lines.append([to_line(LEFT_OUT).encode()])
        reader = LineReader(size - LAST_BYTES, skipping=True)
    log.seek(reader.offset)
    return lines + list(reader.lines([log.read(LAST_BYTES)])), reader


def latest_use(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out the usage samples that are followed by another of the same task before any other event."""
    pending: dict[bytes, bytes] = {}
    for line in lines:
        if line.startswith(_USED):
            found = _TASK.search(line)
            pending[found[0] if found else b""] = line
            continue
        if pending and not line.startswith(_MEASURED):
            yield from pending.values()
            pending = {}
        if line:
            yield line
    yield from pending.values()
