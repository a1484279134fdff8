"""Finding lines in logs at the speed of the disk, in little memory: `python -m howdah.data.logsearch`.

A process of its own, beside an executor or for a page: on stdin {"files": [{"task", "attempt", "stream", and "path", or
"url" (a node's page), or "file" (an open descriptor) with "from", "to", "lines" and "times"}], "wish": {...}}; on
stdout one JSON line {"ok": true, "hits", "scanned_bytes", "complete"}. Nothing but the standard library is needed. A
pattern that takes for ever is ended by whoever started this.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from howdah.data.logfiles import Folder, Node, order_of
from howdah.data.logorder import BOTH, TIMES, Order
from howdah.spec.values import dataclass

BLOCK = 1 << 20
"""What is looked at at once: it stays in the processor's cache."""
AHEAD = 16 << 20
"""What the disk is told to bring meanwhile."""
LONGEST_LINE = 1 << 20
"""What is longer is looked at in parts of this size."""
OVERLAP = 4096
MOST_HITS, SHOWN = 2000, 400
LEVELS: Mapping[str, tuple[bytes, ...]] = {
    "error": (
        b"error",
        b"Error",
        b"ERROR",
        b"xception",
        b"Traceback",
        b"FATAL",
        b"Fatal",
        b"fatal",
        b"CRITICAL",
        b"Segmentation fault",
        b": E ",
    ),
    "warning": (b"warn", b"Warn", b"WARN", b": W "),
}
"""Words by which a line is of a level, which programs write in many ways; who asks for warnings gets errors, too."""


@dataclass(frozen=True)
class Wish:
    """Lines that hold `text` (a regular expression if `regex`), of a level, printed in a span of time (epoch seconds;
    lines whose time is not known are taken). At most `limit` of each stream, from its beginning on."""

    text: str = ""
    regex: bool = False
    level: str = ""
    since: float = 0.0
    until: float = float("inf")
    limit: int = 200

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wish:
        """From the query of `search`.

        Raises:
            ValueError: a sentence.
        """
        text, regex, level = query.get("text", ""), query.get("regex", "0") not in ("", "0"), query.get("level", "")
        if level and level not in LEVELS:
            raise ValueError(f"level is {level[:40]!r}, must be {' or '.join(LEVELS)}")
        if not text and not level:
            raise ValueError("text or level is wanted")
        if regex:
            try:
                re.compile(text.encode())
            except re.error as error:
                raise ValueError(f"text is no regular expression: {error}") from None
        since, until = float(query.get("since") or 0.0), float(query.get("until") or "inf")
        return cls(text, regex, level, since, until, max(1, min(int(query.get("limit") or 200), MOST_HITS)))


@dataclass(frozen=True)
class Hit:
    """A line: its number from 1 and offset in its stream, what is to be seen of it, and when it was printed."""

    task: str
    attempt: int
    stream: str
    offset: int
    line: int
    text: str
    level: str = ""
    time: float | None = None


_HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")
Find = Callable[[bytearray, int, int], int]


class Search:
    """Of one stream. `scanned` are the bytes that were looked at; `complete` is False when `limit` was reached.
    `numbers` tells how many lines lie before an offset; without it lines are counted, which takes as long as looking.
    """

    def __init__(self, wish: Wish, task: str, attempt: int, stream: str, order: Order | None = None) -> None:
        self.wish, self.task, self.attempt, self.stream, self.order = wish, task, attempt, stream, order
        self.scanned, self.complete = 0, True
        self.numbers: Callable[[int], int] | None = None
        self._find, self._holds = _finder(wish)

    def run(self, fill: Callable[[memoryview], int], base: int = 0) -> Iterator[Hit]:
        """Hits of what `fill(buffer)` gives: how many bytes it put there, 0 at the end; the first is at `base`."""
        buffer = bytearray(BLOCK + LONGEST_LINE)
        view = memoryview(buffer)
        kept, line, found = 0, 1, 0
        while True:
            count = fill(view[kept : kept + BLOCK])
            self.scanned += count
            end = _whole(buffer, kept + count, last=not count)
            counted = 0
            for start, stop in self._lines(buffer, end):
                if self.numbers is None:
                    line, counted = line + buffer.count(b"\n", counted, start), start
                else:
                    line = self.numbers(base + start) + 1
                yield self._hit(bytes(view[start : min(stop, start + LONGEST_LINE)]), base + start, line)
                found += 1
                if found >= self.wish.limit:
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

    def _hit(self, line: bytes, offset: int, number: int) -> Hit:
        when = self.order.when(self.stream, offset) if self.order is not None else None
        return Hit(self.task, self.attempt, self.stream, offset, number, self._shown(line), level_of(line), when)

    def _shown(self, line: bytes) -> str:
        """What is to be seen of it: all, or what is around the match."""
        if len(line) > SHOWN:
            at = self._find(bytearray(line), 0, len(line))
            start = max(0, min(at - SHOWN // 4, len(line) - SHOWN))
            line = line[start : start + SHOWN]
        return line.rstrip(b"\r").decode("utf-8", "backslashreplace")


def level_of(line: bytes) -> str:
    """Of a line, "" for one that is of none."""
    return next((level for level, words in LEVELS.items() if any(word in line for word in words)), "")


def _whole(buffer: bytearray, filled: int, last: bool) -> int:
    """How much of the buffer are whole lines, or at least parts of one that is too long."""
    if last:
        return filled
    end = buffer.rfind(b"\n", 0, filled) + 1
    return end if end or filled < LONGEST_LINE else filled - OVERLAP


def _finder(wish: Wish) -> tuple[Find, Find]:
    """What finds the next place in a buffer, and what a line with such a place must hold besides."""
    words = tuple(word for level in LEVELS for word in LEVELS[level] if wish.level in ("warning", level))
    text = wish.text.encode()
    if not text:
        return _any(words), lambda _buffer, start, _stop: start
    find = _matching(text) if wish.regex else _holding(text)
    return find, _any(words) if wish.level else lambda _buffer, start, _stop: start


def _holding(text: bytes) -> Find:
    import ctypes  # the master knows this module, and never searches

    memmem = _memmem()
    if memmem is None:
        return lambda buffer, start, stop: buffer.find(text, start, stop)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if start >= stop:
            return -1
        first = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        found = memmem(first + start, stop - start, text, len(text))
        return found - first if found else -1

    return find


@functools.lru_cache(None)
def _memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    """The C library's, which is twice as fast as Python's own."""
    import ctypes

    try:
        memmem = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):
        return None
    memmem.restype = ctypes.c_void_p
    memmem.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    return memmem


def _matching(text: bytes) -> Find:
    pattern = re.compile(text, re.MULTILINE)

    def find(buffer: bytearray, start: int, stop: int) -> int:
        found = pattern.search(buffer, start, stop)
        return found.start() if found else -1

    return find


def _any(words: Sequence[bytes]) -> Find:
    """The first of several words: each is looked for once per buffer, which is ten times as fast as an expression."""
    finders = {word: _holding(word) for word in words}
    known: dict[bytes, tuple[int, int]] = {}

    def find(buffer: bytearray, start: int, stop: int) -> int:
        if start == 0 or any(limit != stop for _, limit in known.values()):
            known.clear()
        best = -1
        for word, next_of in finders.items():
            at, _ = known.get(word, (-2, stop))
            if at == -2 or 0 <= at < start:
                at = next_of(buffer, start, stop)
                known[word] = (at, stop)
            if at >= 0 and (best < 0 or at < best):
                best = at
        return best

    return find


def of_pieces(pieces: Iterable[bytes]) -> Callable[[memoryview], int]:
    """What `Search.run` wants, from bytes in pieces of any size."""
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
    """The same, from bytes `start` to `stop` of an open file; one that shrinks ends there."""
    place = start
    os.posix_fadvise(file, start, AHEAD, os.POSIX_FADV_WILLNEED)

    def fill(buffer: memoryview) -> int:
        nonlocal place
        os.posix_fadvise(file, place + AHEAD, len(buffer), os.POSIX_FADV_WILLNEED)
        count = os.preadv(file, [buffer[: max(0, stop - place)]], place) if place < stop else 0
        place += count
        return count

    return fill


class Numbers:
    """How many lines lie before an offset of a stream whose bytes from `start` on, where `lines` have ended before, are
    in an open file: counted from the nearest place that `order` tells. To be asked in ascending order."""

    def __init__(self, file: int, start: int, lines: int, order: Order, stream: str) -> None:
        self._file, self._start, self._order, self._stream = file, start, order, stream
        self._known = start, lines

    def __call__(self, offset: int) -> int:
        at, lines = self._known = max(self._known, self._order.before(self._stream, offset))
        while at < offset and (data := os.pread(self._file, min(BLOCK, offset - at), at - self._start)):
            at, lines = at + len(data), lines + data.count(b"\n")
        self._known = at, lines
        return lines


def search_files(files: Iterable[Mapping[str, Any]], wish: Wish) -> dict[str, Any]:
    """All of `files`; those that are gone are passed over."""
    hits: list[Hit] = []
    scanned, complete = 0, True
    for one in files:
        search = Search(wish, one["task"], int(one["attempt"]), one["stream"])
        try:
            hits += (hit for hit in _search(one, search) if _in_time(hit, wish))
        except OSError:
            complete = False
        scanned, complete = scanned + search.scanned, complete and search.complete
    return {"hits": [asdict(hit) for hit in hits], "scanned_bytes": scanned, "complete": complete}


def search_headed(
    pieces: Iterable[tuple[str, bytes]], wish: Wish, wanted: Collection[str], attempt: int = 0, stream: str = BOTH
) -> dict[str, Any]:
    """In what `howdah.engines.Engine.logs` gives for the stream `*`: pairs of a heading and bytes. `wanted` are tasks,
    `attempt` 0 stands for all."""
    hits: list[Hit] = []
    scanned, complete = 0, True
    for (task, number), files in itertools.groupby(_headed(pieces), key=lambda one: one[:2]):
        order, found = Order(), list[Hit]()
        for _, _, name, data in files:
            if task not in wanted or attempt not in (0, number):
                continue
            if name == TIMES:
                order = Order.parse(b"".join(data)[: 1 << 20])
            elif stream in (BOTH, name):
                search = Search(wish, task, number, name)
                found += search.run(of_pieces(data))
                scanned, complete = scanned + search.scanned, complete and search.complete
        timed = (replace(hit, time=order.when(hit.stream, hit.offset)) for hit in found)
        hits += (hit for hit in timed if _in_time(hit, wish))
    return {"hits": [asdict(hit) for hit in hits], "scanned_bytes": scanned, "complete": complete}


def _headed(pieces: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, int, str, Iterator[bytes]]]:
    for heading, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
        found = _HEADING.fullmatch(heading)
        if found:
            yield found[1], int(found[2]), found[3], (data for _, data in group)


def _in_time(hit: Hit, wish: Wish) -> bool:
    return hit.time is None or wish.since <= hit.time <= wish.until


def _search(one: Mapping[str, Any], search: Search) -> Iterator[Hit]:
    if "file" in one:
        search.order = Order.parse(str(one["times"]).encode())
        start = int(one["from"])
        search.numbers = Numbers(one["file"], start, int(one["lines"]), search.order, one["stream"])
        yield from search.run(of_file(one["file"], 0, int(one["to"]) - start), start)
    elif "path" in one:
        search.order = order_of(Folder(Path(one["path"]).parent))
        with Path(one["path"]).open("rb", buffering=0) as file:
            search.numbers = Numbers(file.fileno(), 0, 0, search.order, one["stream"])
            yield from search.run(of_file(file.fileno(), 0, os.fstat(file.fileno()).st_size))
    else:
        node = Node(one["url"])
        search.order = order_of(node)
        body, size = node.open(one["stream"], 1 << 60)
        with closing(body):
            yield from search.run(of_pieces(_pieces(body, size)))


def _pieces(body: BinaryIO, size: int) -> Iterator[bytes]:
    while size and (piece := body.read(min(size, 1 << 20))):
        size -= len(piece)
        yield piece


def main() -> int:
    """Search once."""
    request = json.load(sys.stdin)
    os.nice(10)
    print(json.dumps({"ok": True, **search_files(request["files"], Wish(**request["wish"]))}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
