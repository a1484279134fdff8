"""Reads Avro's object container files as JSON with fastavro, which must be in the environment of the job.

A split has the blocks that follow the sync marks that begin in it, and the first split also what follows the header
(Avro specification, Object Container Files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, BinaryIO

from howdah.errors import HowdahError
from howdah.inputs.formats.base import Corrupt, RecordReader, Split, cut_splits
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.read_window import ReadWindow
from howdah.storage import native_codecs
from howdah.storage.filesystem import FileSystem

_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_HEADER = {
    "type": "record",
    "name": "Header",
    "fields": [
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": _SYNC_BYTES}},
    ],
}
"""The header after the magic bytes, as the specification defines it."""


class AvroReader(RecordReader):
    """Reads records as lines of JSON. Options: `columns`, the fields to read, `max_record` (of a block)."""

    def __init__(self, options: Mapping[str, str]) -> None:
        parsed = FormatOptions(options)
        self.columns = parsed.names("columns")
        self.limit = parsed.max_record()
        parsed.finish("avro")

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        return cut_splits(uri, size, block_size, wanted_bytes)

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        fastavro = native_codecs.package("fastavro", "format avro")
        from howdah.inputs.formats.json_text import dumps

        with fs.open_read(split.uri) as file:
            window = ReadWindow(file, split.uri, self.limit)
            header, sync_mark = _header(window, fastavro)
            if not _find_first_block(window, split, sync_mark):
                return
            source = _HeaderAndRest(header, file, window.position)
            try:
                for block in fastavro.block_reader(source):
                    if source.position_of(block.offset) - _SYNC_BYTES >= split.start + split.length:
                        return
                    for record in block:
                        yield dumps(self._select_columns(split.uri, record)).encode() + b"\n"
            except HowdahError:
                raise
            except Exception as error:  # those of fastavro and of each codec it uses
                reason = f"{type(error).__name__}: {error}"
                raise Corrupt.at(split.uri, source.position, f"Avro: {reason}") from error

    def _select_columns(self, uri: str, record: Any) -> Any:
        if not self.columns or not isinstance(record, dict):
            return record
        absent = [name for name in self.columns if name not in record]
        if absent:
            raise Corrupt(f"{uri}: has no field {', '.join(absent)}, there are {', '.join(record)} (options.columns)")
        return {name: value for name, value in record.items() if name in self.columns}


def _header(window: ReadWindow, fastavro: Any) -> tuple[bytes, bytes]:
    """Return the whole header, and the sync mark, with which it ends."""
    try:
        if window.read_exactly(4) != _MAGIC:
            raise ValueError("is not an Avro file: it does not begin with Obj and 1")
        sync_mark = fastavro.schemaless_reader(SimpleNamespace(read=window.read_exactly), _HEADER, None)["sync"]
    except HowdahError:
        raise
    except Exception as error:  # of fastavro
        raise Corrupt.at(window.uri, window.position, f"Avro: {error}") from error
    end = window.position
    window.seek(0)
    return window.read_exactly(end), sync_mark


def _find_first_block(window: ReadWindow, split: Split, sync_mark: bytes) -> bool:
    """Go to the first block of the split; return whether there may be one."""
    if not split.start:
        return True
    # The header ends with a mark, too.
    window.seek(max(split.start, window.position - _SYNC_BYTES))
    found = window.find(sync_mark, split.start + split.length)
    window.at += _SYNC_BYTES if found else 0
    return found


class _HeaderAndRest:
    """A header, followed by a file from some position on: fastavro reads both as one file that begins with that
    block."""

    def __init__(self, header: bytes, file: BinaryIO, start: int) -> None:
        self._header, self._file, self._start = header, file, start
        self._at = 0
        file.seek(start)

    @property
    def position(self) -> int:
        """Return the position in the file."""
        return self.position_of(self._at)

    def position_of(self, offset: int) -> int:
        """Return the position in the file for fastavro's position `offset`."""
        return max(offset - len(self._header), 0) + self._start

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if self._at < len(self._header):
            data = self._header[self._at : self._at + size if size >= 0 else None]
        else:
            data = self._file.read(size)
        self._at += len(data)
        return data

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._at
