"""The index of an attempt's two streams, the short file `times`: in which order, and when, the task printed.

A line of the index is `time stdout stderr lines lines`: the bytes of the streams from these offsets on were printed at
that time or later, and before the time of the next line. The two numbers of lines count the lines of each stream before
the offsets. The merged stream (`both`) consists of the bytes between two lines of the index, standard output first. Its
offsets are the sums of both offsets, so each byte has one place. Offsets lie at the beginnings of lines. The module
needs the standard library alone, because an executor writes the index; no byte of a log is lost, even if the index is
incomplete.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Callable, Iterator, Mapping

from howdah.spec.units import LATEST_S

STREAMS = ("stdout", "stderr")
BOTH, TIMES = "both", "times"
Read = Callable[[str, int, int], tuple[int, bytes]]
"""`read(stream, offset, limit)` returns the offset of the bytes and the bytes; the offset is greater than the requested
one if the bytes before are no longer kept."""


_TOO_MANY = 1 << 60
"""More bytes, or lines, than any stream has; a damaged index may contain such numbers."""


class StreamIndex:
    """Holds the index in memory: 40 bytes a line."""

    def __init__(self) -> None:
        self.times, self.stdout, self.stderr = array("d"), array("q"), array("q")
        self._lines = {name: array("q") for name in STREAMS}

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def parse(cls, text: bytes) -> StreamIndex:
        """Return the index that the file's text holds; malformed lines, and lines that go back, are skipped."""
        order = cls()
        for line in text.split(b"\n"):
            try:
                time, stdout, stderr, out_lines, err_lines = line.split()
                moment, out, err = float(time), (int(stdout), int(out_lines)), (int(stderr), int(err_lines))
            except ValueError:
                continue
            if 0 <= moment <= LATEST_S and all(0 <= number < _TOO_MANY for number in (*out, *err)):
                order.add(moment, out, err)
        return order

    def add(self, time: float, out: tuple[int, int], err: tuple[int, int]) -> None:
        """Add a line: the bytes from these places of the streams on, each given as (offset, lines before it), were
        printed at `time`."""
        (stdout, out_lines), (stderr, err_lines) = out, err
        if self.times and (stdout < self.stdout[-1] or stderr < self.stderr[-1]):
            return
        self.times.append(time)
        self.stdout.append(stdout)
        self.stderr.append(stderr)
        self._lines["stdout"].append(out_lines)
        self._lines["stderr"].append(err_lines)

    def line(self, number: int) -> str:
        """Return a line of the index in the form of the file."""
        out, err = (self.place(name, number) for name in STREAMS)
        return f"{self.times[number]:.3f} {out[0]} {err[0]} {out[1]} {err[1]}\n"

    def place(self, stream: str, number: int) -> tuple[int, int]:
        """Return the offset in a stream (or in `both`) that line `number` of the index holds, and the number of lines
        before it."""
        names = STREAMS if stream == BOTH else (stream,)
        return self._offset(stream, number), sum(self._lines[name][number] for name in names)

    def before(self, stream: str, offset: int) -> tuple[int, int]:
        """Return the last place in the index at or before `offset`, in the form of `place`."""
        number = self._line_at(stream, offset)
        return self.place(stream, number) if number >= 0 else (0, 0)

    def when(self, stream: str, offset: int) -> float | None:
        """Return the time at which the byte at `offset` of `stream` was printed; None when it is not known."""
        number = self._line_at(stream, offset)
        return self.times[number] if number >= 0 else None

    def _line_at(self, stream: str, offset: int) -> int:
        """Return the number of the last line whose offset is not greater; -1 if there is none."""
        if stream == BOTH:
            return _last_that_holds(len(self), lambda number: self._offset(BOTH, number) <= offset)
        return bisect.bisect_right(self.stdout if stream == "stdout" else self.stderr, offset) - 1

    def between(self, stream: str, begin: int, end: int) -> range:
        """Return the numbers of the lines whose offsets lie after `begin` and before `end`."""
        return range(self._line_at(stream, begin) + 1, self._line_at(stream, end - 1) + 1)

    def span(self, stream: str, since: float, until: float) -> tuple[int, int]:
        """Return the offsets that enclose all bytes of `stream` that were printed, or may have been printed, in a span
        of time."""
        numbers = range(len(self))
        first = next((number for number in numbers if self.times[number] >= since), len(self))
        last = next((number for number in reversed(numbers) if self.times[number] <= until), -1)
        end = 1 << 62
        if not numbers or self._offset(stream, 0) > 0:  # the time of the first bytes is not known
            first = 0
        start = 0 if first == 0 else self._offset(stream, first) if first < len(self) else end
        return start, self._offset(stream, last + 1) if last + 1 < len(self) else end

    def _offset(self, stream: str, number: int) -> int:
        if stream == BOTH:
            return self.stdout[number] + self.stderr[number]
        return (self.stdout if stream == "stdout" else self.stderr)[number]

    def pieces(self, sizes: Mapping[str, int], position: int) -> Iterator[tuple[int, str, int, int]]:
        """Yield (place in the merged stream, stream, from, to) in order, beginning with the piece that holds
        `position`."""

        def offset(stream: str, number: int) -> int:
            if number < 0:
                return 0
            return sizes[stream] if number >= len(self) else min(self._offset(stream, number), sizes[stream])

        number = _last_that_holds(len(self), lambda at: sum(offset(stream, at) for stream in STREAMS) <= position)
        while number < len(self):
            place = sum(offset(stream, number) for stream in STREAMS)
            for stream in STREAMS:
                begin, end = offset(stream, number), offset(stream, number + 1)
                if begin < end:
                    yield place, stream, begin, end
                    place += end - begin
            number += 1


def read_both(order: StreamIndex, sizes: Mapping[str, int], read: Read, offset: int, limit: int) -> tuple[int, bytes]:
    """Return up to `limit` bytes of the merged stream from `offset` on (from its end if negative), and their offset."""
    whole = sum(sizes[stream] for stream in STREAMS)
    offset = max(0, whole + offset) if offset < 0 else offset
    found: list[bytes] = []
    start, left = whole, limit
    for place, stream, begin, end in order.pieces(sizes, offset):
        skipped = max(0, offset - place)
        begin, place = begin + skipped, place + skipped
        while begin < end and left > 0:
            at, data = read(stream, begin, min(end - begin, left))
            if found and (at != begin or not data):
                return start, b"".join(found)  # a gap follows: the next call begins after it
            if at >= end or not data:
                break
            data = data[: end - at]
            place += at - begin
            start = start if found else place
            found.append(data)
            begin, place, left = at + len(data), place + len(data), left - len(data)
        if left <= 0:
            break
    return start, b"".join(found)


def _last_that_holds(count: int, holds: Callable[[int], bool]) -> int:
    """Return the last number below `count` for which `holds` is true, given that it is true for all before it; -1 if
    there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle + 1
        else:
            high = middle
    return low - 1
