"""Reads Hadoop's Writables as bytes: text unchanged, numbers in decimal, BytesWritable's content, others as stored."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

IO = "org.apache.hadoop.io."
TEXT, BYTES, NULL = f"{IO}Text", f"{IO}BytesWritable", f"{IO}NullWritable"
Spans = list[tuple[int, int]]
"""The beginning and the end of each value."""
# By the first byte of a vint that is a length: how many bytes the vint has, 0 if it is negative
# (WritableUtils.readVLong).
_SKIP = bytes(1 if first < 128 else 145 - first if 136 <= first < 144 else 0 for first in range(256))


class WritableType(NamedTuple):
    """The way in which values of a Java class are read."""

    contents: Callable[[bytes, Spans], list[bytes]]
    """Returns the contents of the values in some bytes, by their spans."""
    binary: bool = False
    """Whether the contents are not text."""
    known: bool = True
    """Whether this module knows the class."""


def kind(name: str) -> WritableType:
    """Return the way in which values of the Java class `name` are read."""
    return _KINDS.get(name, WritableType(_stored, binary=True, known=False))


def vint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length and where it ends (WritableUtils.readVLong).

    Raises:
        IndexError: the number is cut.
    """
    first = data[at]
    if first < 128 or first >= 144:
        return (first if first < 128 else first - 256), at + 1
    size = (136 if first < 136 else 144) - first
    end = at + 1 + size
    if end > len(data):
        raise IndexError("a number is cut")
    value = int.from_bytes(data[at + 1 : end], "big")
    return (~value if first < 136 else value), end


def vints(data: bytes, count: int) -> list[int]:
    """Return `count` numbers that follow each other.

    Raises:
        ValueError: they do not fill `data`.
    """
    if len(data) == count and data.isascii():
        return list(data)
    found, at = [], 0
    try:
        for _ in range(count):
            value, at = vint(data, at)
            found.append(value)
    except IndexError:
        raise ValueError(f"{len(found)} of {count} lengths are there") from None
    if at != len(data) or min(found, default=0) < 0:
        raise ValueError("lengths that can't be")
    return found


def packed_vint(value: int) -> bytes:
    """Return a length as a number of variable length, which `vint` reads (WritableUtils.writeVLong)."""
    if value < 128:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return bytes((144 - size,)) + value.to_bytes(size, "big")


def _text(data: bytes, spans: Spans) -> list[bytes]:
    try:
        found = [data[start + _SKIP[data[start]] : end] for start, end in spans]
    except IndexError:
        raise ValueError("a Text without a length") from None
    for (start, end), content in zip(spans, found, strict=True):
        # Lengths of one byte, and of two, are nearly all.
        first, size = data[start], len(content)
        if first != size and (first != 143 or data[start + 1] != size) and vint(data, start)[0] != size:
            raise ValueError(f"a Text of {end - start} bytes says that it has {vint(data, start)[0]}")
    return found


def _bytes(data: bytes, spans: Spans) -> list[bytes]:
    found = [data[start + 4 : end] for start, end in spans]
    for (start, _), content in zip(spans, found, strict=False):
        if int.from_bytes(data[start : start + 4], "big") != len(content):
            raise ValueError(f"a BytesWritable of {len(content)} bytes says otherwise")
    return found


def _stored(data: bytes, spans: Spans) -> list[bytes]:
    return [data[start:end] for start, end in spans]


def _variable(data: bytes, spans: Spans) -> list[bytes]:
    return [b"%d" % vint(data, start)[0] for start, _ in spans]


def _number(layout: str) -> Callable[[bytes, Spans], list[bytes]]:
    form = struct.Struct(layout)

    def contents(data: bytes, spans: Spans) -> list[bytes]:
        for start, end in spans:
            if end - start != form.size:
                raise ValueError(f"a number of {end - start} bytes, which has {form.size}")
        return [repr(form.unpack_from(data, start)[0]).encode() for start, _ in spans]

    return contents


def _float32_texts(data: bytes, spans: Spans) -> list[bytes]:
    """Return, for each float of four bytes, its shortest decimal number: 0.1, not 0.10000000149, which its double would
    give."""
    return [_shortest_text(value) for value in map(float, _number(">f")(data, spans))]


def _shortest_text(value: float) -> bytes:
    for digits in (6, 7, 8, 9):
        text = f"{value:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return repr(float(text)).encode()
    return repr(value).encode()


_KINDS: dict[str, WritableType] = {
    TEXT: WritableType(_text),
    BYTES: WritableType(_bytes, binary=True),
    NULL: WritableType(lambda _, spans: [b""] * len(spans)),
    f"{IO}IntWritable": WritableType(_number(">i")),
    f"{IO}LongWritable": WritableType(_number(">q")),
    f"{IO}ShortWritable": WritableType(_number(">h")),
    f"{IO}ByteWritable": WritableType(_number(">b")),
    f"{IO}FloatWritable": WritableType(_float32_texts),
    f"{IO}DoubleWritable": WritableType(_number(">d")),
    f"{IO}BooleanWritable": WritableType(lambda data, spans: [(b"false", b"true")[data[at] > 0] for at, _ in spans]),
    f"{IO}VIntWritable": WritableType(_variable),
    f"{IO}VLongWritable": WritableType(_variable),
}
