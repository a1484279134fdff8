"""Reads thousands of scalars at once. Records of one length differ only in time, step and value. The first record shows
the positions of these, and one `struct` format splits all records into columns. All other bytes are compared, and
`events` reads the records that differ."""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from howdah.eventfiles.event_batch import Points
from howdah.spec.values import dataclass

MIN_RECORDS = 4
"""The least number of records for which columns are worth it."""
_MAX_LAYOUTS = 8
_MAX_CACHED_STEPS = 1 << 18
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FORMATS = {(1, 4): "f", (2, 8): "d"}  # by a tensor's type (types.proto) and the bytes of one number
PointsCallback = Callable[[bytes, "Points"], object]
"""A function that takes a tag and its points."""
Field = tuple[int, int, int]
"""The wire type of a protobuf field, and the beginning and the end of its content."""


@dataclass(frozen=True)
class Layout:
    """The positions of the numbers in the frame of a scalar."""

    length: int
    """The bytes of the frame."""
    tag: bytes
    wall: int
    """Where the wall time begins."""
    step: tuple[int, int]
    """The beginning and the end of the step's varint; both are the same if the step is 0, which is not written."""
    value: int
    """Where the value begins."""
    format: str
    """The value's format: `f` or `d`."""


def layout(frame: bytes) -> Layout | None:
    """Return the layout of a frame whose event has one scalar and nothing else; None for any other frame."""
    try:
        event = _message(frame, 12, len(frame) - 4)
        value = _only_field(frame, _only_field(frame, event[5], 1), None)
        if event.keys() - {1, 2, 5} or value.keys() - {1, 2, 8, 9} or event[1][0] != _FIXED64:
            return None
        at, form = _tensor(frame, value[8]) if 8 in value else (value[2][1], "f")
        if 8 not in value and value[2][0] != _FIXED32:
            return None
        step = event.get(2, (_VARINT, 12, 12))
        tag = frame[value[1][1] : value[1][2]]
    except (KeyError, ValueError, IndexError):
        return None
    return Layout(len(frame), tag, event[1][1], step[1:], at, form) if step[0] == _VARINT else None


def _only_field(frame: bytes, outer: Field, number: int | None) -> Any:
    """Return the only field of a message, which must be `number`; all fields if `number` is None."""
    if outer[0] != _BYTES:
        raise ValueError
    fields = _message(frame, outer[1], outer[2])
    if number is None:
        return fields
    if fields.keys() != {number}:
        raise ValueError
    return fields[number]


def _tensor(frame: bytes, outer: Field) -> tuple[int, str]:
    """Return the position of the number in a one-number tensor, and its format."""
    fields = _only_field(frame, outer, None)
    kind = _varint(frame, fields[1][1])[0] if fields[1][0] == _VARINT else -1
    (number,) = fields.keys() & {4, 5, 6}
    _, start, end = fields[number]
    if fields.keys() - {1, 2, 3, 4, 5, 6} or number not in (4, kind + 4):
        raise ValueError
    return start, _FORMATS[kind, end - start]


def _message(data: bytes, position: int, end: int) -> dict[int, Field]:
    """Return the fields of a message; each field may occur only once."""
    found: dict[int, Field] = {}
    while position < end:
        tag, position = _varint(data, position)
        wire, number, start = tag & 7, tag >> 3, position
        if wire == _BYTES:
            size, start = _varint(data, position)
            position = start + size
        elif wire == _VARINT:
            position = _varint(data, position)[1]
        else:
            position += {_FIXED64: 8, _FIXED32: 4}[wire]
        if number in found:
            raise ValueError
        found[number] = wire, start, position
    if position != end:
        raise ValueError
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise ValueError


class _Steps(dict[bytes, int]):
    """Caches the number of each varint; the same steps come for each tag of each run."""

    def __missing__(self, data: bytes) -> int:
        value, end = _varint(data, 0)
        if end != len(data):
            raise ValueError
        if len(self) >= _MAX_CACHED_STEPS:
            self.clear()
        self[data] = value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
        return value


_STEPS = _Steps()


def decode_columns(
    frames: list[bytes], offsets: list[int], is_scalar: Callable[[bytes], bool], add_points: PointsCallback
) -> list[tuple[int, bytes]]:
    """Pass the points of frames of one length, which begin at `offsets`, to `add_points`, tag by tag; return the
    offsets and frames of the rest. `is_scalar` tells whether a frame has a scalar."""
    for _ in range(_MAX_LAYOUTS):
        found = layout(frames[0]) if len(offsets) >= MIN_RECORDS else None
        if found is None or not is_scalar(frames[0]):
            break
        parts, others = _columns_by_tag(frames, found, offsets)
        frames, offsets = [frames[number] for number in others], [offsets[number] for number in others]
        for tag, points in parts:
            add_points(tag, points)
    return list(zip(offsets, frames, strict=True))


def _columns_by_tag(
    frames: list[bytes], found: Layout, offsets: list[int]
) -> tuple[list[tuple[bytes, Points]], list[int]]:
    """Return the points of each tag of this layout, and the numbers of the frames that have another layout."""
    row, fixed, numbers = _row(found)
    columns = list(zip(*row.iter_unpack(b"".join(frames)), strict=True))
    same = [columns[item] for item in fixed]
    if all(len(set(column)) == 1 for column in same):
        return [(found.tag, _points(offsets, columns, numbers))], []
    where: dict[Any, list[int]] = defaultdict(list)
    for number, key in enumerate(zip(*same, strict=True)):
        where[key].append(number)
    parts, others = [], []
    for rows in where.values():
        # A frame of another layout may have anything in these places, so the first of each group is checked anew.
        other = layout(frames[rows[0]]) if len(rows) >= MIN_RECORDS or rows[0] == 0 else None
        if other is not None and replace(other, tag=found.tag) == found:
            picked = [tuple([column[number] for number in rows]) for column in columns]
            parts.append((other.tag, _points([offsets[number] for number in rows], picked, numbers)))
        else:
            others += rows
    return parts, sorted(others)


def _points(offsets: list[int], columns: list[tuple[Any, ...]], numbers: tuple[int, int, int]) -> Points:
    wall, step, value = numbers
    steps = array("q", map(_STEPS.__getitem__, columns[step])) if step >= 0 else array("q", bytes(8 * len(offsets)))
    return Points(offsets, steps, array("d", columns[wall]), array("d", columns[value]))


def _row(layout: Layout) -> tuple[struct.Struct, list[int], tuple[int, int, int]]:
    """Return a frame's format, the items that are equal in frames of one tag, and the items with wall, step and
    value."""
    spans = [(layout.wall, 8, "d"), (layout.value, 4 if layout.format == "f" else 8, layout.format)]
    size = layout.step[1] - layout.step[0]
    if size:
        spans.append((layout.step[0], size, f"{size}s"))
    parts, fixed, items, position = ["<12x"], [], {}, 12
    for start, width, form in [*sorted(spans), (layout.length - 4, 4, "4x")]:
        if start > position:
            fixed.append(len(parts) - 1)
            parts.append(f"{start - position}s")
        items[start] = len(parts) - 1
        parts.append(form)
        position = start + width
    numbers = items[layout.wall], items[layout.step[0]] if size else -1, items[layout.value]
    return struct.Struct("".join(parts)), fixed, numbers
