"""The framing of records on a pipe: lines, or frames whose content may have any byte.

`lines`: LF after each record; binary records are in base64, so that a line is a record in any case. `length`: the
length in four bytes, the most significant first, then the record. `tfrecord`: TFRecord's own frame with two checksums.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from howdah.inputs.formats.base import Corrupt
from howdah.storage import native_codecs

NAMES = ("lines", "length", "tfrecord")
_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct("<QI")
_SIZE = struct.Struct("<Q")
_SUM = struct.Struct("<I")
MASK = 0xA282EAD8
PROGRAM = "what the program prints"


def mask_crc(value: int) -> int:
    """Return a CRC as TFRecord stores it (tensorflow/core/lib/hash/crc32c.h, Mask)."""
    return (value >> 15 | value << 17) + MASK & 0xFFFFFFFF


def frames(framing: str, contents: Sequence[bytes], binary: bool = False) -> list[bytes]:
    """Return a frame for each content; `binary` contents are not text."""
    if framing == "lines":
        return [binascii.b2a_base64(content) if binary else content + b"\n" for content in contents]
    if framing == "length":
        pack = _LENGTH.pack
        return [pack(len(content)) + content for content in contents]
    crc32c = native_codecs.crc32c()
    return [tfrecord(content, crc32c) for content in contents]


def tfrecord(content: bytes, crc32c: Callable[[Any], int]) -> bytes:
    """Return the length, its checksum, the content and its checksum (tensorflow/core/lib/io/record_writer.cc)."""
    size = _SIZE.pack(len(content))
    return b"".join((size, _SUM.pack(mask_crc(crc32c(size))), content, _SUM.pack(mask_crc(crc32c(content)))))


def joined_frames(framing: str, contents: Sequence[bytes], binary: bool = False) -> bytes:
    """Return all frames one after another; this is faster than joining `frames`."""
    if framing == "lines" and not binary:
        return b"\n".join(contents) + b"\n" if contents else b""
    if framing == "length":
        pack, parts = _LENGTH.pack, []
        for content in contents:
            parts += [pack(len(content)), content]
        return b"".join(parts)
    return b"".join(frames(framing, contents, binary))


class RecordSplitter:
    """Splits a program's output into records, however its writes divide it. A record longer than `limit` is refused.

    With framing `lines` a record is a line without its LF; `binary` records are in base64.
    """

    def __init__(self, framing: str, limit: int, binary: bool = False) -> None:
        self._framing, self._limit, self._binary = framing, limit, binary
        self._held: list[bytes] = []
        self._size = self._passed = 0
        self._wanted = 0  # no record is complete before this number of bytes is held

    def records(self, data: bytes) -> list[bytes]:
        """Return the records that `data` completes."""
        self._held.append(data)
        self._size += len(data)
        if self._size < self._wanted or (self._framing == "lines" and b"\n" not in data):
            self._check_size(self._size if self._framing == "lines" else 0)
            return []
        data = b"".join(self._held)
        found, at = self._lines(data) if self._framing == "lines" else self._frames(data)
        self._held, self._size = [data[at:]], len(data) - at
        self._passed += at
        return found

    def rest(self) -> list[bytes]:
        """Return the last line, if it has no LF.

        Raises:
            Corrupt: the last frame is cut.
        """
        if not self._size:
            return []
        if self._framing == "lines":
            return self.records(b"\n")
        raise Corrupt(f"{PROGRAM} ends within a record: {self._size} bytes after byte {self._passed} are no whole one")

    def _lines(self, data: bytes) -> tuple[list[bytes], int]:
        end = data.rfind(b"\n") + 1
        found = data[: end - 1].split(b"\n")
        self._check_size(len(data) - end)
        if not self._binary:
            return found, end
        try:
            return [binascii.a2b_base64(line) for line in found], end
        except binascii.Error as error:
            raise Corrupt(f"{PROGRAM} is not base64 after byte {self._passed}: {error}") from error

    def _frames(self, data: bytes) -> tuple[list[bytes], int]:
        spans = _tfrecord_spans(data) if self._framing == "tfrecord" else _length_spans(data)
        found, at = [], 0
        self._wanted = 0
        try:
            for start, end, next_start in spans:
                self._check_size(end - start, at)
                if next_start > len(data):
                    self._wanted = next_start - at
                    break
                found.append(data[start:end])
                at = next_start
        except ValueError as error:
            raise Corrupt(f"{PROGRAM} is no {self._framing} frame at byte {self._passed + at}: {error}") from error
        return found, at

    def _check_size(self, size: int, at: int = 0) -> None:
        if size > self._limit:
            raise Corrupt(
                f"{PROGRAM} has a record of {size} bytes or more at byte {self._passed + at}, allowed are {self._limit}"
                " (max_record)"
            )


def _length_spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield as `_tfrecord_spans`."""
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + _LENGTH.unpack_from(data, at)[0]
        yield at + 4, end, end
        at = end


def _tfrecord_spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the beginning and the end of each content, and the end of its frame; the last frame may end beyond the
    data.

    Raises:
        ValueError: a checksum is wrong.
    """
    crc32c = native_codecs.crc32c()
    at = 0
    while at + 12 <= len(data):
        size, stored = _HEAD.unpack_from(data, at)
        if mask_crc(crc32c(data[at : at + 8])) != stored:
            raise ValueError("the sum of the length is wrong")
        end = at + 12 + size
        if end + 4 <= len(data) and mask_crc(crc32c(data[at + 12 : end])) != _SUM.unpack_from(data, end)[0]:
            raise ValueError("the sum of the record is wrong")
        yield at + 12, end, end + 4
        at = end + 4


def merge_pairs(keys: Sequence[bytes] | None, values: Sequence[bytes], framing: str) -> Sequence[bytes]:
    """Return keys and values as contents: a key, a tab and a value for lines, else key and value one after the
    other."""
    if keys is None:
        return values
    if framing == "lines":
        return [key + b"\t" + value for key, value in zip(keys, values, strict=False)]
    return [content for pair in zip(keys, values, strict=False) for content in pair]
