"""`python -m howdah.logs.search`: finds lines in logs at the speed of the disk, in little memory.

A helper process beside an executor or a master (`howdah.wire.helper_main`), of the standard library alone. Whoever
starts it ends it when a pattern takes forever.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from howdah.logs.levels import level_of
from howdah.logs.matching import line_finders
from howdah.logs.query import LogMatch, LogQuery, LogSearchReply, LogSearchRequest, SearchedStream
from howdah.logs.store import DirectoryLogs, NodeManagerLogs, http_errors_as_os_errors, open_log
from howdah.logs.stream_index import BOTH, TIMES, StreamIndex
from howdah.wire.helper_main import run_helper_main

BLOCK = 1 << 20
"""Bytes searched at once: they stay in the processor's cache."""
AHEAD = 16 << 20
"""Bytes that the disk is told to read meanwhile."""
LONGEST_LINE = 1 << 20
"""A longer line is searched in parts of this size."""
OVERLAP = 4096
SHOWN = 400
"""Characters of a line that are shown."""
_HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")
Key = tuple[str, int, str]
"""A stream: task, attempt and name."""


class Search:
    """Of one stream. `scanned` are the bytes that were looked at; `complete` is False when `limit` was reached.
    `numbers` tells how many lines lie before an offset; without it lines are counted, which takes as long as looking.
    Lines that begin outside `span` (offsets) are passed over, and so are those that `order` dates outside the query.
    """

    def __init__(self, query: LogQuery, task: str, attempt: int, stream: str, order: StreamIndex | None = None) -> None:
        self.query, self.task, self.attempt, self.stream, self.order = query, task, attempt, stream, order
        self.scanned, self.complete = 0, True
        self.numbers: Callable[[int], int] | None = None
        self.span = 0, 1 << 62
        self._find, self._holds = line_finders(query)

    @property
    def key(self) -> Key:
        """Which stream it is."""
        return self.task, self.attempt, self.stream

    def dated(self, order: StreamIndex) -> None:
        """Search only the query's span of time; `order` says when each line was printed."""
        self.order, self.span = order, order.span(self.stream, self.query.since, self.query.until)

    def run(self, fill: Callable[[memoryview], int], base: int = 0) -> Iterator[LogMatch]:
        """Give the matches in the stream. `fill(buffer)` reads the next bytes, which begin at offset `base`, into the
        buffer and returns how many; 0 is the end."""
        buffer = bytearray(BLOCK + LONGEST_LINE)
        view = memoryview(buffer)
        kept, line, found = 0, 1, 0
        while True:
            count = fill(view[kept : kept + BLOCK])
            self.scanned += count
            end = _whole(buffer, kept + count, last=not count)
            counted = 0
            for start, stop in self._lines(buffer, end):
                if base + start < self.span[0]:
                    continue
                if base + start >= self.span[1]:
                    return
                if self.numbers is None:
                    line, counted = line + buffer.count(b"\n", counted, start), start
                else:
                    line = self.numbers(base + start) + 1
                hit = self._hit(bytes(view[start : min(stop, start + LONGEST_LINE)]), base + start, line)
                if not _in_time(hit, self.query):
                    continue
                yield hit
                found += 1
                if found >= self.query.limit:
                    self.complete = False
                    return
            if not count:
                return
            if self.numbers is None:
                line += buffer.count(b"\n", counted, end)
            base, left = base + end, kept + count - end
            view[:left] = bytes(view[end : kept + count])
            kept = left

    def _lines(self, buffer: bytearray, end: int) -> Iterator[tuple[int, int]]:
        place = 0
        while (at := self._find(buffer, place, end)) >= 0:
            start = max(place, buffer.rfind(b"\n", place, at) + 1)
            stop = buffer.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            if self._holds(buffer, start, stop) >= 0:
                yield start, stop
            place = stop + 1
            if place >= end:
                return

    def _hit(self, line: bytes, offset: int, number: int) -> LogMatch:
        when = self.order.when(self.stream, offset) if self.order is not None else None
        return LogMatch(self.task, self.attempt, self.stream, offset, number, self._shown(line), level_of(line), when)

    def _shown(self, line: bytes) -> str:
        """Return the text of a line, or of a long one the part around the match."""
        if len(line) > SHOWN:
            at = self._find(bytearray(line), 0, len(line))
            start = max(0, min(at - SHOWN // 4, len(line) - SHOWN))
            line = line[start : start + SHOWN]
        return line.rstrip(b"\r").decode("utf-8", "backslashreplace")


def _whole(buffer: bytearray, filled: int, last: bool) -> int:
    """Return how much of the buffer holds complete lines, or parts of one that is too long."""
    if last:
        return filled
    end = buffer.rfind(b"\n", 0, filled) + 1
    return end if end or filled < LONGEST_LINE else filled - OVERLAP


def of_pieces(pieces: Iterable[bytes]) -> Callable[[memoryview], int]:
    """Return the `fill` of `Search.run` for bytes that come in pieces of any size."""
    source, rest = iter(pieces), memoryview(b"")

    def fill(buffer: memoryview) -> int:
        nonlocal rest
        while not rest:
            piece = next(source, None)
            if piece is None:
                return 0
            rest = memoryview(piece)
        count = min(len(rest), len(buffer))
        buffer[:count], rest = rest[:count], rest[count:]
        return count

    return fill


def of_file(file: int, start: int, stop: int) -> Callable[[memoryview], int]:
    """Return the `fill` of `Search.run` for bytes `start` to `stop` of an open file, which may shrink."""
    place = start
    os.posix_fadvise(file, start, AHEAD, os.POSIX_FADV_WILLNEED)

    def fill(buffer: memoryview) -> int:
        nonlocal place
        os.posix_fadvise(file, place + AHEAD, len(buffer), os.POSIX_FADV_WILLNEED)
        count = os.preadv(file, [buffer[: max(0, stop - place)]], place) if place < stop else 0
        place += count
        return count

    return fill


class LineCounter:
    """Counts the lines before an offset of a stream, from the nearest offset that `order` knows.

    An open file holds the stream's bytes from `start` on, before which `lines` lines have ended. Offsets must ascend.
    """

    def __init__(self, file: int, start: int, lines: int, order: StreamIndex, stream: str) -> None:
        self._file, self._start, self._order, self._stream = file, start, order, stream
        self._known = start, lines

    def __call__(self, offset: int) -> int:
        at, lines = self._known = max(self._known, self._order.before(self._stream, offset))
        while at < offset and (data := os.pread(self._file, min(BLOCK, offset - at), at - self._start)):
            at, lines = at + len(data), lines + data.count(b"\n")
        self._known = at, lines
        return lines


def search_files(files: Iterable[SearchedStream], query: LogQuery) -> dict[str, Any]:
    """Search all `files`; `problems` name those that are gone, or whose node does not answer."""
    hits: list[LogMatch] = []
    problems: list[str] = []
    scanned, complete = 0, True
    for one in files:
        search = Search(query, one.task, one.attempt, one.stream)
        try:
            hits += _search(one, search)
        except OSError as error:
            complete = False
            problems.append(f"{search.task} attempt {search.attempt} {search.stream}: {error}")
        scanned, complete = scanned + search.scanned, complete and search.complete
    told = {"scanned_bytes": scanned, "complete": complete, "problems": problems}
    return {"hits": [asdict(hit) for hit in hits], **told}


def search_headed(
    read: Callable[[], Iterable[tuple[str, bytes]]],
    query: LogQuery,
    wanted: Collection[str],
    attempt: int = 0,
    stream: str = BOTH,
) -> dict[str, Any]:
    """In what `howdah.engines.Engine.logs` gives for the stream `*`: pairs of a heading and bytes. `wanted` are tasks,
    `attempt` 0 stands for all. `read` is called again for streams that hold more hits before the query's time than it
    wants: when lines were printed may be told behind them."""

    def takes(key: Key) -> bool:
        return key[0] in wanted and attempt in (0, key[1]) and (stream in (BOTH, key[2]) or key[2] == TIMES)

    looked, late = _looked(read(), query, takes, {})
    scanned = sum(search.scanned for search, _ in looked)
    if late:
        again, _ = _looked(read(), query, lambda key: key in late or key[2] == TIMES, late)
        scanned += sum(search.scanned for search, _ in again)
        looked = [(search, hits) for search, hits in looked if search.key not in late] + again
    complete = all(search.complete for search, _ in looked)
    return {"hits": [asdict(hit) for _, hits in looked for hit in hits], "scanned_bytes": scanned, "complete": complete}


def _looked(
    pieces: Iterable[tuple[str, bytes]],
    query: LogQuery,
    takes: Callable[[Key], bool],
    spans: Mapping[Key, tuple[int, int]],
) -> tuple[list[tuple[Search, list[LogMatch]]], dict[Key, tuple[int, int]]]:
    """The streams that `takes` wants, each with its hits, and where to look again in those that were not looked through
    as far as the query's time."""
    looked: list[tuple[Search, list[LogMatch]]] = []
    late: dict[Key, tuple[int, int]] = {}
    for (task, number), files in itertools.groupby(_headed(pieces), key=lambda one: one[:2]):
        order, here = StreamIndex(), list[tuple[Search, list[LogMatch]]]()
        for _, _, name, data in files:
            key = task, number, name
            if not takes(key):
                continue
            if name == TIMES:
                order = StreamIndex.parse(b"".join(data)[: 1 << 20])
            else:
                search = Search(query, task, number, name)
                search.span = spans.get(key, search.span)
                here.append((search, list(search.run(of_pieces(data)))))
        for search, found in here:
            timed = [replace(hit, time=order.when(hit.stream, hit.offset)) for hit in found]
            hits = [hit for hit in timed if _in_time(hit, query)]
            if not search.complete and len(hits) < len(found):
                late[search.key] = order.span(search.stream, query.since, query.until)
            looked.append((search, hits))
    return looked, late


def _headed(pieces: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, int, str, Iterator[bytes]]]:
    for heading, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
        found = _HEADING.fullmatch(heading)
        if found:
            yield found[1], int(found[2]), found[3], (data for _, data in group)


def _in_time(hit: LogMatch, query: LogQuery) -> bool:
    return hit.time is None or query.since <= hit.time <= query.until


def _search(one: SearchedStream, search: Search) -> Iterator[LogMatch]:
    if one.file >= 0:
        search.dated(StreamIndex.parse(one.times.encode()))
        yield from _search_file(search, one.file, one.start, one.end, one.lines)
    elif one.path:
        search.dated(DirectoryLogs(Path(one.path).parent).index())
        with open_log(Path(one.path)) as file:
            yield from _search_file(search, file.fileno(), 0, os.fstat(file.fileno()).st_size, 0)
    else:
        node = NodeManagerLogs(one.url)
        search.dated(node.index())
        body, size = node.open(one.stream, 1 << 60)
        with closing(body):
            yield from search.run(of_pieces(_pieces(body, size, one.url)))


def _search_file(search: Search, file: int, start: int, stop: int, lines: int) -> Iterator[LogMatch]:
    """Search an open file that holds bytes `start` to `stop` of the stream, after its first `lines` lines."""
    assert search.order is not None
    search.numbers = LineCounter(file, start, lines, search.order, search.stream)
    first, last = max(start, search.span[0]), min(stop, search.span[1])
    if first < last:
        yield from search.run(of_file(file, first - start, last - start), first)


def _pieces(body: BinaryIO, size: int, url: str) -> Iterator[bytes]:
    while size:
        with http_errors_as_os_errors(url):
            piece = body.read(min(size, 1 << 20))
        if not piece:
            raise OSError(f"{url}: {size} bytes are missing")
        size -= len(piece)
        yield piece


def search_logs(request: LogSearchRequest) -> LogSearchReply:
    """Search once, at a low priority."""
    os.nice(10)
    return LogSearchReply(**search_files(request.files, request.query))


if __name__ == "__main__":
    run_helper_main({"search": search_logs})
