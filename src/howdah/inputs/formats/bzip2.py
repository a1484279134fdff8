"""Reads the blocks of a bzip2 file that begin in a split: each can be decompressed by itself.

A block begins at any bit, with the 48 bits 0x314159265359 (pi); a stream ends with 0x177245385090 (its root) and a sum.
As in Hadoop's BZip2Codec, a block belongs to the split in which its first bit lies.
"""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from typing import BinaryIO

from howdah.inputs.formats.base import Corrupt

BLOCK, END = 0x314159265359, 0x177245385090
_MAGIC_BITS, _SUM_BITS = 48, 32
_READ = 1 << 20
# A block is at most 900 kB before compression, and data that cannot be compressed grows little.
_MAX_BLOCK = 4 << 20


def blocks(file: BinaryIO, uri: str, start: int, end: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the content of each block that begins at byte `start` or later, and whether it begins at `end` or later.

    Raises:
        Corrupt: the file is cut, or a block's sum is wrong.
    """
    marks = _Marks(file, uri, start)
    mark = next(marks, None)
    if mark is None and start == 0 and file.seek(0, 2) > 0:
        raise Corrupt.at(uri, 0, "bzip2: no block in the file")
    while mark is not None:
        next_mark = next(marks, None)
        if mark[1] == BLOCK:
            if next_mark is None:
                raise Corrupt.at(uri, mark[0] // 8, "bzip2: the file is cut within the block that begins here")
            yield _decompress(uri, mark[0], marks.bits(mark[0], next_mark[0])), mark[0] // 8 >= end
        elif next_mark is None and marks.end < mark[0] + _MAGIC_BITS + _SUM_BITS:
            raise Corrupt.at(uri, marks.end // 8, "bzip2: the file is cut: its last sum is not all there")
        marks.drop_before(next_mark[0] // 8 if next_mark else 0)
        mark = next_mark


def _decompress(uri: str, at: int, block: tuple[int, int]) -> bytes:
    """Decompress a block as a stream of its own. A stream's sum over one block is the block's sum: the 32 bits after
    its mark."""
    value, bits = block
    total = value >> (bits - 80) & 0xFFFFFFFF
    value = value << 80 | END << 32 | total
    bits += 80
    value <<= -bits % 8
    try:
        return bz2.decompress(b"BZh9" + value.to_bytes((bits + 7) // 8, "big"))
    except (OSError, ValueError) as error:
        raise Corrupt.at(uri, at // 8, f"bzip2: the block that begins here can't be read: {error}") from error


class _Marks:
    """Yields where blocks and streams begin and end: pairs of a bit of the file and the mark found there."""

    def __init__(self, file: BinaryIO, uri: str, start: int) -> None:
        self._file, self._uri = file, uri
        file.seek(start)
        self._held, self._base = b"", start
        self._searched = start * 8
        self._found: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self

    def __next__(self) -> tuple[int, int]:
        while not self._found:
            data = self._file.read(_READ)
            if not data:
                raise StopIteration
            if len(self._held) > _MAX_BLOCK:
                raise Corrupt.at(self._uri, self._base, f"bzip2: a block of more than {_MAX_BLOCK} bytes")
            self._held += data
            self._search()
        return self._found.pop(0)

    @property
    def end(self) -> int:
        """Return the number of bits of the file that have been read: all of them if there is no further mark."""
        return (self._base + len(self._held)) * 8

    def bits(self, first: int, last: int) -> tuple[int, int]:
        """Return the bits from `first` up to `last` as a number, and the number of these bits."""
        data = self._held[first // 8 - self._base : (last + 7) // 8 - self._base]
        value = int.from_bytes(data, "big") >> (-last % 8)
        return value & ((1 << (last - first)) - 1), last - first

    def drop_before(self, byte: int) -> None:
        """Drop the bytes before a byte of the file."""
        if byte > self._base:
            self._held, self._base = self._held[byte - self._base :], byte

    def _search(self) -> None:
        end = (self._base + len(self._held)) * 8 - _MAGIC_BITS
        found = [hit for shift in range(8) for mark in (BLOCK, END) for hit in self._marks_at_shift(mark, shift)]
        self._found = sorted(hit for hit in found if self._searched <= hit[0] <= end)
        self._searched = max(self._searched, end + 1)

    def _marks_at_shift(self, mark: int, shift: int) -> Iterator[tuple[int, int]]:
        """Yield the marks that begin `shift` bits after a byte's first bit. Five whole bytes of the mark are searched,
        and the bits at its ends compared."""
        spread = mark << (8 - shift)  # 56 bits, of which the first `shift` and the last `8 - shift` are not its own
        inner = (spread >> 8 & ((1 << 40) - 1)).to_bytes(5, "big")
        kept = ((1 << 48) - 1) << (8 - shift)
        at = max(1, self._searched // 8 - self._base)
        while (at := self._held.find(inner, at)) >= 0:
            around = int.from_bytes(self._held[at - 1 : at + 6].ljust(7, b"\0"), "big")
            if around & kept == spread:
                yield (self._base + at - 1) * 8 + shift, mark
            at += 1
