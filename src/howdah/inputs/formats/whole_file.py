"""Reads whole files as records; compressed files are decompressed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from howdah.inputs.formats import codecs, framing
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt, RecordReader, Split
from howdah.inputs.formats.format_options import FormatOptions
from howdah.storage.filesystem import FileSystem


class WholeReader(RecordReader):
    """Reads a file as a record. Options: `framing` (`length`, the default, `tfrecord`, or `lines`: base64), `name`
    (`true`: the file's URI stands before each content), `codec`, `max_record`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.framing = parsed.choice("framing", framing.NAMES, "length")
        self.with_name = parsed.flag("name")
        self.codec = parsed.choice("codec", ("auto", "none", *codecs.NAMES))
        self.limit = parsed.max_record()
        parsed.finish("whole")

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        return [Split(uri, 0, size)]  # an empty file is a record, too

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        parts, size = [], 0
        for piece in self._pieces(fs, split.uri):
            parts.append(piece)
            size += len(piece)
            if size > self.limit:
                raise Corrupt(f"{split.uri}: more than the {self.limit} bytes that a record may have (max_record)")
        content = b"".join(parts)
        name = split.uri.encode()
        if not self.with_name:
            yield from framing.frames(self.framing, [content], binary=True)
        elif self.framing == "lines":
            yield name + b"\t" + framing.frames("lines", [content], binary=True)[0]
        else:
            yield framing.joined_frames(self.framing, [name, content])

    def _pieces(self, fs: FileSystem, uri: str) -> Iterator[bytes]:
        codec = codecs.codec_of(uri, self.codec)
        with fs.open_read(uri) as file:
            pieces = iter(lambda: file.read(PIECE_BYTES), b"")
            yield from codecs.decompress_pieces(codec, pieces, uri) if codec else pieces
