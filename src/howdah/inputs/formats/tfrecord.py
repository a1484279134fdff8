"""TFRecord files: every sum is checked, and the bytes go on as they are unless another framing is asked for.

The format has no marks to begin at, so a file is one split (tensorflow/core/lib/io/record_reader.cc).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from howdah.inputs.formats import codecs, framing
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt, Piece, RecordReader, RecordWriter, Sink, Split
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.read_window import ReadWindow
from howdah.storage import native_codecs
from howdah.storage.filesystem import FileSystem

_HEAD = struct.Struct("<Q")
_SUM = struct.Struct("<I")
_FRAME = 16
_MOST_HEADS = 1 << 16


class TFRecordReader(RecordReader):
    """Records. Options: `framing` (`tfrecord`, the default, or `length`, `lines`: base64), `codec`, `max_record`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        asked = FormatOptions(options)
        self.framing = asked.choice("framing", framing.NAMES, "tfrecord")
        self.codec = asked.choice("codec", ("auto", "none", *codecs.NAMES))
        self.limit = asked.max_record()
        asked.end("tfrecord")
        self._heads: dict[bytes, int] = {}

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        with fs.open_read(split.uri) as file:
            for data, start, ends in self._batches(file, split):
                if self.framing == "tfrecord":
                    yield data[start : ends[-1]]
                else:
                    yield framing.joined_frames(self.framing, _contents(data, start, ends), binary=True)

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        with fs.open_read(split.uri) as file:
            for data, start, ends in self._batches(file, split):
                if self.framing == "tfrecord":
                    yield from [data[at:end] for at, end in zip([start, *ends], ends, strict=False)]
                else:
                    yield from framing.frames(self.framing, _contents(data, start, ends), binary=True)

    def _batches(self, file: BinaryIO, split: Split) -> Iterator[tuple[bytes, int, list[int]]]:
        """Bytes, where the first record in them begins and where each ends, frames included."""
        codec = codecs.codec_of(split.uri, self.codec)
        source = Unpacked(codecs.decompressed(codec, _read(file), split.uri)) if codec else file
        window = ReadWindow(source, split.uri, self.limit)
        crc32c = native_codecs.crc32c()
        while window.size or window.need(1, optional=True):
            window.need(_FRAME)
            ends, following = self._ends(window, crc32c)
            if ends:
                yield window.data, window.at, ends
                window.at = ends[-1]
            else:
                window.need(following)

    def _ends(self, window: ReadWindow, crc32c: native_codecs.Checksum) -> tuple[list[int], int]:
        """Where the records end that lie whole in the window; how many bytes the one after them has."""
        data, at, size = window.data, window.at, len(window.data)
        ends: list[int] = []
        add, total, heads, mask = ends.append, _SUM.unpack_from, self._heads, framing.MASK
        while at <= size - _FRAME:
            length = heads.get(data[at : at + 12])
            if length is None:
                length = self._checked(window, at, data[at : at + 12], crc32c)
            end = at + 12 + length
            if end + 4 > size:
                return ends, end + 4 - at
            found = crc32c(data[at + 12 : end])
            # `framing.masked`, without a call for each record.
            if (found >> 15 | found << 17) + mask & 0xFFFFFFFF != total(data, end)[0]:
                raise self._corrupt(window, at, f"a record of {length} bytes does not have the sum it must have")
            at = end + 4
            add(at)
        return ends, _FRAME

    def _checked(self, window: ReadWindow, at: int, head: bytes, crc32c: native_codecs.Checksum) -> int:
        """The length that a record's head has, kept, since most heads come again and again."""
        if framing.masked(crc32c(head[:8])) != _SUM.unpack_from(head, 8)[0]:
            raise self._corrupt(window, at, "the length of a record does not have the sum it must have")
        length = int(_HEAD.unpack_from(head)[0])
        if length > self.limit:
            raise self._corrupt(window, at, f"a record of {length} bytes, allowed are {self.limit} (max_record)")
        if len(self._heads) >= _MOST_HEADS:
            self._heads.clear()
        self._heads[head] = length
        return length

    def _corrupt(self, window: ReadWindow, at: int, problem: str) -> Corrupt:
        return Corrupt.at(window.uri, window.base + at, f"TFRecord: {problem}")


class TFRecordWriter(RecordWriter):
    """Records of what the program prints. Options: `framing` (`lines`, the default: each a record without its LF;
    `length`; `tfrecord`), `base64` of lines, `max_record`."""

    suffix = ".tfrecord"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        asked = FormatOptions(options)
        name = asked.choice("framing", framing.NAMES)
        binary = asked.flag("base64")
        limit = asked.max_record()
        if binary and name != "lines":
            asked.wrong("base64", "is for framing: lines")
        asked.end("tfrecord")
        self._sink, self._records = sink, framing.Unframed(name, limit, binary)

    def write(self, data: bytes) -> None:
        self._put(self._records.records(data))

    def close(self) -> None:
        self._put(self._records.rest())

    def _put(self, records: list[bytes]) -> None:
        if records:
            self._sink.write(framing.joined_frames("tfrecord", records))


class Unpacked:
    """Pieces as a file that can only be read on."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, size: int, /) -> bytes:
        """At least `size` bytes, unless the end comes."""
        parts, have = [], 0
        while have < size and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            have += len(piece)
        return b"".join(parts)

    def seek(self, position: int, /) -> int:
        raise NotImplementedError


def _contents(data: bytes, start: int, ends: list[int]) -> list[bytes]:
    return [data[at + 12 : end - 4] for at, end in zip([start, *ends], ends, strict=False)]


def _read(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(PIECE_BYTES), b"")
