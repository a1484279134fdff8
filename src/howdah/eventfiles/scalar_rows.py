"""Reads rows of scalars. A program that logs the same scalars at each step writes the same records again and again,
except for times, steps and values. Many rows are compared with the first at once, as one large integer, and have one
checksum. `scalar_columns` reads the rows that differ or whose checksums are wrong."""

from __future__ import annotations

import functools
import sys
from array import array
from collections.abc import Callable
from typing import Any

from howdah.eventfiles.event_batch import Points
from howdah.eventfiles.record_framing import crc32c_or_none, length_of
from howdah.eventfiles.scalar_columns import Layout, PointsCallback, layout
from howdah.inputs.formats import framing
from howdah.spec.values import dataclass

MIN_ROWS = 16
"""The least number of rows for which this is worth it."""
_BLOCK_ROWS = (1024, 256, 64, MIN_ROWS)
_MAX_RECORDS = 128
_MAX_STEP_BYTES = 8  # bytes of a varint that fit into a lane of 64 bits
_ONES, _POLYNOMIAL = 0xFFFFFFFF, 0x82F63B78


@dataclass(frozen=True)
class RecordRow:
    """Describes the records of one step."""

    size: int
    """The bytes of a row."""
    records: tuple[tuple[int, Layout], ...]
    """The position of each record in the row, and its layout."""
    mask: bytes
    """The bits that are the same in all rows."""
    same: bytes
    """The values of the bits in `mask`."""

    def holds(self, block: bytes, count: int) -> bool:
        """Return whether `block` consists of `count` rows like this one, with correct checksums."""
        is_same = int.from_bytes(block, "little") & _row_in_lanes(self.mask, count) == _row_in_lanes(self.same, count)
        return is_same and self._has_correct_sums(block, count)

    def _has_correct_sums(self, block: bytes, count: int) -> bool:
        """Check the checksums of all records at once.

        Bytes followed by their own CRC always have the same CRC, whatever the bytes are. From that state, four known
        bytes bring the CRC back to its beginning for the next record. These four replace the checksum of the length,
        which has been compared already."""
        crc32c = crc32c_or_none()
        if crc32c is None:
            return True
        data, rest = bytearray(block), crc32c(bytes(4))
        for at, found in self.records:
            again = (crc32c(bytes(4) + block[at : at + 8]) ^ _ONES ^ _before_ones()).to_bytes(4, "little")
            end = at + found.length - 4
            sums = _unmask_crcs(_lanes(block, end, 4, self.size, count), count)
            for number in range(4):
                data[at + 8 + number :: self.size] = again[number : number + 1] * count
                data[end + number :: self.size] = sums[number::8]
        return crc32c(bytes(memoryview(data)[12:])) == rest

    def points(self, block: bytes, count: int, at: int, number: int) -> Points:
        """Return the points of record `number` of each row of `block`, which begins at byte `at` of the file."""
        begins, found = self.records[number]
        walls = _array("d", _column(block, begins + found.wall, 8, self.size, count, 8))
        width = 4 if found.format == "f" else 8
        values = _array(found.format, _column(block, begins + found.value, width, self.size, count, width))
        start, end = found.step
        steps = _steps(_lanes(block, begins + start, end - start, self.size, count), end - start, count)
        offsets = range(at + begins, at + begins + count * self.size, self.size)
        return Points(offsets, steps, walls, values if found.format == "d" else array("d", values.tolist()))


def decode_rows(
    data: bytes, at: int, is_scalar: Callable[[bytes], bool], add_points: PointsCallback
) -> tuple[int, int]:
    """Pass the points of the rows from `at` on to `add_points`. Return the end of the rows, and the bytes of one row.
    `is_scalar` tells whether a frame has a scalar."""
    row = _row(data, at, is_scalar)
    if row is None:
        return at, 0
    for count in _BLOCK_ROWS:
        size = count * row.size
        while at + size <= len(data) and row.holds(block := data[at : at + size], count):
            for number, (_, found) in enumerate(row.records):
                add_points(found.tag, row.points(block, count, at, number))
            at += size
    return at, row.size


def _row(data: bytes, at: int, is_scalar: Callable[[bytes], bool]) -> RecordRow | None:
    """Return the row that begins at `at` and ends at the next occurrence of its first tag."""
    records: list[tuple[int, Layout]] = []
    position = at
    while len(records) <= _MAX_RECORDS and position + 12 <= len(data):
        length = length_of(data[position : position + 12])
        frame = data[position : position + length]
        found = layout(frame) if 0 < length == len(frame) else None
        if found is None or found.step[1] - found.step[0] > _MAX_STEP_BYTES:
            return None
        if records and found.tag == records[0][1].tag:
            return _masked_row(data[at:position], records)
        if not is_scalar(frame):
            return None
        records.append((position - at, found))
        position += length
    return None


def _masked_row(row: bytes, records: list[tuple[int, Layout]]) -> RecordRow:
    mask = bytearray(b"\xff" * len(row))
    for at, found in records:
        width = 4 if found.format == "f" else 8
        for start, size in ((found.wall, 8), (found.value, width), (found.length - 4, 4)):
            mask[at + start : at + start + size] = bytes(size)
        start, end = found.step
        mask[at + start : at + end] = b"\x80" * (end - start)  # a varint's length is the same in all
    same = bytes(one & other for one, other in zip(row, mask, strict=True))
    return RecordRow(len(row), tuple(records), bytes(mask), same)


@functools.lru_cache(48)
def _row_in_lanes(row: bytes, count: int) -> int:
    return int.from_bytes(row * count, "little")


def _column(block: bytes, at: int, width: int, size: int, count: int, lane: int) -> bytearray:
    """Return the `width` bytes at `at` of each row, in lanes of `lane` bytes."""
    column = bytearray(lane * count)
    for number in range(width):
        column[number::lane] = block[at + number :: size]
    return column


def _lanes(block: bytes, at: int, width: int, size: int, count: int) -> int:
    """Return the `width` bytes at `at` of each row as one large integer with a lane of 64 bits for each row."""
    return int.from_bytes(_column(block, at, width, size, count, 8), "little")


@functools.lru_cache(len(_BLOCK_ROWS))
def _ones_in_lanes(count: int) -> int:
    return int.from_bytes(b"\1\0\0\0\0\0\0\0" * count, "little")


def _unmask_crcs(sums: int, count: int) -> bytes:
    """Compute the inverse of `framing.mask_crc` for all lanes."""
    each = _ones_in_lanes(count)
    sums = sums + each * ((_ONES + 1) - framing.MASK) & each * _ONES
    return (sums >> 17 & each * 0x7FFF | sums << 15 & each * _ONES).to_bytes(8 * count, "little")


def _steps(varints: int, width: int, count: int) -> array[int]:
    each, found = _ones_in_lanes(count), 0
    for number in range(width):
        found |= varints >> number & each * (0x7F << 7 * number)
    return _array("q", found.to_bytes(8 * count, "little"))


def _array(code: str, data: bytes | bytearray) -> array[Any]:
    found: array[Any] = array(code)
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


@functools.cache
def _before_ones() -> int:
    """Return the CRC-32C state that four zero bytes turn into the initial state."""
    value = _ONES
    for _ in range(32):
        value = ((value ^ _POLYNOMIAL) << 1 | 1) & _ONES if value >> 31 else value << 1
    return value
