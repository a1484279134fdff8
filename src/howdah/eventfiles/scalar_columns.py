"""Scalars by the thousand: records of one length differ in a time, a step and a value only, so the first of them tells
where those lie, and all are cut into columns by one format. Every other byte is compared; what differs is not taken.
"""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from howdah.eventfiles.event_batch import Points

FEWEST = 4
"""Fewer records are not worth the trouble."""
_MOST_LEVELS = 8
_MOST_STEPS = 1 << 18
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FORMATS = {(1, 4): "f", (2, 8): "d"}  # by a tensor's type (types.proto) and the bytes of one number
Field = tuple[int, int, int]
"""Its wire type, where its content begins and ends."""


@dataclass(frozen=True)
class Layout:
    """Where in a frame the numbers lie: `step` begins and ends there (the same twice: it is 0, and left out), `value`
    is of format `f` or `d`."""

    length: int
    tag: bytes
    wall: int
    step: tuple[int, int]
    value: int
    format: str


def layout(frame: bytes) -> Layout | None:
    """That of a frame with an event of one scalar and nothing else; None for any other."""
    try:
        event = _message(frame, 12, len(frame) - 4)
        value = _only(frame, _only(frame, event[5], 1), None)
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


def _only(frame: bytes, outer: Field, number: int | None) -> Any:
    """A message's one field `number`; the whole message without it."""
    if outer[0] != _BYTES:
        raise ValueError
    fields = _message(frame, outer[1], outer[2])
    if number is None:
        return fields
    if fields.keys() != {number}:
        raise ValueError
    return fields[number]


def _tensor(frame: bytes, outer: Field) -> tuple[int, str]:
    """Where the number is of a tensor that holds one, and its format."""
    fields = _only(frame, outer, None)
    kind = _message_number(frame, fields[1])
    (number,) = fields.keys() & {4, 5, 6}
    _, start, end = fields[number]
    if fields.keys() - {1, 2, 3, 4, 5, 6} or number not in (4, kind + 4):
        raise ValueError
    return start, _FORMATS[kind, end - start]


def _message(data: bytes, place: int, end: int) -> dict[int, Field]:
    """The fields of a message, each of which must be there once."""
    found: dict[int, Field] = {}
    while place < end:
        tag, place = _varint(data, place)
        wire, number, start = tag & 7, tag >> 3, place
        if wire == _BYTES:
            size, start = _varint(data, place)
            place = start + size
        elif wire == _VARINT:
            place = _varint(data, place)[1]
        else:
            place += {_FIXED64: 8, _FIXED32: 4}[wire]
        if number in found:
            raise ValueError
        found[number] = wire, start, place
    if place != end:
        raise ValueError
    return found


def _message_number(data: bytes, field: Field) -> int:
    return _varint(data, field[1])[0] if field[0] == _VARINT else -1


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError


class _Steps(dict[bytes, int]):
    """The number that a varint is; the same ones come for each tag of each run."""

    def __missing__(self, data: bytes) -> int:
        value, end = _varint(data, 0)
        if end != len(data):
            raise ValueError
        if len(self) >= _MOST_STEPS:
            self.clear()
        self[data] = value = (value + (1 << 63)) % (1 << 64) - (1 << 63)
        return value


_STEPS = _Steps()
Taken = Callable[[bytes, Points], object]


def take(frames: list[bytes], ats: list[int], scalar: Callable[[bytes], bool], taken: Taken) -> list[tuple[int, bytes]]:
    """Hand the points of frames of one length, which lie at `ats`, to `taken`, tag by tag; the places and frames that
    are none of scalars, or are not all alike. `scalar` tells whether a frame is one of a scalar."""
    level = 0
    while ats:
        found = layout(frames[0]) if len(ats) >= FEWEST and level < _MOST_LEVELS else None
        if found is None or not scalar(frames[0]):
            break
        parts, others = _parts(frames, found, ats)
        frames, ats = [frames[number] for number in others], [ats[number] for number in others]
        level += 1
        for tag, points in parts:
            taken(tag, points)
    return list(zip(ats, frames, strict=True))


Columns = list[tuple[Any, ...]]


def _parts(frames: list[bytes], found: Layout, ats: list[int]) -> tuple[list[tuple[bytes, Points]], list[int]]:
    """The points of each tag of this layout; which of the frames are of another."""
    row, fixed, numbers = _row(found)
    columns = list(zip(*row.iter_unpack(b"".join(frames)), strict=True))
    same = [columns[item] for item in fixed]
    if all(len(set(column)) == 1 for column in same):
        return [(found.tag, _points(ats, columns, numbers))], []
    where: dict[Any, list[int]] = defaultdict(list)
    for number, key in enumerate(zip(*same, strict=True)):
        where[key].append(number)
    parts, others = [], []
    for rows in where.values():
        # Under a layout that is not theirs, frames have something of their own in each of these places.
        other = layout(frames[rows[0]]) if len(rows) >= FEWEST or rows[0] == 0 else None
        if other is not None and replace(other, tag=found.tag) == found:
            picked = [tuple([column[number] for number in rows]) for column in columns]
            parts.append((other.tag, _points([ats[number] for number in rows], picked, numbers)))
        else:
            others += rows
    return parts, sorted(others)


def _points(ats: list[int], columns: Columns, numbers: tuple[int, int, int]) -> Points:
    wall, step, value = numbers
    steps = array("q", map(_STEPS.__getitem__, columns[step])) if step >= 0 else array("q", bytes(8 * len(ats)))
    return Points(ats, steps, array("d", columns[wall]), array("d", columns[value]))


def _row(found: Layout) -> tuple[struct.Struct, list[int], tuple[int, int, int]]:
    """The format of a frame; which of its items are the same in all that are alike; which are wall, step and value."""
    spans: list[tuple[int, int, str]] = [
        (found.wall, 8, "d"),
        (found.value, 4 if found.format == "f" else 8, found.format),
    ]
    size = found.step[1] - found.step[0]
    if size:
        spans.append((found.step[0], size, f"{size}s"))
    parts, fixed, items, place = ["<12x"], [], {}, 12
    for start, width, form in [*sorted(spans), (found.length - 4, 4, "4x")]:
        if start > place:
            fixed.append(len(parts) - 1)
            parts.append(f"{start - place}s")
        items[start] = len(parts) - 1
        parts.append(form)
        place = start + width
    return (
        struct.Struct("".join(parts)),
        fixed,
        (items[found.wall], items[found.step[0]] if size else -1, items[found.value]),
    )
