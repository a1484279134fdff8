"""Reads and writes text, CSV and JSON lines. Bytes between two line ends are passed on unchanged: no work per record.

Splits follow Hadoop's rule (`lines`). A compressed file is one split, except bzip2, whose blocks can be read alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping

from howdah.inputs.formats import bzip2, codecs
from howdah.inputs.formats.base import Corrupt, Piece, RecordReader, RecordWriter, Sink, Split, cut_splits
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.lines import Chunk, TextLines, overlaps
from howdah.storage.filesystem import FileSystem


class TextReader(RecordReader):
    """Reads lines. Options: `delimiter`, `lines` (of each split), `codec`, `max_record`."""

    name = "text"

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.codec = parsed.choice("codec", ("auto", "none", *codecs.NAMES))
        self.limit = parsed.max_record()
        self.delimiter = b""
        self.lines = 0
        self._own_options(parsed)
        parsed.finish(self.name)

    def _own_options(self, parsed: FormatOptions) -> None:
        self.delimiter = parsed.bytes("delimiter")
        self.lines = parsed.number("lines")

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        codec = codecs.codec_of(uri, self.codec)
        if not self._is_bzip2(codec):
            if codec or overlaps(self.delimiter):
                return super().splits(fs, uri, size, block_size, wanted_bytes)
            if self.lines:
                return self._splits_by_lines(fs, uri, size)
        return cut_splits(uri, size, block_size, wanted_bytes)

    def _is_bzip2(self, codec: str) -> bool:
        """Return whether each block of a file can be decompressed alone. With a longer delimiter that is not so,
        because the delimiter may lie across blocks."""
        return codec == "bzip2" and len(self.delimiter) < 2

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        yield from self._lines(split).owned(self._chunks(fs, split), split.start)

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        lines = self._lines(split)
        yield from lines.one_by_one(lines.owned(self._chunks(fs, split), split.start))

    def _lines(self, split: Split) -> TextLines:
        return TextLines(split.uri, self.delimiter, self.limit)

    def _splits_by_lines(self, fs: FileSystem, uri: str, size: int) -> list[Split]:
        """Return splits as NLineInputFormat does: a split begins one byte early, since a reader leaves out the line in
        which its split begins."""
        ends = self._lines(Split(uri, 0, size)).ends(fs.iter_chunks(uri))
        starts = [0, *(end - 1 for number, end in enumerate(ends, 1) if number % self.lines == 0 and end < size)]
        parts = zip(starts, [*starts[1:], size], strict=True)
        return [Split(uri, start, end - start) for start, end in parts if end > start]

    def _chunks(self, fs: FileSystem, split: Split) -> Iterator[Chunk]:
        codec = codecs.codec_of(split.uri, self.codec)
        if self._is_bzip2(codec):
            with fs.open_read(split.uri) as file:
                yield from bzip2.blocks(file, split.uri, split.start, split.start + split.length)
        elif codec:
            yield from (
                (piece, False) for piece in codecs.decompress_pieces(codec, fs.iter_chunks(split.uri), split.uri)
            )
        else:
            yield from _uncompressed_chunks(fs, split, self._lines(split).overlap)


class JsonLinesReader(TextReader):
    """Reads a JSON text from each line. Options: `lines`, `codec`, `max_record`."""

    name = "jsonl"

    def _own_options(self, parsed: FormatOptions) -> None:
        self.lines = parsed.number("lines")


class CsvReader(TextReader):
    """Reads lines; the first line of a file may be a header. Options: `header` (`keep`, `drop`, `once`: only at the
    stream's beginning), `quoted_newlines` (then a file is one split), `quote`, and those of text except `delimiter`."""

    name = "csv"

    def _own_options(self, parsed: FormatOptions) -> None:
        self.lines = parsed.number("lines")
        self.header = parsed.choice("header", ("keep", "drop", "once"))
        self.quoted = parsed.flag("quoted_newlines")
        self.quote = parsed.bytes("quote", b'"')
        if self.quoted and self.lines:
            parsed.add_mistake("lines", "can't be counted with quoted_newlines")

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        if self.quoted:
            return RecordReader.splits(self, fs, uri, size, block_size, wanted_bytes)
        return super().splits(fs, uri, size, block_size, wanted_bytes)

    def prologue(self, fs: FileSystem, split: Split) -> bytes:
        if self.header != "once":
            return b""
        length = split.length if codecs.codec_of(split.uri, self.codec) or self.quoted else 1
        return next(self._all_records(fs, Split(split.uri, 0, length)), b"")

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        pieces: Iterator[Piece] = super().blocks(fs, split)
        if self.header == "keep" or split.start:
            yield from pieces
            return
        left = len(next(self._all_records(fs, split), b""))
        for piece in pieces:
            yield piece[left:] if left else piece
            left = max(0, left - len(piece))

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        found = self._all_records(fs, split)
        if self.header != "keep" and not split.start:
            next(found, b"")
        return found

    def _all_records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        found = super().records(fs, split)
        return self._joined_quotes(split.uri, found) if self.quoted else found

    def _joined_quotes(self, uri: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Join lines until the quotes are closed."""
        held: list[bytes] = []
        size, is_open = 0, False
        for line in lines:
            held.append(line)
            size += len(line)
            is_open ^= line.count(self.quote) % 2 == 1
            if size > self.limit:
                raise Corrupt(f"{uri}: a record of more than {self.limit} bytes (max_record), are all quotes closed?")
            if not is_open:
                yield b"".join(held)
                held, size = [], 0
        if held:
            raise Corrupt(f"{uri}: the file ends within quotes, in the record {held[0][:60]!r}")


class TextWriter(RecordWriter):
    """Writes the program's output unchanged. No options."""

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        FormatOptions(options).finish("text")
        self._sink = sink

    def write(self, data: bytes) -> None:
        self._sink.write(data)

    def close(self) -> None:
        """Do nothing: all bytes are written."""


class GzipWriter(RecordWriter):
    """Writes the program's output in gzip. Options: `level`, 1 (fast) to 9."""

    suffix = ".gz"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        parsed = FormatOptions(options)
        level = int(parsed.choice("level", tuple("123456789"), "6"))
        parsed.finish("gzip")
        self._sink, self._member = sink, zlib.compressobj(level, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> None:
        packed = self._member.compress(data)
        if packed:
            self._sink.write(packed)

    def close(self) -> None:
        self._sink.write(self._member.flush())


def _uncompressed_chunks(fs: FileSystem, split: Split, overlap: int) -> Iterator[Chunk]:
    at, end = max(0, split.start - overlap), split.start + split.length
    for data in fs.iter_chunks(split.uri, at):
        inside = data[: max(0, end - at)]
        if inside:
            yield inside, False
        if len(inside) < len(data):
            yield data[len(inside) :], True
        at += len(data)
    if at < end:
        raise Corrupt.at(split.uri, at, f"the file ends here, but had {end} bytes or more when the job was planned")
