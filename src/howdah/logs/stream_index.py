"""In which order, and when, a task printed to its two streams: a short index beside them, the file `times`.

Each line of it, `time stdout stderr lines lines`, says that what lies in the streams from these offsets on came at that
moment or later, before the next line's, and how many lines of each stream lie before. The merged stream is what lies
between two lines, standard output first, one after the other: its offsets are the sums of both, so every byte has one
place in it. Offsets are at beginnings of lines. Nothing but the standard library is needed (an executor writes it);
whatever the index lacks, no byte is lost.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping

STREAMS = ("stdout", "stderr")
BOTH, TIMES = "both", "times"
Read = Callable[[str, int, int], tuple[int, bytes]]
"""`read(stream, offset, limit)` gives bytes and where they begin: further on than asked, if some are not kept."""


class StreamIndex:
    """The index, in memory: 40 bytes a line."""

    def __init__(self) -> None:
        self.times, self.stdout, self.stderr = array("d"), array("q"), array("q")
        self._lines = {name: array("q") for name in STREAMS}

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def parse(cls, text: bytes) -> StreamIndex:
        """From the file; lines that are none, or go back, are passed over."""
        order = cls()
        for line in text.split(b"\n"):
            words = line.split()
            if len(words) == 5:
                try:
                    order.add(float(words[0]), (int(words[1]), int(words[3])), (int(words[2]), int(words[4])))
                except ValueError:
                    continue
        return order

    def add(self, time: float, out: tuple[int, int], err: tuple[int, int]) -> None:
        """From these places of the streams on, (offset, lines before it), it came at `time`."""
        (stdout, out_lines), (stderr, err_lines) = out, err
        if self.times and (stdout < self.stdout[-1] or stderr < self.stderr[-1]):
            return
        self.times.append(time)
        self.stdout.append(stdout)
        self.stderr.append(stderr)
        self._lines["stdout"].append(out_lines)
        self._lines["stderr"].append(err_lines)

    def line(self, number: int) -> str:
        """As it stands in the file."""
        out, err = (self.place(name, number) for name in STREAMS)
        return f"{self.times[number]:.3f} {out[0]} {err[0]} {out[1]} {err[1]}\n"

    def place(self, stream: str, number: int) -> tuple[int, int]:
        """The offset in a stream, and how many lines lie before it, that line `number` of the index tells."""
        return self._offset(stream, number), self._lines[stream][number]

    def before(self, stream: str, offset: int) -> tuple[int, int]:
        """The last such place at or before `offset`."""
        number = _last(len(self), lambda one: self._offset(stream, one) <= offset)
        return self.place(stream, number) if number >= 0 else (0, 0)

    def when(self, stream: str, offset: int) -> float | None:
        """When the byte at `offset` of `stream` came, as exactly as is known; None when nothing is."""
        number = _last(len(self), lambda one: self._offset(stream, one) <= offset)
        return self.times[number] if number >= 0 else None

    def span(self, stream: str, since: float, until: float) -> tuple[int, int]:
        """Offsets between which all bytes of `stream` lie that came in a span of time, or may have."""
        numbers = range(len(self))
        first = next((one for one in numbers if self.times[one] >= since), len(self))
        last = next((one for one in reversed(numbers) if self.times[one] <= until), -1)
        end = 1 << 62
        if not numbers or self._offset(stream, 0) > 0:  # when the first bytes came is not known
            first = 0
        start = 0 if first == 0 else self._offset(stream, first) if first < len(self) else end
        return start, self._offset(stream, last + 1) if last + 1 < len(self) else end

    def _offset(self, stream: str, number: int) -> int:
        return (self.stdout if stream == "stdout" else self.stderr)[number]

    def pieces(self, sizes: Mapping[str, int], position: int) -> Iterator[tuple[int, str, int, int]]:
        """(place in the merged stream, stream, from, to), in order, from the one that holds `position` on."""

        def offset(stream: str, number: int) -> int:
            if number < 0:
                return 0
            return sizes[stream] if number >= len(self) else min(self._offset(stream, number), sizes[stream])

        number = _last(len(self), lambda one: sum(offset(stream, one) for stream in STREAMS) <= position)
        while number < len(self):
            place = sum(offset(stream, number) for stream in STREAMS)
            for stream in STREAMS:
                begin, end = offset(stream, number), offset(stream, number + 1)
                if begin < end:
                    yield place, stream, begin, end
                    place += end - begin
            number += 1


def read_both(order: StreamIndex, sizes: Mapping[str, int], read: Read, offset: int, limit: int) -> tuple[int, bytes]:
    """Up to `limit` bytes of the merged stream from `offset` on (from its end if negative), and where they begin."""
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
                return start, b"".join(found)  # what follows is not kept: the next call begins after it
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


def _last(count: int, holds: Callable[[int], bool]) -> int:
    """The last number below `count` for which it holds, given that it does for all before; -1 for none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle + 1
        else:
            high = middle
    return low - 1
