"""Reads SequenceFiles, compressed or not: many records are read from one buffer at a time.

A split has the records after the sync marks that begin in it, up to the first mark at or after its end; the first split
also has those after the header (org.apache.hadoop.io.SequenceFile, versions 4 to 6).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from howdah.inputs.formats import codecs, framing, writables
from howdah.inputs.formats.base import Corrupt, Piece, RecordReader, Split, cut_splits
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.read_window import ReadWindow
from howdah.storage.filesystem import FileSystem

ESCAPE = b"\xff\xff\xff\xff"
SYNC_BYTES = 16
_RECORD = struct.Struct(">ii")
_MARK = 4 + SYNC_BYTES

Batch = tuple[Sequence[bytes] | None, Sequence[bytes]]
"""Contents of keys (None: not requested) and of values."""
Kinds = tuple[writables.WritableType, writables.WritableType]
"""The types by which keys and values are read."""


class Header(NamedTuple):
    """The header of a file."""

    key: str
    """The Java class of the keys."""
    value: str
    """The Java class of the values."""
    codec: str
    """The codec; "" for a file that is not compressed."""
    is_block: bool
    """Blocks of records are compressed, not each value."""
    mark: bytes
    """The sync mark: the escape and the sync bytes."""
    end: int
    """The byte at which the first record or mark begins."""


class SequenceFileReader(RecordReader):
    """Reads values, or keys and values. Options: `key` (`false`, `true`, `only`), `framing`, `max_record`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.key = parsed.choice("key", ("false", "true", "only"))
        self.framing = parsed.choice("framing", framing.NAMES)
        self.limit = parsed.max_record()
        parsed.finish("sequencefile")
        self._reported: set[str] = set()

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        return cut_splits(uri, size, block_size, wanted_bytes)

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        for contents, binary in self._contents(fs, split):
            yield framing.joined_frames(self.framing, contents, binary)

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        for contents, binary in self._contents(fs, split):
            found = framing.frames(self.framing, contents, binary)
            if self.key == "true" and self.framing != "lines":
                found = [key + value for key, value in zip(found[::2], found[1::2], strict=False)]
            yield from found

    def _contents(self, fs: FileSystem, split: Split) -> Iterator[tuple[Sequence[bytes], bool]]:
        """Yield the contents to frame, and whether they are binary."""
        with fs.open_read(split.uri) as file:
            window = ReadWindow(file, split.uri, self.limit)
            header = read_header(window)
            self._report_unknown_classes(split.uri, header)
            kinds = (writables.kind(header.key), writables.kind(header.value))
            for keys, values in _Records(window, header, kinds, self.key, split):
                yield self._merged(header, kinds, keys, values)

    def _merged(
        self, header: Header, kinds: Kinds, keys: Sequence[bytes] | None, values: Sequence[bytes]
    ) -> tuple[Sequence[bytes], bool]:
        if self.key == "only":
            return keys or (), kinds[0].binary
        if keys is None:
            return values, kinds[1].binary
        if self.framing != "lines":
            return framing.merge_pairs(keys, values, self.framing), False
        texts = [
            [line[:-1] for line in framing.frames("lines", contents, True)] if kind.binary else contents
            for contents, kind in zip((keys, values), kinds, strict=True)
        ]
        # A null is left out with its tab, as in TextOutputFormat.
        if writables.NULL in (header.key, header.value):
            return texts[header.key == writables.NULL], False
        return framing.merge_pairs(texts[0], texts[1], self.framing), False

    def _report_unknown_classes(self, uri: str, header: Header) -> None:
        used = {"false": (header.value,), "only": (header.key,), "true": (header.key, header.value)}[self.key]
        for name in used:
            if not writables.kind(name).known and name not in self._reported:
                self._reported.add(name)
                print(f"{uri}: {name} is not known here: its bytes are passed on as Java stored them", file=sys.stderr)


class _Records:
    """Yields the records of a split in batches."""

    def __init__(self, window: ReadWindow, header: Header, kinds: Kinds, key: str, split: Split) -> None:
        self._window, self._header, self._kinds = window, header, kinds
        self._keys, self._values = key != "false", key != "only"
        self._start, self._end = split.start, split.start + split.length

    def __iter__(self) -> Iterator[Batch]:
        if self._start > 0:
            self._window.seek(max(self._start, self._header.end))
            if not self._window.find(self._header.mark, self._end):
                return
        while True:
            try:
                batch = self._block() if self._header.is_block else self._batch()
            except (ValueError, IndexError, struct.error) as error:
                raise Corrupt.at(self._window.uri, self._window.position, f"SequenceFile: {error}") from error
            if batch is None:
                return
            if batch[1] or batch[0]:
                yield batch

    def _batch(self) -> Batch | None:
        """Return all whole records in the window, up to the next mark; None at the split's end."""
        window = self._window
        window.need(4, optional=True)
        if window.at == len(window.data):
            return None
        if window.data.startswith(ESCAPE, window.at) and not self._pass_mark():
            return None
        if window.size < 8 and not window.need(8, optional=True):
            if window.size:
                window.raise_cut(8)
            return None
        spans, next_size = self._spans()
        if not spans and next_size:
            window.need(next_size)
            spans, _ = self._spans()
        keys = self._kinds[0].contents(window.data, [(at, middle) for at, middle, _ in spans]) if self._keys else None
        values = self._value_contents([(middle, end) for _, middle, end in spans]) if self._values else ()
        if spans:
            window.at = spans[-1][2]
        return keys, values

    def _spans(self) -> tuple[list[tuple[int, int, int]], int]:
        """Return the positions of each record's key, value and end, and the number of bytes of the record after
        them."""
        data, at, limit = self._window.data, self._window.at, self._window.limit
        unpack, last, size = _RECORD.unpack_from, len(self._window.data) - 8, len(self._window.data)
        spans: list[tuple[int, int, int]] = []
        add = spans.append
        while at <= last:
            length, key_length = unpack(data, at)
            end = at + 8 + length
            if not 0 <= key_length <= length <= limit:
                if length == -1:
                    return spans, 0
                self._raise_wrong_length(at, length, key_length)
            if end > size:
                return spans, end - at
            add((at + 8, at + 8 + key_length, end))
            at = end
        return spans, 0

    def _raise_wrong_length(self, at: int, length: int, key_length: int) -> None:
        window = self._window
        window.at = at
        if 0 <= key_length <= length:
            raise ValueError(f"a record of {length} bytes, allowed are {window.limit} (max_record)")
        raise ValueError(f"no record begins here: {length} bytes, of which {key_length} are its key's")

    def _value_contents(self, spans: writables.Spans) -> list[bytes]:
        contents, data = self._kinds[1].contents, self._window.data
        codec, limit = self._header.codec, self._window.limit
        if not codec:
            return contents(data, spans)
        plain = [codecs.decompress(codec, data[start:end], limit) for start, end in spans]
        return contents(b"".join(plain), list(pairwise([0, *accumulate(map(len, plain))])))

    def _block(self) -> Batch | None:
        """Return the next block: its number of records, then lengths and contents of keys and of values, each
        compressed; None at the split's end."""
        window = self._window
        if not window.need(1, optional=True) or not self._pass_mark():
            return None
        at = window.position
        count = window.vint()
        keys = self._buffers(count, 0, self._keys)
        values = self._buffers(count, 1, self._values)
        if count < 0:
            raise ValueError(f"a block of {count} records at byte {at}")
        return (keys if self._keys else None), values

    def _buffers(self, count: int, which: int, wanted: bool) -> list[bytes]:
        """Return the contents in the next two buffers; nothing if they are not wanted."""
        lengths, data = self._buffer(wanted), self._buffer(wanted)
        if not wanted:
            return []
        borders = [0, *accumulate(writables.vints(lengths, count))]
        if borders[-1] != len(data):
            raise ValueError(f"{count} records have {borders[-1]} bytes, their block {len(data)}")
        return self._kinds[which].contents(data, list(pairwise(borders)))

    def _buffer(self, wanted: bool) -> bytes:
        data = self._window.read_exactly(self._window.vint())
        return codecs.decompress(self._header.codec, data) if wanted else b""

    def _pass_mark(self) -> bool:
        """Pass the sync mark that must be here; return whether the records after it still belong to this split."""
        begin = self._window.position
        if self._window.read_exactly(_MARK) != self._header.mark:
            self._window.seek(begin)
            raise ValueError("the sync mark that must be here is not: the file is damaged before it")
        return begin < self._end


def read_header(window: ReadWindow) -> Header:
    """Return the header at the window's beginning.

    Raises:
        Corrupt: there is none, or its codec is unknown.
    """
    try:
        magic = window.read_exactly(4)
        if magic[:3] != b"SEQ":
            raise ValueError(f"is not a SequenceFile, it begins with {magic!r}")
        if not 4 <= magic[3] <= 6:
            raise ValueError(f"is of version {magic[3]}, known are 4 to 6")
        key, value = window.text(), window.text()
        compressed, is_block = window.read_exactly(2)
        named = window.text() if compressed and magic[3] > 4 else "org.apache.hadoop.io.compress.DefaultCodec"
        if compressed and named not in codecs.CLASSES:
            raise ValueError(f"is compressed by {named}, known are {', '.join(sorted(codecs.CLASSES))}")
        for _ in range(2 * int.from_bytes(window.read_exactly(4), "big") if magic[3] > 5 else 0):
            window.text()
        mark = ESCAPE + window.read_exactly(SYNC_BYTES)
    except (ValueError, IndexError) as error:
        raise Corrupt.at(window.uri, window.position, f"SequenceFile: {error}") from error
    codec = codecs.CLASSES[named] if compressed else ""
    return Header(key, value, codec, bool(is_block), mark, window.position)
