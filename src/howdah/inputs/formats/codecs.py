"""Hadoop's compression codecs: by the suffix of a file's name, or by the class that a SequenceFile names.

The rule: what is cut is an error, never a shorter file. Memory stays bounded: streams give pieces of a MiB, and a block
that claims to be larger than anything Hadoop writes is refused.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from howdah.inputs.formats import inflate
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt
from howdah.storage import native_codecs

SUFFIXES = {
    ".gz": "gzip",
    ".bz2": "bzip2",
    ".zst": "zstd",
    ".snappy": "snappy",
    ".lz4": "lz4",
    ".deflate": "deflate",
}
CLASSES = {
    "org.apache.hadoop.io.compress.DefaultCodec": "deflate",
    "org.apache.hadoop.io.compress.DeflateCodec": "deflate",
    "org.apache.hadoop.io.compress.GzipCodec": "gzip",
    "org.apache.hadoop.io.compress.BZip2Codec": "bzip2",
    "org.apache.hadoop.io.compress.SnappyCodec": "snappy",
    "org.apache.hadoop.io.compress.Lz4Codec": "lz4",
    "org.apache.hadoop.io.compress.ZStandardCodec": "zstd",
}
NAMES = tuple(SUFFIXES.values())
LARGEST_BLOCK = 1 << 30
# What Hadoop's compressors take at a time (io.compression.codec.*.buffersize); its decompressors have as much room.
_BLOCK = 1 << 18
# A byte of lz4 or snappy is at most so many bytes of content.
_MOST_RATIO = 255
_LENGTH = struct.Struct(">I")


class CorruptData(ValueError):
    """Compressed data is cut or no such data; who knows the file and the place makes a Corrupt of it."""


def codec_of(uri: str, asked: str = "auto") -> str:
    """The codec of a file, "" for none; `asked` is one of NAMES, `none`, or `auto` for what the name tells."""
    if asked == "auto":
        return next((codec for suffix, codec in SUFFIXES.items() if uri.endswith(suffix)), "")
    return "" if asked == "none" else asked


def decompressed(codec: str, pieces: Iterable[bytes], uri: str) -> Iterator[bytes]:
    """The content of a whole compressed file, read from `pieces`.

    Raises:
        Corrupt: it is cut, or no such file.
    """
    counted = _Counted(pieces)
    try:
        yield from _DECODERS[codec](counted)
    except CorruptData as error:
        raise Corrupt.at(uri, counted.size, f"{codec}: {error}") from error


def decompress(codec: str, data: bytes, limit: int = LARGEST_BLOCK) -> bytes:
    """What one compressed buffer holds.

    Raises:
        Damaged: it is cut, no such data, or holds more than `limit` bytes.
    """
    if codec == "deflate":  # most SequenceFiles have it, in buffers so small that the detour counts
        return _inflated(data, limit)
    parts, size = [], 0
    for part in _DECODERS[codec](iter((data,))):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise CorruptData(f"a buffer holds more than {limit} bytes (max_record)")
    return b"".join(parts)


def compress(codec: str, data: bytes) -> bytes:
    """`data` as one compressed buffer, in Hadoop's form of that codec."""
    if codec == "deflate":
        return zlib.compress(data)
    if codec == "gzip":
        member = zlib.compressobj(6, zlib.DEFLATED, 31)
        return member.compress(data) + member.flush()
    if codec == "bzip2":
        return bz2.compress(data)
    if codec == "zstd":
        return bytes(native_codecs.zstd().compress(data))
    return _in_blocks(native_codecs.snappy() if codec == "snappy" else native_codecs.lz4(), data)


class _Counted:
    """Pieces, and how many bytes of them have been taken."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self.size = iter(pieces), 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self.size += len(piece)
        return piece


def _inflated(data: bytes, limit: int) -> bytes:
    stream = inflate.inflater(inflate.ZLIB)
    try:
        found: bytes = stream.decompress(data, limit + 1)
    except inflate.ERRORS as error:
        raise CorruptData(str(error)) from error
    if len(found) > limit:
        raise CorruptData(f"a buffer holds more than {limit} bytes (max_record)")
    if not stream.eof:
        raise CorruptData("it is cut")
    return found


def _members(pieces: Iterator[bytes], fresh: Any, errors: Any) -> Iterator[bytes]:
    """Streams one after another, by objects like BZ2Decompressor. Zeros may fill the end, as gzip itself allows."""
    stream, begun = fresh(), False
    for piece in pieces:
        while piece or (begun and not stream.needs_input):
            if not begun and not piece.strip(b"\0"):
                break
            begun = True
            try:
                yield stream.decompress(piece, PIECE_BYTES)
            except errors as error:
                raise CorruptData(str(error) or type(error).__name__) from error
            piece = b""
            if stream.eof:
                piece, stream, begun = stream.unused_data, fresh(), False
    if begun:
        raise CorruptData("the file is cut: its compressed data does not end")


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    module = native_codecs.zstd()
    return _members(pieces, module.ZstdDecompressor, module.ZstdError)


def _blocks(pieces: Iterator[bytes], raw: native_codecs.Raw) -> Iterator[bytes]:
    """BlockCompressorStream's form: a block's length, then its parts, each with the length it has compressed."""
    buffer = _Buffer(pieces)
    while (wanted := buffer.length(optional=True)) >= 0:
        while wanted:
            part = buffer.read_exactly(buffer.length())
            try:
                found = raw.decompress(part, min(wanted, _MOST_RATIO * len(part) + 64))
            except ValueError as error:
                raise CorruptData(str(error)) from error
            if not 0 < len(found) <= wanted:
                raise CorruptData(f"a part of {len(found)} bytes, where {wanted} are left of its block")
            wanted -= len(found)
            yield found


class _Buffer:
    """Exact numbers of bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""
        self._at = 0

    def read_exactly(self, size: int) -> bytes:
        if len(self._held) - self._at < size:
            parts, have = [self._held[self._at :]], len(self._held) - self._at
            while have < size:
                piece = next(self._pieces, b"")
                if not piece:
                    raise CorruptData(f"the file is cut: {have} of {size} bytes are there")
                parts.append(piece)
                have += len(piece)
            self._held, self._at = b"".join(parts), 0
        self._at += size
        return self._held[self._at - size : self._at]

    def length(self, optional: bool = False) -> int:
        """A length; -1 at the end of the file, where it may end."""
        if optional and self._at == len(self._held):
            self._held, self._at = next(self._pieces, b""), 0
            if not self._held:
                return -1
        (size,) = _LENGTH.unpack(self.read_exactly(4))
        if size > LARGEST_BLOCK:
            raise CorruptData(f"a block of {size} bytes, which nothing writes")
        return int(size)


def _in_blocks(raw: native_codecs.Raw, data: bytes) -> bytes:
    # Hadoop leaves room for what grows: a part must fit its decompressor's buffer after compression, too.
    step = _BLOCK - _BLOCK // 6 - 32
    parts = []
    for at in range(0, len(data), step):
        block = data[at : at + step]
        packed = raw.compress(block)
        parts += [_LENGTH.pack(len(block)), _LENGTH.pack(len(packed)), packed]
    return b"".join(parts)


_DECODERS: dict[str, Any] = {
    "gzip": lambda pieces: _members(pieces, lambda: inflate.inflater(inflate.GZIP), inflate.ERRORS),
    "deflate": lambda pieces: _members(pieces, lambda: inflate.inflater(inflate.ZLIB), inflate.ERRORS),
    "bzip2": lambda pieces: _members(pieces, bz2.BZ2Decompressor, (OSError, ValueError)),
    "zstd": _zstd,
    "snappy": lambda pieces: _blocks(pieces, native_codecs.snappy()),
    "lz4": lambda pieces: _blocks(pieces, native_codecs.lz4()),
}
