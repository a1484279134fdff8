"""Reads and writes TFRecord files. The reader checks all checksums and passes the bytes on unchanged, unless another
framing is requested.

The format has no marks at which reading could begin, so a file is one split (tensorflow/core/lib/io/record_reader.cc).
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

_SIZE = struct.Struct("<Q")
_SUM = struct.Struct("<I")
_FRAME = 16
_MAX_HEADS = 1 << 16


class TFRecordReader(RecordReader):
    """Reads records. Options: `framing` (`tfrecord`, the default, `length`, `lines`: base64), `codec`, `max_record`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.framing = parsed.choice("framing", framing.NAMES, "tfrecord")
        self.codec = parsed.choice("codec", ("auto", "none", *codecs.NAMES))
        self.limit = parsed.max_record()
        parsed.finish("tfrecord")
        self._lengths: dict[bytes, int] = {}

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
        """Yield bytes, the position of the first record in them, and the end of each record, including its frame."""
        codec = codecs.codec_of(split.uri, self.codec)
        pieces = iter(lambda: file.read(PIECE_BYTES), b"")
        source = _PieceFile(codecs.decompress_pieces(codec, pieces, split.uri)) if codec else file
        window = ReadWindow(source, split.uri, self.limit)
        crc32c = native_codecs.crc32c()
        while window.size or window.need(1, optional=True):
            window.need(_FRAME)
            ends, next_size = self._record_ends(window, crc32c)
            if ends:
                yield window.data, window.at, ends
                window.at = ends[-1]
            else:
                window.need(next_size)

    def _record_ends(self, window: ReadWindow, crc32c: native_codecs.Checksum) -> tuple[list[int], int]:
        """Return the ends of the records that are complete in the window, and the number of bytes of the record after
        them."""
        data, at, size = window.data, window.at, len(window.data)
        ends: list[int] = []
        add, stored_at, lengths, mask = ends.append, _SUM.unpack_from, self._lengths, framing.MASK
        while at <= size - _FRAME:
            length = lengths.get(data[at : at + 12])
            if length is None:
                length = self._checked_length(window, at, data[at : at + 12], crc32c)
            end = at + 12 + length
            if end + 4 > size:
                return ends, end + 4 - at
            found = crc32c(data[at + 12 : end])
            # `framing.masked`, without a call for each record.
            if (found >> 15 | found << 17) + mask & 0xFFFFFFFF != stored_at(data, end)[0]:
                raise _corrupt(window, at, f"a record of {length} bytes does not have the sum it must have")
            at = end + 4
            add(at)
        return ends, _FRAME

    def _checked_length(self, window: ReadWindow, at: int, head: bytes, crc32c: native_codecs.Checksum) -> int:
        """Return the length in a record's head, and cache it, because nearly all records have one of few lengths."""
        if framing.mask_crc(crc32c(head[:8])) != _SUM.unpack_from(head, 8)[0]:
            raise _corrupt(window, at, "the length of a record does not have the sum it must have")
        length = int(_SIZE.unpack_from(head)[0])
        if length > self.limit:
            raise _corrupt(window, at, f"a record of {length} bytes, allowed are {self.limit} (max_record)")
        if len(self._lengths) >= _MAX_HEADS:
            self._lengths.clear()
        self._lengths[head] = length
        return length


class TFRecordWriter(RecordWriter):
    """Writes the records that the program prints. Options: `framing` (`lines`, the default: a record is a line without
    its LF; `length`; `tfrecord`), `base64` of lines, `max_record`."""

    suffix = ".tfrecord"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        parsed = FormatOptions(options)
        name = parsed.choice("framing", framing.NAMES)
        binary = parsed.flag("base64")
        limit = parsed.max_record()
        if binary and name != "lines":
            parsed.add_mistake("base64", "is for framing: lines")
        parsed.finish("tfrecord")
        self._sink, self._splitter = sink, framing.RecordSplitter(name, limit, binary)

    def write(self, data: bytes) -> None:
        self._write_records(self._splitter.records(data))

    def close(self) -> None:
        self._write_records(self._splitter.rest())

    def _write_records(self, records: list[bytes]) -> None:
        if records:
            self._sink.write(framing.joined_frames("tfrecord", records))


class _PieceFile:
    """Pieces as a file that can only be read from the beginning to the end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def read(self, size: int, /) -> bytes:
        """Return at least `size` bytes, unless the file ends."""
        parts, available = [], 0
        while available < size and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            available += len(piece)
        return b"".join(parts)

    def seek(self, position: int, /) -> int:
        raise NotImplementedError


def _corrupt(window: ReadWindow, at: int, problem: str) -> Corrupt:
    return Corrupt.at(window.uri, window.base + at, f"TFRecord: {problem}")


def _contents(data: bytes, start: int, ends: list[int]) -> list[bytes]:
    return [data[at + 12 : end - 4] for at, end in zip([start, *ends], ends, strict=False)]
