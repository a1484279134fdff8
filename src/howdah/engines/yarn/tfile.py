"""Hadoop's TFile, the format of aggregated logs: records of (key, value) in blocks, compressed with zlib or not.

Layout as in org.apache.hadoop.io.file.tfile (TFile, BCFile, Chunk, Utils). Read forward in pieces: a value may be
larger than memory.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

MAGIC = bytes.fromhex("d111d36891b5d7b639df414092bae150")
INDEX = "data:BCFile.index"
PIECE = 1 << 16
_TAIL = struct.Struct(">qhh16s")  # offset of the meta index, major and minor version, magic


class TFileError(ValueError):
    """Not a TFile, a damaged one, or one compressed in a way we can't read."""


class Stream:
    """A run of bytes read forward: `size` bytes of a file from `offset`, decompressed. One at a time per file."""

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
        """Whether nothing is left."""
        while not self._buffer:
            if not self._fill():
                return True
        return False

    def some(self, most: int) -> bytes:
        """At least one byte and at most `most`."""
        if self.at_end():
            raise TFileError("cut off")
        data, self._buffer = self._buffer[:most], self._buffer[most:]
        return data

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes."""
        parts = []
        while size > 0:
            parts.append(self.some(size))
            size -= len(parts[-1])
        return b"".join(parts)

    def vlong(self) -> int:
        """Utils.readVLong of the tfile package, which is not WritableUtils': 1 to 9 bytes, told by the first."""
        first = int.from_bytes(self.take(1), "big", signed=True)
        for floor, bias, length in ((-32, 0, 0), (-72, 52, 1), (-104, 88, 2), (-120, 112, 3)):
            if first >= floor:
                return (first + bias) << (8 * length) | int.from_bytes(self.take(length), "big")
        return int.from_bytes(self.take(first + 129), "big", signed=True)

    def text(self) -> str:
        """A string preceded by its length."""
        return self.take(self.vlong()).decode()


class Value:
    """One record's value, in chunks of which all but the last have a negative length."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._left, self._last = stream, 0, False

    def some(self, most: int) -> bytes:
        """At most `most` bytes, none at the end."""
        while self._left == 0:
            if self._last:
                return b""
            length = self._stream.vlong()
            self._left, self._last = abs(length), length >= 0
        data = self._stream.some(min(most, self._left))
        self._left -= len(data)
        return data

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer at the end."""
        data = bytearray()
        while len(data) < size:
            piece = self.some(size - len(data))
            if not piece:
                break
            data += piece
        return bytes(data)

    def skip(self) -> None:
        """Read over what is left."""
        while self.some(PIECE):
            pass


def records(file: BinaryIO) -> Iterator[tuple[bytes, Value]]:
    """All records in order; what of a value is not read by the time the next record is asked for is skipped.

    Raises TFileError.
    """
    for offset, size, compression in _blocks(file):
        stream = Stream(file, offset, size, compression)
        while not stream.at_end():
            key = stream.take(stream.vlong())
            value = Value(stream)
            yield key, value
            value.skip()


def _blocks(file: BinaryIO) -> list[tuple[int, int, str]]:
    """(offset, stored size, compression) of every data block."""
    file.seek(0, io.SEEK_END)
    size = file.tell()
    if size < _TAIL.size:
        raise TFileError("too short for a TFile")
    file.seek(size - _TAIL.size)
    start, _, _, magic = _TAIL.unpack(file.read(_TAIL.size))
    if magic != MAGIC:
        raise TFileError("not a TFile, or not written to its end yet")
    meta = Stream(file, start, size - _TAIL.size - start, "none")
    for _ in range(meta.vlong()):
        name, compression = meta.text(), meta.text()
        offset, stored, _ = meta.vlong(), meta.vlong(), meta.vlong()
        if name == INDEX:
            index = Stream(file, offset, stored, compression)
            default = index.text()
            regions = [(index.vlong(), index.vlong(), index.vlong()) for _ in range(index.vlong())]
            return [(offset, stored, default) for offset, stored, _ in regions]
    raise TFileError("it has no block index")
