"""Reads Hadoop's TFile, the format of aggregated logs: records of (key, value) in blocks, compressed with zlib or not.

The layout is that of org.apache.hadoop.io.file.tfile (TFile, BCFile, Chunk, Utils). A file is read forward in pieces,
because a value may be larger than memory. A block ends with the record that makes it larger than 256 KiB, and the file
names each block's last key. So finding one record takes reading that record, and less than 256 KiB of each other block
that may hold it.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Collection, Iterator
from typing import BinaryIO

from howdah.spec.values import dataclass

MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
INDEX, KEYS = "data:BCFile.index", "data:TFile.index"
PIECE = 1 << 16
_TAIL = struct.Struct(">qhh16s")  # offset of the meta index, major and minor version, magic


class TFileError(ValueError):
    """Not a TFile, a damaged one, or one compressed in a way we can't read."""


class Stream:
    """Reads a run of bytes forward: `size` bytes of a file from `offset`, decompressed. A file has one open stream
    at a time."""

    def __init__(self, file: BinaryIO, offset: int, size: int, compression: str) -> None:
        if compression not in ("none", "gz"):
            raise TFileError(f"compressed with {compression}: only none and gz can be read")
        self._file, self._left, self._buffer = file, size, b""
        file.seek(offset)
        self._inflate = zlib.decompressobj(wbits=47) if compression == "gz" else None

    def _fill(self) -> bool:
        """Get more bytes into the buffer; false at the end."""
        if self._left == 0:
            return False
        raw = self._file.read(min(PIECE, self._left))
        if not raw:
            raise TFileError("cut off")
        self._left -= len(raw)
        try:
            self._buffer += self._inflate.decompress(raw) if self._inflate else raw
        except zlib.error as error:
            raise TFileError(str(error)) from None
        return True

    def at_end(self) -> bool:
        """Return whether nothing is left."""
        while not self._buffer:
            if not self._fill():
                return True
        return False

    def some(self, max_bytes: int) -> bytes:
        """Return at least one byte and at most `max_bytes`."""
        if self.at_end():
            raise TFileError("cut off")
        data, self._buffer = self._buffer[:max_bytes], self._buffer[max_bytes:]
        return data

    def read_exactly(self, size: int) -> bytes:
        """Return exactly `size` bytes."""
        parts = []
        while size > 0:
            parts.append(self.some(size))
            size -= len(parts[-1])
        return b"".join(parts)

    def vlong(self) -> int:
        """Read a number as Utils.readVLong of the tfile package does (not WritableUtils'): 1 to 9 bytes; the first byte
        tells how many."""
        first = int.from_bytes(self.read_exactly(1), "big", signed=True)
        for floor, bias, length in ((-32, 0, 0), (-72, 52, 1), (-104, 88, 2), (-120, 112, 3)):
            if first >= floor:
                return (first + bias) << (8 * length) | int.from_bytes(self.read_exactly(length), "big")
        return int.from_bytes(self.read_exactly(first + 129), "big", signed=True)

    def text(self) -> str:
        """Read a string preceded by its length."""
        return self.read_exactly(self.vlong()).decode()


class TFileValue:
    """The value of one record, in chunks of which all but the last have a negative length."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._left, self._last = stream, 0, False

    def some(self, max_bytes: int) -> bytes:
        """Return at most `max_bytes` bytes, none at the end."""
        while self._left == 0:
            if self._last:
                return b""
            length = self._stream.vlong()
            self._left, self._last = abs(length), length >= 0
        data = self._stream.some(min(max_bytes, self._left))
        self._left -= len(data)
        return data

    def read_exactly(self, size: int) -> bytes:
        """Return exactly `size` bytes, fewer at the end."""
        data = bytearray()
        while len(data) < size:
            piece = self.some(size - len(data))
            if not piece:
                break
            data += piece
        return bytes(data)

    def skip(self) -> None:
        """Skip the rest of the value."""
        while self.some(PIECE):
            pass


@dataclass(frozen=True)
class Block:
    """One data block."""

    offset: int
    """Its position in the file."""
    stored: int
    """Its size as stored."""
    compression: str
    last: bytes = b""
    """The key of its last record."""
    count: int = 0
    """The number of its records; 0 if the file does not say."""

    def worth(self, keys: Collection[bytes] | None) -> int:
        """Return how many of its records must be read to find these keys, or all; -1: until the block ends."""
        if keys is None or not self.count:
            return -1
        return self.count if self.last in keys else self.count - 1


def records(file: BinaryIO, keys: Collection[bytes] | None = None) -> Iterator[tuple[bytes, TFileValue]]:
    """Yield the records with these keys, or all, in order. When the next record is asked for, the rest of the last
    value is skipped.

    Raises:
        TFileError: the file is damaged.
    """
    for block in _blocks(file):
        left = block.worth(keys)
        if left == 0:
            continue
        stream = Stream(file, block.offset, block.stored, block.compression)
        while left and not stream.at_end():
            key = stream.read_exactly(stream.vlong())
            value = TFileValue(stream)
            if keys is None or key in keys:
                yield key, value
            left -= 1
            if left:
                value.skip()


def _blocks(file: BinaryIO) -> list[Block]:
    """Return every data block."""
    metas = _meta_blocks(file)
    if INDEX not in metas:
        raise TFileError("it has no block index")
    index = metas[INDEX]
    default = index.text()
    positions = [(index.vlong(), index.vlong(), index.vlong())[:2] for _ in range(index.vlong())]
    lasts = _last_keys(metas[KEYS], len(positions)) if KEYS in metas else []
    if len(lasts) != len(positions):
        return [Block(*position, default) for position in positions]
    return [Block(*position, default, *last) for position, last in zip(positions, lasts, strict=True)]


def _meta_blocks(file: BinaryIO) -> dict[str, Stream]:
    """Return the blocks that describe the others, by name."""
    file.seek(0, io.SEEK_END)
    size = file.tell()
    if size < _TAIL.size:
        raise TFileError("too short for a TFile")
    file.seek(size - _TAIL.size)
    start, _, _, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != MAGIC:
        raise TFileError("not a TFile, or not written to its end yet")
    meta = Stream(file, start, size - _TAIL.size - start, "none")
    entries = [(meta.text(), meta.text(), meta.vlong(), meta.vlong(), meta.vlong()) for _ in range(meta.vlong())]
    found = {}
    for name, compression, offset, stored, _ in entries:
        if name in (INDEX, KEYS):
            file.seek(offset)
            found[name] = Stream(io.BytesIO(file.read(stored)), 0, stored, compression)
    return found


def _last_keys(index: Stream, count: int) -> list[tuple[bytes, int]]:
    """Return the last key of each of `count` blocks, and its number of records (TFile.TFileIndex); they follow the
    file's first key."""
    if index.at_end() or not (size := index.vlong()):
        return []
    index.read_exactly(size)
    found = []
    for _ in range(count):
        size = index.vlong()
        entry = Stream(io.BytesIO(index.read_exactly(size)), 0, size, "none")
        found.append((entry.read_exactly(entry.vlong()), entry.vlong()))
    return found
