"""Hadoop's compression codecs, found by the suffix of a file's name or by the class that a SequenceFile names.

The rule: cut data is an error, never a shorter file. Memory stays bounded: streams yield pieces of a MiB, and a block
that claims to be larger than any that Hadoop writes is refused.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from howdah.inputs.formats.base import PIECE_BYTES, Corrupt
from howdah.storage import native_codecs

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".snappy": "snappy", ".lz4": "lz4", ".deflate": "deflate"}
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
MAX_BLOCK = 1 << 30
# What Hadoop's compressors take at a time (io.compression.codec.*.buffersize); its decompressors have as much room.
_BLOCK = 1 << 18
# The most bytes of content that one byte of lz4 or snappy stands for.
_MAX_RATIO = 255
_LENGTH = struct.Struct(">I")
_GZIP, _ZLIB = 31, 15
"""zlib's window sizes, which also name the container."""


class CorruptData(ValueError):
    """Compressed data is cut or has the wrong format; the caller, who knows the file and the byte, raises Corrupt."""


def codec_of(uri: str, choice: str = "auto") -> str:
    """Return the codec of a file, "" for none; `choice` is one of NAMES, `none`, or `auto` for the suffix's codec."""
    if choice == "auto":
        return next((codec for suffix, codec in SUFFIXES.items() if uri.endswith(suffix)), "")
    return "" if choice == "none" else choice


def decompress_pieces(codec: str, pieces: Iterable[bytes], uri: str) -> Iterator[bytes]:
    """Yield the content of a whole compressed file, read from `pieces`.

    Raises:
        Corrupt: the file is cut, or is not compressed by this codec.
    """
    counted = _CountedPieces(pieces)
    try:
        yield from _DECODERS[codec](counted)
    except CorruptData as error:
        raise Corrupt.at(uri, counted.size, f"{codec}: {error}") from error


def decompress(codec: str, data: bytes, limit: int = MAX_BLOCK) -> bytes:
    """Return the content of one compressed buffer.

    Raises:
        CorruptData: the buffer is cut, is not compressed by this codec, or has more than `limit` bytes.
    """
    if codec == "deflate":  # most SequenceFiles have it, in buffers so small that the detour counts
        return _inflate(data, limit)
    parts, size = [], 0
    for part in _DECODERS[codec](iter((data,))):
        parts.append(part)
        size += len(part)
        _check_size(size, limit)
    return b"".join(parts)


def compress(codec: str, data: bytes) -> bytes:
    """Return `data` as one compressed buffer, in Hadoop's form of that codec."""
    if codec == "deflate":
        return zlib.compress(data)
    if codec == "gzip":
        member = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        return member.compress(data) + member.flush()
    if codec == "bzip2":
        return bz2.compress(data)
    if codec == "zstd":
        return bytes(native_codecs.zstd().compress(data))
    return _compress_in_blocks(native_codecs.snappy() if codec == "snappy" else native_codecs.lz4(), data)


class _CountedPieces:
    """Counts the bytes of the pieces that were read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self.size = iter(pieces), 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self.size += len(piece)
        return piece


class _Inflater:
    """Inflates one gzip or zlib stream by zlib, with the interface of BZ2Decompressor."""

    def __init__(self, window: int) -> None:
        self._stream = zlib.decompressobj(window)
        self._left, self._full = b"", False

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    @property
    def needs_input(self) -> bool:
        return not (self.eof or self._left or self._full)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._stream.decompress(self._left + data, max_length)
        self._left = self._stream.unconsumed_tail
        self._full = len(found) == max_length  # zlib may hold more, though all input is taken
        return found


def _fastest_inflater() -> tuple[Callable[[int], Any], tuple[type[Exception], ...]]:
    """Return the inflater of Intel's ISA-L if its package is installed, else that of zlib, and the errors of the chosen
    one. ISA-L is two to three times as fast, and both check the sum at the stream's end."""
    try:
        from isal import igzip_lib
    except ImportError:
        return _Inflater, (zlib.error,)
    flags = {_GZIP: igzip_lib.DECOMP_GZIP, _ZLIB: igzip_lib.DECOMP_ZLIB}
    errors: Any = (igzip_lib.IsalError, zlib.error)
    return (lambda window: igzip_lib.IgzipDecompressor(flags[window])), errors


_inflater, _INFLATE_ERRORS = _fastest_inflater()


def _inflate(data: bytes, limit: int) -> bytes:
    stream = _inflater(_ZLIB)
    try:
        found: bytes = stream.decompress(data, limit + 1)
    except _INFLATE_ERRORS as error:
        raise CorruptData(str(error)) from error
    _check_size(len(found), limit)
    if not stream.eof:
        raise CorruptData("it is cut")
    return found


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise CorruptData(f"a buffer holds more than {limit} bytes (max_record)")


def _members(pieces: Iterator[bytes], new_stream: Any, errors: Any) -> Iterator[bytes]:
    """Yield the content of consecutive streams, by objects like BZ2Decompressor. Zeros may fill the end, as in gzip
    itself."""
    stream, begun = new_stream(), False
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
                piece, stream, begun = stream.unused_data, new_stream(), False
    if begun:
        raise CorruptData("the file is cut: its compressed data does not end")


def _zstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    module = native_codecs.zstd()
    return _members(pieces, module.ZstdDecompressor, module.ZstdError)


def _blocks(pieces: Iterator[bytes], raw: native_codecs.Raw) -> Iterator[bytes]:
    """Read BlockCompressorStream's form: a block's length, then its parts, each with its compressed length."""
    buffer = _Buffer(pieces)
    while (wanted := buffer.length(optional=True)) >= 0:
        while wanted:
            part = buffer.read_exactly(buffer.length())
            try:
                found = raw.decompress(part, min(wanted, _MAX_RATIO * len(part) + 64))
            except ValueError as error:
                raise CorruptData(str(error)) from error
            if not 0 < len(found) <= wanted:
                raise CorruptData(f"a part of {len(found)} bytes, where {wanted} are left of its block")
            wanted -= len(found)
            yield found


class _Buffer:
    """Reads exact numbers of bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""
        self._at = 0

    def read_exactly(self, size: int) -> bytes:
        if len(self._held) - self._at < size:
            parts, available = [self._held[self._at :]], len(self._held) - self._at
            while available < size:
                piece = next(self._pieces, b"")
                if not piece:
                    raise CorruptData(f"the file is cut: {available} of {size} bytes are there")
                parts.append(piece)
                available += len(piece)
            self._held, self._at = b"".join(parts), 0
        self._at += size
        return self._held[self._at - size : self._at]

    def length(self, optional: bool = False) -> int:
        """Return the next length; -1 at the end of the file, if it is `optional`."""
        if optional and self._at == len(self._held):
            self._held, self._at = next(self._pieces, b""), 0
            if not self._held:
                return -1
        (size,) = _LENGTH.unpack(self.read_exactly(4))
        if size > MAX_BLOCK:
            raise CorruptData(f"a block of {size} bytes, which nothing writes")
        return int(size)


def _compress_in_blocks(raw: native_codecs.Raw, data: bytes) -> bytes:
    # Hadoop leaves room for data that grows: a part must fit its decompressor's buffer after compression, too.
    step = _BLOCK - _BLOCK // 6 - 32
    parts = []
    for at in range(0, len(data), step):
        block = data[at : at + step]
        packed = raw.compress(block)
        parts += [_LENGTH.pack(len(block)), _LENGTH.pack(len(packed)), packed]
    return b"".join(parts)


_DECODERS: dict[str, Any] = {
    "gzip": lambda pieces: _members(pieces, lambda: _inflater(_GZIP), _INFLATE_ERRORS),
    "deflate": lambda pieces: _members(pieces, lambda: _inflater(_ZLIB), _INFLATE_ERRORS),
    "bzip2": lambda pieces: _members(pieces, bz2.BZ2Decompressor, (OSError, ValueError)),
    "zstd": _zstd,
    "snappy": lambda pieces: _blocks(pieces, native_codecs.snappy()),
    "lz4": lambda pieces: _blocks(pieces, native_codecs.lz4()),
}
