"""The logs of tasks, line by line and with times: from the executors of a running job, or from the engine's archive.

Lines of several streams are ordered by time, as far as times are known; lines of one stream always keep their order.
"""

from __future__ import annotations

import heapq
import itertools
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from howdah.client.master_client import MasterClient
from howdah.engines import Engine
from howdah.localfiles.temporary_directory import TemporaryDirectory
from howdah.logs.levels import LEVELS, level_of
from howdah.logs.search import LONGEST_LINE
from howdah.logs.store import DirectoryLogs
from howdah.logs.stream_index import TIMES, StreamIndex
from howdah.spec import TaskId

PIECE_BYTES = 1 << 20
HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")


class LogLine(NamedTuple):
    """One line of a log. `time` is 0 where it is not known; `text` has no line end."""

    time: float
    task: str
    attempt: int
    stream: str
    text: bytes


class LineFilter(NamedTuple):
    """Chooses lines: of a level, matching a pattern, since a moment, only the last `tail` of them (0: all)."""

    level: str = ""
    pattern: re.Pattern[bytes] | None = None
    since: float = 0.0
    tail: int = 0

    def matches(self, line: LogLine) -> bool:
        """Return whether the line is chosen, `tail` aside."""
        if line.time and line.time < self.since:
            return False
        found = level_of(line.text) if self.level else ""
        if self.level and found not in ("error", self.level):
            return False
        return self.pattern is None or self.pattern.search(line.text) is not None

    def select(self, lines: Iterable[LogLine]) -> Iterable[LogLine]:
        """Return the chosen ones of `lines`."""
        chosen = filter(self.matches, lines)
        return deque(chosen, self.tail) if self.tail else chosen


assert set(LEVELS) == {"error", "warning"}  # `takes` knows that a warning's lines hold errors, too


def split_lines(
    pieces: Iterable[bytes], when: Callable[[int], float], task: str, attempt: int, stream: str, base: int = 0
) -> Iterator[LogLine]:
    """Cut a stream, whose bytes come in `pieces` from offset `base` on, into lines; a very long line comes in parts."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for text in whole:
            yield LogLine(when(base), task, attempt, stream, text)
            base += len(text) + 1
        if len(rest) > LONGEST_LINE:
            yield LogLine(when(base), task, attempt, stream, rest)
            base, rest = base + len(rest), b""
    if rest:
        yield LogLine(when(base), task, attempt, stream, rest)


def merge_by_time(streams: Iterable[Iterable[LogLine]]) -> Iterator[LogLine]:
    """Merge streams by time. A line without a time follows the line before it."""
    return heapq.merge(*map(_with_rising_times, streams), key=lambda line: line.time)


def _with_rising_times(stream: Iterable[LogLine]) -> Iterator[LogLine]:
    latest = 0.0
    for line in stream:
        latest = max(latest, line.time)
        yield line._replace(time=latest)


def _when(order: StreamIndex, stream: str) -> Callable[[int], float]:
    return lambda offset: order.when(stream, offset) or 0.0


class ArchivedLines:
    """Copies the logs of an ended job from the engine's archive to a temporary directory: a context manager."""

    def __init__(self, engine: Engine, job_id: str, tasks: Collection[TaskId]) -> None:
        self._directory = TemporaryDirectory("howdah-logs-")
        self._attempts: dict[tuple[str, int], dict[str, Path]] = {}
        only_task = next(iter(tasks)) if len(tasks) == 1 else None
        names = {str(task) for task in tasks}
        for heading, group in itertools.groupby(engine.logs(job_id, only_task, "*"), key=lambda piece: piece[0]):
            found = HEADING.fullmatch(heading)
            if found and found[1] in names:
                self._keep((found[1], int(found[2])), found[3], (data for _, data in group))

    def _keep(self, attempt: tuple[str, int], name: str, pieces: Iterable[bytes]) -> None:
        files = self._attempts.setdefault(attempt, {})
        number = sum(map(len, self._attempts.values()))
        files[name] = self._directory.path / f"{number}.{name}"
        with files[name].open("wb") as file:
            for piece in pieces:
                file.write(piece)

    def __enter__(self) -> ArchivedLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._directory.remove()

    def attempts(self, attempt: int) -> list[tuple[str, int]]:
        """Return (task, attempt) of all logs, or of those of this attempt if `attempt` is not 0."""
        return sorted(key for key in self._attempts if attempt in (0, key[1]))

    def streams(self, key: tuple[str, int], names: Sequence[str]) -> list[Iterator[LogLine]]:
        """Return the lines of each stream of an attempt."""
        files = self._attempts[key]
        order = DirectoryLogs(self._directory.path, files).index()
        kept = [name for name in names if name in files]
        return [split_lines(_read(files[name]), _when(order, name), *key, name) for name in kept]


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


class RunningTaskLines:
    """Reads the new lines of an attempt (0: the present one) of a running task through the master, again and again. The
    first call reads at most the last `first` bytes of each stream; 0: all."""

    def __init__(self, task: TaskId, attempt: int, names: Sequence[str], first: int, timed: bool) -> None:
        self.task, self.attempt, self.names, self.timed = task, attempt, names, timed
        self._first = first
        self._offsets: dict[str, int] = {}
        self._rest: dict[str, tuple[int, bytes]] = {}

    def new(self, master: MasterClient, number: int, last: bool = False) -> list[LogLine]:
        """Return the complete lines that were not read before, with `last` an incomplete last line as well. `number` is
        the number of the attempt.

        Raises:
            WireError: the master or the executor does not answer.
        """
        raw = {name: self._bytes(master, name) for name in self.names}
        order = StreamIndex()
        if self.timed and any(data for _, data in raw.values()):
            order = StreamIndex.parse(master.log(self.task, TIMES, 0, PIECE_BYTES, self.attempt).text.encode("latin-1"))
        found = [self._whole(name, number, *raw[name], order, last) for name in self.names]
        return list(merge_by_time(found)) if self.timed else [line for stream in found for line in stream]

    def _bytes(self, master: MasterClient, name: str) -> tuple[int, bytes]:
        offset, begin, parts = self._offsets.get(name, -self._first if self._first else 0), -1, list[bytes]()
        while True:
            chunk = master.log(self.task, name, offset, PIECE_BYTES, self.attempt)
            if begin < 0 or (parts and chunk.offset != offset and chunk.text):
                begin, parts = chunk.offset, []
            data = chunk.text.encode("latin-1")
            self._offsets[name] = offset = chunk.offset + len(data)
            parts.append(data)
            if len(data) < PIECE_BYTES // 2 or len(parts) >= 64:
                return begin, b"".join(parts)

    def _whole(self, name: str, number: int, begin: int, data: bytes, order: StreamIndex, last: bool) -> list[LogLine]:
        start, rest = self._rest.get(name, (begin, b""))
        data = rest + data
        end = len(data) if last or len(data) > LONGEST_LINE else data.rfind(b"\n") + 1
        self._rest[name] = (start + end, data[end:])
        return list(split_lines([data[:end]], _when(order, name), str(self.task), number, name, start))
