"""`python -m howdah.logs.search`: a helper that finds lines in logs at the speed of the disk, in little memory.

The helper runs beside an executor or a master (`howdah.wire.helper_main`) and needs the standard library alone. The
process that starts it ends it when a pattern takes forever.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from howdah.logs.archive import StreamKey, archived_streams
from howdah.logs.levels import Traceback, level_of
from howdah.logs.matching import line_finders
from howdah.logs.query import LogMatch, LogQuery, LogSearchReply, LogSearchRequest, SearchedStream
from howdah.logs.store import DirectoryLogs, NodeManagerLogs, http_errors_as_os_errors, open_log
from howdah.logs.stream_index import BOTH, TIMES, StreamIndex
from howdah.wire.helper_main import run_helper_main

BLOCK = 1 << 20
"""Bytes that are searched at once: they stay in the processor's cache."""
AHEAD = 16 << 20
"""Bytes that the disk reads ahead of the search."""
MAX_LINE = 1 << 20
"""A longer line is searched in parts of this size."""
OVERLAP = 4096
"""Bytes by which the parts of a long line overlap."""
MAX_SHOWN_CHARACTERS = 400
"""Characters of a line that are shown."""


class Search:
    """Searches one stream.

    `scanned` is the number of bytes that were searched; `complete` is False when the query's limit was reached.
    `numbers` returns how many lines lie before an offset; without it lines are counted, which takes as long as the
    search. Lines that begin outside `span` (offsets) are skipped, and so are lines that `order` dates outside the
    query.
    """

    def __init__(self, query: LogQuery, task: str, attempt: int, stream: str, order: StreamIndex | None = None) -> None:
        self.query, self.task, self.attempt, self.stream, self.order = query, task, attempt, stream, order
        self.scanned, self.complete = 0, True
        self.numbers: Callable[[int], int] | None = None
        self.span = 0, 1 << 62
        self._find, self._holds = line_finders(query)
        self._traceback = Traceback()

    @property
    def key(self) -> StreamKey:
        """Return the key of the stream that is searched."""
        return StreamKey(self.task, self.attempt, self.stream)

    def limit_to_span(self, order: StreamIndex) -> None:
        """Search only the query's span of time; `order` says when each line was printed."""
        self.order, self.span = order, order.span(self.stream, self.query.since, self.query.until)

    def run(self, fill: Callable[[memoryview], int], base: int = 0) -> Iterator[LogMatch]:
        """Yield the matches in the stream. `fill(buffer)` reads the next bytes, which begin at offset `base`, into the
        buffer and returns their number; 0 is the end."""
        buffer = bytearray(BLOCK + MAX_LINE)
        view = memoryview(buffer)
        kept, line, found = 0, 1, 0
        while True:
            count = fill(view[kept : kept + BLOCK])
            self.scanned += count
            end = _end_of_complete_lines(buffer, kept + count, last=not count)
            counted = 0
            for start, stop, level in self._matching_lines(buffer, end):
                if base + start < self.span[0]:
                    continue
                if base + start >= self.span[1]:
                    return
                if self.numbers is None:
                    line, counted = line + buffer.count(b"\n", counted, start), start
                else:
                    line = self.numbers(base + start) + 1
                hit = self._match(bytes(view[start : min(stop, start + MAX_LINE)]), base + start, line, level)
                if not _is_in_time_range(hit, self.query):
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

    def _matching_lines(self, buffer: bytearray, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield the beginning and the end of each matching line, and its level if its text does not show it: a search
        for a level alone also finds the frames of a traceback."""
        whole_tracebacks = bool(self.query.level) and not self.query.text
        place, at = 0, self._find(buffer, 0, end)
        while place < end:
            if not self._traceback.goes_on:
                if at < 0:
                    return
                start = max(place, buffer.rfind(b"\n", place, at) + 1)
            else:
                start = place
            stop = buffer.find(b"\n", start, end)
            stop = end if stop < 0 else stop
            in_traceback = whole_tracebacks and self._traceback.add(bytes(buffer[start : min(stop, start + MAX_LINE)]))
            if in_traceback:
                yield start, stop, "error"
            elif start <= at <= stop and self._holds(buffer, start, stop) >= 0:
                yield start, stop, ""
            place = stop + 1
            if 0 <= at < place:
                at = self._find(buffer, place, end) if place < end else -1

    def _match(self, line: bytes, offset: int, number: int, level: str) -> LogMatch:
        when = self.order.when(self.stream, offset) if self.order is not None else None
        level = level_of(line) or level
        return LogMatch(self.task, self.attempt, self.stream, offset, number, self._excerpt(line), level, when)

    def _excerpt(self, line: bytes) -> str:
        """Return the text of a line, or of a long one the part around the match."""
        if len(line) > MAX_SHOWN_CHARACTERS:
            at = self._find(bytearray(line), 0, len(line))
            start = max(0, min(at - MAX_SHOWN_CHARACTERS // 4, len(line) - MAX_SHOWN_CHARACTERS))
            line = line[start : start + MAX_SHOWN_CHARACTERS]
        return line.rstrip(b"\r").decode("utf-8", "backslashreplace")


def _end_of_complete_lines(buffer: bytearray, filled: int, last: bool) -> int:
    """Return the number of bytes in the buffer that hold complete lines, or parts of a line that is too long."""
    if last:
        return filled
    end = buffer.rfind(b"\n", 0, filled) + 1
    return end if end or filled < MAX_LINE else filled - OVERLAP


def piece_filler(pieces: Iterable[bytes]) -> Callable[[memoryview], int]:
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


def file_filler(file: int, start: int, stop: int) -> Callable[[memoryview], int]:
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
    """Search all `files`; `problems` names the files that are gone, or whose node does not answer."""
    hits: list[LogMatch] = []
    problems: list[str] = []
    scanned, complete = 0, True
    for file in files:
        search = Search(query, file.task, file.attempt, file.stream)
        try:
            hits += _search_stream(file, search)
        except OSError as error:
            complete = False
            problems.append(f"{search.task} attempt {search.attempt} {search.stream}: {error}")
        scanned, complete = scanned + search.scanned, complete and search.complete
    found = [asdict(hit) for hit in hits]
    return {"hits": found, "scanned_bytes": scanned, "complete": complete, "problems": problems}


def search_archive(
    read: Callable[[], Iterable[tuple[str, bytes]]],
    query: LogQuery,
    tasks: Collection[str],
    attempt: int = 0,
    stream: str = BOTH,
) -> dict[str, Any]:
    """Search archived logs, which `howdah.engines.Engine.logs` yields for the stream `*`: those of `tasks`, of one
    attempt or of all (0). `read` is called again for streams that have more matches before the query's time than the
    query's limit, because the archive may have the times of lines after the lines themselves."""

    def wanted(key: StreamKey) -> bool:
        chosen = stream in (BOTH, key.stream) or key.stream == TIMES
        return chosen and key.task in tasks and attempt in (0, key.attempt)

    searched, late = _search_streams(read(), query, wanted, {})
    scanned = sum(search.scanned for search, _ in searched)
    if late:
        again, _ = _search_streams(read(), query, lambda key: key in late or key.stream == TIMES, late)
        scanned += sum(search.scanned for search, _ in again)
        searched = [(search, hits) for search, hits in searched if search.key not in late] + again
    complete = all(search.complete for search, _ in searched)
    hits = [asdict(hit) for _, found in searched for hit in found]
    return {"hits": hits, "scanned_bytes": scanned, "complete": complete}


def _search_streams(
    pieces: Iterable[tuple[str, bytes]],
    query: LogQuery,
    wanted: Callable[[StreamKey], bool],
    spans: Mapping[StreamKey, tuple[int, int]],
) -> tuple[list[tuple[Search, list[LogMatch]]], dict[StreamKey, tuple[int, int]]]:
    """Return the wanted streams, each with its matches; and the spans to search again in streams that were not searched
    up to the query's time."""
    searched: list[tuple[Search, list[LogMatch]]] = []
    late: dict[StreamKey, tuple[int, int]] = {}
    for _, streams in itertools.groupby(archived_streams(pieces), key=lambda each: each[0][:2]):
        order, of_attempt = StreamIndex(), list[tuple[Search, list[LogMatch]]]()
        for key, data in streams:
            if not wanted(key):
                continue
            if key.stream == TIMES:
                order = StreamIndex.parse(b"".join(data)[: 1 << 20])
            else:
                search = Search(query, *key)
                search.span = spans.get(key, search.span)
                of_attempt.append((search, list(search.run(piece_filler(data)))))
        for search, found in of_attempt:
            timed = [replace(hit, time=order.when(hit.stream, hit.offset)) for hit in found]
            hits = [hit for hit in timed if _is_in_time_range(hit, query)]
            if not search.complete and len(hits) < len(found):
                late[search.key] = order.span(search.stream, query.since, query.until)
            searched.append((search, hits))
    return searched, late


def _is_in_time_range(hit: LogMatch, query: LogQuery) -> bool:
    return hit.time is None or query.since <= hit.time <= query.until


def _search_stream(stream: SearchedStream, search: Search) -> Iterator[LogMatch]:
    if stream.file >= 0:
        search.limit_to_span(StreamIndex.parse(stream.times.encode()))
        yield from _search_file(search, stream.file, stream.start, stream.end, stream.lines)
    elif stream.path:
        search.limit_to_span(DirectoryLogs(Path(stream.path).parent).index())
        with open_log(Path(stream.path)) as file:
            yield from _search_file(search, file.fileno(), 0, os.fstat(file.fileno()).st_size, 0)
    else:
        node = NodeManagerLogs(stream.url)
        search.limit_to_span(node.index())
        body, size = node.open(stream.stream, 1 << 60)
        with closing(body):
            yield from search.run(piece_filler(_read_body(body, size, stream.url)))


def _search_file(search: Search, file: int, start: int, stop: int, lines: int) -> Iterator[LogMatch]:
    """Search an open file that holds bytes `start` to `stop` of the stream, after its first `lines` lines."""
    assert search.order is not None
    search.numbers = LineCounter(file, start, lines, search.order, search.stream)
    first, last = max(start, search.span[0]), min(stop, search.span[1])
    if first < last:
        yield from search.run(file_filler(file, first - start, last - start), first)


def _read_body(body: BinaryIO, size: int, url: str) -> Iterator[bytes]:
    while size:
        with http_errors_as_os_errors(url):
            piece = body.read(min(size, 1 << 20))
        if not piece:
            raise OSError(f"{url}: {size} bytes are missing")
        size -= len(piece)
        yield piece


def search_logs(request: LogSearchRequest) -> LogSearchReply:
    """Search the streams of a request, at a low priority."""
    os.nice(10)
    return LogSearchReply(**search_files(request.files, request.query))


if __name__ == "__main__":
    run_helper_main({"search": search_logs})
