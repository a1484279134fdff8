"""Determines the lines in a piece of a log, the times at which they were printed and their streams, from the index of
the task's streams.

The rule: a number is the true one or None. If the index has no place in the piece, the lines since the last known place
are counted, provided that this takes few bytes to read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from howdah.logs.stream_index import BOTH, StreamIndex

MAX_COUNTED_BYTES = 4 << 20
"""The most bytes that are read to count the lines before a piece."""
MAX_TIMES = 1000
"""The most times of one piece."""
_READ_BYTES = 512 << 10
ReadLog = Callable[[int, int], Awaitable[tuple[int, bytes]]]
"""Reads a log from an offset on, up to a number of bytes; returns the offset of the bytes, and the bytes."""


def line_times(index: StreamIndex, stream: str, offset: int, data: bytes) -> list[tuple[int, float]]:
    """Return the known times of the lines of `data`, which begins at `offset`: pairs of the number of a line within
    `data`, from 0, and the time since which this line and the lines after it were printed."""
    times: dict[int, float] = {}
    first = index.when(stream, offset)
    if first is not None:
        times[0] = first
    counted = line = 0
    for number in index.between(stream, offset, offset + len(data)):
        at = index.place(stream, number)[0] - offset
        line, counted = line + data.count(b"\n", counted, at), at
        times[line] = index.times[number]
    return list(times.items())[:: 1 + len(times) // MAX_TIMES]


def line_streams(index: StreamIndex, stdout_bytes: int, offset: int, data: bytes) -> list[tuple[int, str]]:
    """Return the streams of the lines of `data`, a piece of both streams that begins at `offset`: pairs of the number
    of a line within `data`, from 0, and the stream to which this line and the lines after it were printed.
    `stdout_bytes` is the size of stdout so far."""
    streams: list[tuple[int, str]] = []
    counted = line = 0
    for place, stream, _, _ in index.pieces({"stdout": stdout_bytes, "stderr": 1 << 62}, offset):
        if place >= offset + len(data):
            break
        at = max(0, place - offset)
        line, counted = line + data.count(b"\n", counted, at), at
        if not streams or streams[-1][1] != stream:
            streams.append((line, stream))
    return streams


def reaches_index_end(index: StreamIndex, end: int) -> bool:
    """Return whether bytes of both streams before `end` came after the last line of the index."""
    return not len(index) or index.place(BOTH, len(index) - 1)[0] < end


async def first_line_number(index: StreamIndex, stream: str, offset: int, data: bytes, read: ReadLog) -> int | None:
    """Return the number, from 1, of the first line of `data`, which begins at `offset` of the stream."""
    known, lines = index.before(stream, offset)
    inside = index.between(stream, offset, offset + len(data))
    if known < offset and inside:
        at, lines_before = index.place(stream, inside[0])
        return lines_before - data.count(b"\n", 0, at - offset) + 1
    if offset - known > MAX_COUNTED_BYTES:
        return None
    while known < offset:
        begin, before = await read(known, min(_READ_BYTES, offset - known))
        if begin != known or not before:
            return None  # the bytes between are not kept
        known, lines = known + len(before), lines + before.count(b"\n")
    return lines + 1
