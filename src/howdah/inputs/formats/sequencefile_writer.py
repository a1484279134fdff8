"""Writes a program's output as a SequenceFile, version 6: keys NullWritable or Text, values Text or BytesWritable.

Records are collected into blocks of a megabyte, as SequenceFile.BlockCompressWriter does, whatever the compression.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence

from howdah.inputs.formats import codecs, framing, writables
from howdah.inputs.formats.base import Corrupt, RecordWriter, Sink
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.sequencefile import ESCAPE, SYNC_BYTES

_BLOCK = 1_000_000
_SYNC_INTERVAL = 100_000
_RECORD = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")
_CLASS_OF = {codec: name for name, codec in reversed(list(codecs.CLASSES.items()))}


class SequenceFileWriter(RecordWriter):
    """Writes records. Options: `key` (`true`: a line is a key, a tab, a value; frames come in pairs), `value` (`text`,
    `bytes`), `framing`, `base64` of lines, `compression` (`block`, `record`, `none`), `codec`, `max_record`."""

    suffix = ".seq"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        parsed = FormatOptions(options)
        self._keyed = parsed.flag("key")
        self._compression = parsed.choice("compression", ("block", "record", "none"))
        self._codec = parsed.choice("codec", codecs.NAMES, "deflate")
        self._framing = parsed.choice("framing", framing.NAMES)
        binary = parsed.flag("base64")
        self._pack = _text if parsed.choice("value", ("text", "bytes")) == "text" else _bytes
        limit = parsed.max_record()
        if binary and (self._framing != "lines" or self._keyed):
            parsed.add_mistake("base64", "is for framing: lines without key")
        parsed.finish("sequencefile")
        self._sink, self._splitter = sink, framing.RecordSplitter(self._framing, limit, binary)
        self._lone_key: list[bytes] = []
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._size = self._since_mark = 0
        self._mark = ESCAPE + os.urandom(SYNC_BYTES)
        self._begun = False

    def write(self, data: bytes) -> None:
        self._add(self._splitter.records(data))

    def close(self) -> None:
        self._add(self._splitter.rest())
        if self._lone_key:
            raise Corrupt(f"{framing.PROGRAM} ends with a key that has no value")
        self._flush()

    def _add(self, records: Sequence[bytes]) -> None:
        for key, value in self._pairs(records):
            self._keys.append(key)
            self._values.append(value)
            self._size += len(key) + len(value)
            if self._size >= _BLOCK:
                self._flush()

    def _pairs(self, records: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return keys and values as Java stores them."""
        if not self._keyed:
            return [(b"", self._pack(record)) for record in records]
        if self._framing == "lines":
            halves = [record.partition(b"\t") for record in records]
            return [(_text(key), self._pack(value)) for key, _, value in halves]
        contents = [*self._lone_key, *records]
        self._lone_key = [contents.pop()] if len(contents) % 2 else []
        return [(_text(key), self._pack(value)) for key, value in zip(contents[::2], contents[1::2], strict=True)]

    def _flush(self) -> None:
        if not self._begun:
            self._begun = True
            self._sink.write(self._header())
        if self._values:
            self._sink.write(self._block() if self._compression == "block" else self._uncompressed_records())
        self._keys, self._values, self._size = [], [], 0

    def _header(self) -> bytes:
        compressed = self._compression != "none"
        key = writables.TEXT if self._keyed else writables.NULL
        value = writables.TEXT if self._pack is _text else writables.BYTES
        parts = [b"SEQ\x06", _text(key.encode()), _text(value.encode())]
        parts.append(bytes((compressed, self._compression == "block")))
        if compressed:
            parts.append(_text(_CLASS_OF[self._codec].encode()))
        return b"".join([*parts, b"\0\0\0\0", self._mark[4:]])

    def _block(self) -> bytes:
        parts = [self._mark, writables.packed_vint(len(self._values))]
        for contents in (self._keys, self._values):
            lengths = b"".join(writables.packed_vint(len(content)) for content in contents)
            for buffer in (lengths, b"".join(contents)):
                packed = codecs.compress(self._codec, buffer)
                parts += [writables.packed_vint(len(packed)), packed]
        return b"".join(parts)

    def _uncompressed_records(self) -> bytes:
        parts: list[bytes] = []
        for key, value in zip(self._keys, self._values, strict=True):
            stored = codecs.compress(self._codec, value) if self._compression == "record" else value
            if self._since_mark >= _SYNC_INTERVAL:
                parts.append(self._mark)
                self._since_mark = 0
            parts += [_RECORD.pack(len(key) + len(stored), len(key)), key, stored]
            self._since_mark += 8 + len(key) + len(stored)
        return b"".join(parts)


def _text(content: bytes) -> bytes:
    return writables.packed_vint(len(content)) + content


def _bytes(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content
