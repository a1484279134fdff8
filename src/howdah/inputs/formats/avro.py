"""Avro's object container files, read by fastavro, which must be in the environment of the job: records as JSON.

A split owns the blocks that follow the sync marks that begin in it, and the first split what follows the header (Avro
specification, Object Container Files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from howdah.errors import HowdahError
from howdah.inputs.formats.base import Corrupt, RecordReader, Split, cut
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.read_window import ReadWindow
from howdah.storage.filesystem import FileSystem
from howdah.storage.native_codecs import Missing

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16


class AvroReader(RecordReader):
    """Options: `columns`, the fields wanted, `max_record` (of a block)."""

    def __init__(self, options: Mapping[str, str]) -> None:
        asked = FormatOptions(options)
        self.columns = asked.words("columns")
        self.limit = asked.max_record()
        asked.end("avro")

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        return cut(uri, size, block_size, wanted_bytes)

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        fastavro = _library()
        from howdah.inputs.formats.json_text import dumps

        with fs.open_read(split.uri) as file:
            window = ReadWindow(file, split.uri, self.limit)
            header, mark = _header(window)
            if not self._begin(window, split, mark):
                return
            joined = _Joined(header, file, window.position)
            try:
                for record in _owned(fastavro.block_reader(joined), joined, split):
                    yield dumps(self._chosen(split.uri, record)).encode() + b"\n"
            except HowdahError:
                raise
            except Exception as error:  # those of fastavro and of each codec it uses
                reason = f"{type(error).__name__}: {error}"
                raise Corrupt.at(split.uri, joined.position, f"Avro: {reason}") from error

    def _begin(self, window: ReadWindow, split: Split, mark: bytes) -> bool:
        """Go to the first block of the split; whether there may be one."""
        if not split.start:
            return True
        # The header ends with a mark, too.
        window.seek(max(split.start, window.position - _SYNC_BYTES))
        found = window.find(mark, split.start + split.length)
        window.at += _SYNC_BYTES if found else 0
        return found

    def _chosen(self, uri: str, record: Any) -> Any:
        if not self.columns or not isinstance(record, dict):
            return record
        absent = [name for name in self.columns if name not in record]
        if absent:
            raise Corrupt(f"{uri}: has no field {', '.join(absent)}, there are {', '.join(record)} (options.columns)")
        return {name: value for name, value in record.items() if name in self.columns}


def _owned(blocks: Any, joined: _Joined, split: Split) -> Iterator[Any]:
    end = split.start + split.length
    for block in blocks:
        at = joined.position_of(block.offset)
        if at - _SYNC_BYTES >= end:
            return
        yield from block


class _Joined:
    """A header, then a file from some position on: to fastavro a file that begins with that block."""

    def __init__(self, header: bytes, file: BinaryIO, start: int) -> None:
        self._header, self._file, self._start = header, file, start
        self._at = 0
        file.seek(start)

    @property
    def position(self) -> int:
        """In the file."""
        return self.position_of(self._at)

    def position_of(self, offset: int) -> int:
        """In the file, of what fastavro takes for `offset`."""
        return max(offset - len(self._header), 0) + self._start

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if self._at < len(self._header):
            data = self._header[self._at : self._at + size if size >= 0 else None]
        else:
            data = self._file.read(size)
        self._at += len(data)
        return data

    def tell(self) -> int:
        """How many were read."""
        return self._at


def _header(window: ReadWindow) -> tuple[bytes, bytes]:
    """The header, to its end, and the sync mark, with which it ends."""
    try:
        if window.read_exactly(4) != _MAGIC:
            raise ValueError("is no Avro file: it does not begin with Obj and 1")
        while count := _long(window):
            if count < 0:
                count = -count
                _long(window)
            for _ in range(2 * count):
                window.read_exactly(_long(window))
        mark = window.read_exactly(_SYNC_BYTES)
    except ValueError as error:
        raise Corrupt.at(window.uri, window.position, f"Avro: {error}") from error
    end = window.position
    window.seek(0)
    return window.read_exactly(end), mark


def _long(window: ReadWindow) -> int:
    """A number as Avro has it: seven bits a byte, lowest first, zigzag."""
    value = shift = 0
    while True:
        byte = window.read_exactly(1)[0]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value >> 1 ^ -(value & 1)
        if shift > 63:
            raise ValueError("a number that does not end")


def _library() -> Any:
    try:
        import fastavro
    except ImportError:
        raise Missing.library("format avro", "fastavro") from None
    return fastavro
