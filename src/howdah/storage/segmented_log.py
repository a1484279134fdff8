"""Finds and reads a log: one file if the file system appends cheaply, else a file and its numbered segments.

An object store cannot append: it writes the whole object again. There the log `events.jsonl` consists of
`events.jsonl`, which is its segment 0, of `events-000001.jsonl`, `events-000002.jsonl` and so on. Each is written once,
and only if no object of that name exists; its content follows that of the segment before it.
`events-000000-000031.jsonl` replaces the segments 0 to 31, with the same content or the same meaning: readers read it
instead of them, whether they still exist or not.
"""

from __future__ import annotations

import bisect
import dataclasses
import io
import itertools
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import BinaryIO, cast

from howdah.errors import StagingError
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.filesystem import CHUNK, Entry, FileSystem

LIST_TRIES, LIST_PAUSE_S = 4, 0.1
"""The most times that a log is listed whose segments were merged while they were listed or read, and seconds before
each further time."""
APPEND_TRIES = 5
_NUMBERS = re.compile(r"-(\d{6,})(?:-(\d{6,}))?")


@dataclass(frozen=True)
class Segment:
    """A file with the content of one or more segments of a log."""

    first: int
    """The number of the first segment that it holds."""
    last: int
    """The number of the last segment that it holds."""
    uri: str
    """Its URI."""
    size: int
    """Its size in bytes."""
    modified_ms: int = 0
    """When it was written, in epoch milliseconds."""
    owner: str = ""
    """The user that owns it; "" where that is not known."""


@dataclasses.dataclass(frozen=True)
class SegmentedLog:
    """A log as it was when it was listed. It may have grown since, but its earlier content keeps its place."""

    files: FileSystem
    """The file system that holds the log."""
    uri: str
    """The URI of its first segment, by which it is known."""
    segments: tuple[Segment, ...]
    """The files to read, in order."""
    covered: tuple[Segment, ...] = field(default=(), compare=False)
    """The files whose content is in another one, too."""

    @property
    def size(self) -> int:
        """Return its size in bytes."""
        return sum(segment.size for segment in self.segments)

    @property
    def modified_ms(self) -> int:
        """Return when it was last written, in epoch milliseconds. Merging segments changes it, too."""
        return max(segment.modified_ms for segment in self.segments)

    @property
    def last(self) -> int:
        """Return the number of its last segment."""
        return self.segments[-1].last

    def open(self) -> BinaryIO:
        """Open it for reading: seekable, and buffered.

        Raises:
            StagingError, EngineUnavailable: the file system refuses, or does not answer.
        """
        if len(self.segments) == 1:
            return self.files.open_read(self.segments[0].uri)
        return cast("BinaryIO", io.BufferedReader(_SegmentReader(self), CHUNK))

    def iter_chunks(self) -> Iterator[bytes]:
        """Yield its content in chunks of at most CHUNK.

        Raises:
            StagingError, EngineUnavailable: the file system refuses, or does not answer.
        """
        if len(self.segments) == 1:
            yield from self.files.iter_chunks(self.segments[0].uri)
            return
        with self.open() as file:
            while data := file.read(CHUNK):
                yield data

    def read(self) -> bytes:
        """Return its whole content.

        Raises:
            StagingError, EngineUnavailable: the file system refuses, or does not answer.
        """
        if len(self.segments) == 1:
            return self.files.read_bytes(self.segments[0].uri)
        with self.open() as file:
            return file.read()


def segment_uri(uri: str, first: int, last: int | None = None) -> str:
    """Return the URI of a segment of the log `uri`, or of the file that holds all from `first` to `last`."""
    if not first and last is None:
        return uri
    name, dot, ending = uris.name(uri).rpartition(".")
    numbers = f"{first:06}" if last is None else f"{first:06}-{last:06}"
    return uris.join(uris.parent(uri), f"{name}-{numbers}{dot}{ending}")


def find_log(files: FileSystem, uri: str) -> SegmentedLog | None:
    """Return the log `uri`; None when there is none.

    Raises:
        StagingError: a segment is missing.
        EngineUnavailable: the file system does not answer.
    """
    if not files.appends_cheaply(uri):
        return _find_segments(files, uri)
    found = files.stat(uri)
    return SegmentedLog(files, uri, (_segment(found, 0, 0),)) if found is not None else None


def append_to_log(files: FileSystem, uri: str, data: bytes) -> None:
    """Append to a log that no master writes any more.

    Raises:
        StagingError, EngineUnavailable: the file system refuses, or does not answer.
    """
    if files.appends_cheaply(uri):
        files.append(uri, data)
        return
    for _ in range(APPEND_TRIES):
        log = find_log(files, uri)
        if files.create_new(segment_uri(uri, log.last + 1 if log else 0), data):
            return
    raise StagingError(f"{uri}: others append to it all the time")


def _find_segments(files: FileSystem, uri: str) -> SegmentedLog | None:
    """List the segments again while they are being merged: a listing of thousands is made of several answers."""
    for left in reversed(range(LIST_TRIES)):
        found = _list_segments(files, uri)
        if not found:
            return None
        try:
            chosen = _chain(uri, found)
            taken = {segment.uri for segment in chosen}
            return SegmentedLog(files, uri, chosen, tuple(one for one in found if one.uri not in taken))
        except StagingError:
            if not left:
                raise
        time.sleep(LIST_PAUSE_S)
    return None


def _list_segments(files: FileSystem, uri: str) -> list[Segment]:
    directory, own = uris.parent(uri), uris.name(uri)
    stem, dot, ending = own.rpartition(".")
    ending = dot + ending
    try:
        entries = files.children(directory)
    except StagingError:
        if files.exists(directory):
            raise
        return []
    found = []
    for entry in entries:
        name = uris.name(entry.uri)
        if entry.is_dir or not (name.startswith(stem) and name.endswith(ending)):
            continue
        numbers = _NUMBERS.fullmatch(name, len(stem), len(name) - len(ending))
        if name == own:
            found.append(_segment(entry, 0, 0))
        elif numbers is not None:
            found.append(_segment(entry, int(numbers[1]), int(numbers[2] or numbers[1])))
    return found


def _segment(entry: Entry, first: int, last: int) -> Segment:
    return Segment(first, last, entry.uri, entry.size, entry.modified_ms, entry.owner)


def _chain(uri: str, found: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return the fewest files that hold all segments, in order. Files that hold several segments overlap only if one
    holds all that the other holds."""
    largest: dict[int, Segment] = {}
    for segment in found:
        known = largest.get(segment.first)
        if known is None or (segment.last, len(segment.uri)) > (known.last, len(known.uri)):
            largest[segment.first] = segment
    chosen: list[Segment] = []
    end = max(segment.last for segment in largest.values())
    while not chosen or chosen[-1].last < end:
        number = chosen[-1].last + 1 if chosen else 0
        if number not in largest:
            raise StagingError(f"{segment_uri(uri, number)}: is missing, though later segments are there")
        chosen.append(largest[number])
    return tuple(chosen)


class _SegmentReader(io.RawIOBase):
    """Reads a log's files one after the other. When one is gone because it was merged meanwhile, it lists the log
    again: merged files hold the same bytes at the same offsets."""

    def __init__(self, log: SegmentedLog) -> None:
        self._log, self._position = log, 0
        self._ends = list(itertools.accumulate(segment.size for segment in log.segments))
        self._opened: tuple[int, BinaryIO] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._ends[-1])[whence]
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        for left in reversed(range(LIST_TRIES)):
            try:
                return self._read_into(buffer)
            except StagingError:
                again = _find_segments(self._log.files, self._log.uri)
                if not left or again is None or again.segments == self._log.segments:
                    raise
                self._close_file()
                self._log = again
                self._ends = list(itertools.accumulate(segment.size for segment in again.segments))
        return 0

    def _read_into(self, buffer: memoryview) -> int:
        if self._position >= self._ends[-1]:
            return 0
        number = bisect.bisect_right(self._ends, self._position)
        if self._opened is None or self._opened[0] != number:
            self._close_file()
            self._opened = number, self._open(self._log.segments[number])
        file, before = self._opened[1], self._ends[number] - self._log.segments[number].size
        file.seek(self._position - before)
        data = file.read(len(buffer))
        if not data:
            raise StagingError(f"{self._log.segments[number].uri}: ends too early")
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _open(self, segment: Segment) -> BinaryIO:
        """Fetch a small file by one request; a large one is read in parts."""
        if segment.size > 16 * CHUNK:
            return self._log.files.open_read(segment.uri)
        return io.BytesIO(self._log.files.read_bytes(segment.uri))

    def _close_file(self) -> None:
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None

    def close(self) -> None:
        self._close_file()
        super().close()
