"""Logs of tasks, line by line and with times: from the executors of a running job, or from the engine's archive.

Lines of several streams are ordered by time, as far as times are known; lines of one stream always keep their order.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from howdah.localfiles.temporary_directory import TemporaryDirectory
from howdah.logs.archive import LogArchive, StreamKey, copy_streams
from howdah.logs.levels import LEVELS, Traceback, level_of
from howdah.logs.output_text import plain
from howdah.logs.search import MAX_LINE
from howdah.logs.store import PIECE_BYTES, AttemptLogs, DirectoryLogs
from howdah.logs.stream_index import StreamIndex
from howdah.spec import TaskId

MAX_PIECES = 64
"""The most pieces of a stream that are read at once."""


class LogLine(NamedTuple):
    """One line of a log."""

    time: float
    """When the line was printed; 0 if that is not known."""
    task: str
    attempt: int
    stream: str
    text: bytes
    """The line without its end."""
    offset: int = 0
    """The offset of the line in its stream."""


class LineFilter(NamedTuple):
    """Selects lines."""

    level: str = ""
    """The least level."""
    pattern: re.Pattern[bytes] | None = None
    """The pattern that the lines must match."""
    since: float = 0.0
    """The time since which the lines were printed."""
    tail: int = 0
    """The number of last lines to keep; 0: all."""

    def matches(self, line: LogLine, in_traceback: bool = False) -> bool:
        """Return whether the line is chosen, `tail` aside. A line in a traceback is an error, whatever it says."""
        if line.time and line.time < self.since:
            return False
        shown = plain(line.text)
        found = "error" if in_traceback else level_of(shown) if self.level else ""
        if self.level and found not in ("error", self.level):
            return False
        return self.pattern is None or self.pattern.search(shown) is not None

    def select(
        self, lines: Iterable[LogLine], tracebacks: dict[StreamKey, Traceback] | None = None
    ) -> Iterable[LogLine]:
        """Return the chosen lines of `lines`. If the lines of a stream come in several calls, `tracebacks` are those in
        which its earlier lines lay."""
        known = {} if tracebacks is None else tracebacks
        chosen = (line for line in lines if self.matches(line, self.level != "" and _in_traceback(line, known)))
        return deque(chosen, self.tail) if self.tail else chosen


def _in_traceback(line: LogLine, tracebacks: dict[StreamKey, Traceback]) -> bool:
    """Return whether the next line of a stream lies in a traceback."""
    key = StreamKey(line.task, line.attempt, line.stream)
    return tracebacks.setdefault(key, Traceback()).add(plain(line.text))


assert set(LEVELS) == {"error", "warning"}  # `matches` knows that a warning's lines hold errors, too


def split_lines(
    pieces: Iterable[bytes], when: Callable[[int], float], task: str, attempt: int, stream: str, base: int = 0
) -> Iterator[LogLine]:
    """Cut a stream, whose bytes come in `pieces` from offset `base` on, into lines; a very long line comes in parts."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for text in whole:
            yield LogLine(when(base), task, attempt, stream, text, base)
            base += len(text) + 1
        if len(rest) > MAX_LINE:
            yield LogLine(when(base), task, attempt, stream, rest, base)
            base, rest = base + len(rest), b""
    if rest:
        yield LogLine(when(base), task, attempt, stream, rest, base)


def merge_by_time(streams: Iterable[Iterable[LogLine]]) -> Iterator[LogLine]:
    """Merge streams by time. A line without a time follows the line before it."""
    return heapq.merge(*map(_with_rising_times, streams), key=lambda line: line.time)


def _with_rising_times(stream: Iterable[LogLine]) -> Iterator[LogLine]:
    latest = 0.0
    for line in stream:
        latest = max(latest, line.time)
        yield line._replace(time=latest)


def _times(order: StreamIndex, stream: str) -> Callable[[int], float]:
    return lambda offset: order.when(stream, offset) or 0.0


class ArchivedLines:
    """Copies the logs of an ended job from the archive to a temporary directory: a context manager."""

    def __init__(self, archive: LogArchive, job_id: str, tasks: Collection[TaskId]) -> None:
        self._directory = TemporaryDirectory("howdah-logs-")
        self._attempts: dict[tuple[str, int], dict[str, Path]] = {}
        only_task = next(iter(tasks)) if len(tasks) == 1 else None
        names = {str(task) for task in tasks}
        pieces = archive.logs(job_id, only_task, "*")
        copy_streams(pieces, lambda key: self._file(key) if key.task in names else None)

    def _file(self, key: StreamKey) -> Path:
        files = self._attempts.setdefault(key[:2], {})
        number = sum(map(len, self._attempts.values()))
        return files.setdefault(key.stream, self._directory.path / f"{number}.{key.stream}")

    def __enter__(self) -> ArchivedLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._directory.remove()

    def attempts(self, attempt: int) -> list[tuple[str, int]]:
        """Return (task, attempt) of all logs, or of those of this attempt if `attempt` is not 0."""
        return sorted(key for key in self._attempts if attempt in (0, key[1]))

    def chunk(self, key: StreamKey, offset: int, limit: int) -> tuple[int, int, bytes]:
        """Return (offset, size, bytes) of a stream, as `StoredLogs.chunk` does; nothing for a stream that was not
        kept."""
        files = self._attempts.get(key[:2], {})
        if key.stream not in files:
            return 0, 0, b""
        return DirectoryLogs(self._directory.path, files).chunk(key.stream, offset, limit)

    def streams(self, key: tuple[str, int], names: Sequence[str]) -> list[Iterator[LogLine]]:
        """Return the lines of each stream of an attempt."""
        files = self._attempts[key]
        logs = DirectoryLogs(self._directory.path, files)
        order = logs.index()
        kept = [name for name in names if name in files]
        return [split_lines(logs.pieces(name), _times(order, name), *key, name) for name in kept]


class AttemptLines:
    """Reads the new lines of a task's attempt again and again. The first call reads at most the last `first` bytes of
    each stream; 0: all. Each call reads about `max_pieces` pieces of each."""

    def __init__(
        self, logs: AttemptLogs, task: str, streams: Sequence[str], first: int, max_pieces: int = MAX_PIECES
    ) -> None:
        self._logs, self._task, self._streams, self._first = logs, task, streams, first
        self._max_pieces = max(1, max_pieces)
        self._offsets: dict[str, int] = {}
        self._incomplete_lines: dict[str, tuple[int, bytes]] = {}
        self._ends: dict[str, int] = {}
        self._unread_streams = set[str]()

    @property
    def has_more(self) -> bool:
        """Return whether the last call with `last` has not reached the end, because it reads only a part of bounded
        size."""
        return bool(self._unread_streams)

    def read(self, number: int, last: bool = False) -> list[LogLine]:
        """Return the complete lines that were not read before. With `last` they are those up to the ends of the streams
        at the first such call, and an incomplete last line as well, but see `has_more`. `number` is the number of the
        attempt.

        Raises:
            Exception: whatever the reader of the logs raises.
        """
        raw = {name: self._bytes(name, last) for name in self._streams}
        order = self._logs.index() if any(data for _, data in raw.values()) else StreamIndex()
        last = last and not self.has_more
        return list(merge_by_time(self._split_lines(name, number, *raw[name], order, last) for name in self._streams))

    def _bytes(self, name: str, to_end: bool) -> tuple[int, bytes]:
        offset, begin, parts = self._offsets.get(name, -self._first if self._first else 0), -1, list[bytes]()
        self._unread_streams.discard(name)
        while True:
            start, data = self._logs.read(name, offset, PIECE_BYTES)
            if to_end and parts and data and start != offset:  # what is between was not kept
                self._unread_streams.add(name)
                return begin, b"".join(parts)
            if begin < 0 or (parts and start != offset and data):
                begin, parts = start, []
            self._offsets[name] = offset = start + len(data)
            parts.append(data)
            if to_end and data and offset < self._ends.setdefault(name, self._logs.size(name)):
                if len(parts) >= self._max_pieces:
                    self._unread_streams.add(name)
                    return begin, b"".join(parts)
            elif to_end or len(data) < PIECE_BYTES // 2 or len(parts) >= self._max_pieces:
                return begin, b"".join(parts)

    def _split_lines(
        self, name: str, number: int, begin: int, data: bytes, order: StreamIndex, last: bool
    ) -> list[LogLine]:
        start, rest = self._incomplete_lines.get(name, (begin, b""))
        cut: list[tuple[int, bytes]] = []
        if rest and data and begin != start + len(rest):  # the end of that line was not kept
            cut, start, rest = [(start, rest)], begin, b""
        data = rest + data
        end = data.rfind(b"\n") + 1
        if last or len(data) - end > MAX_LINE:
            end = len(data)
        self._incomplete_lines[name] = (start + end, data[end:])
        whole = [*cut, (start, data[:end])]
        return [
            line
            for place, text in whole
            for line in split_lines([text], _times(order, name), self._task, number, name, place)
        ]
