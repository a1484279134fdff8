"""Writes lines of JSON as a Parquet file with pyarrow: the schema is that of the options, else of the first rows."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from howdah.inputs.formats.base import Corrupt, RecordWriter, Sink
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.framing import PROGRAM, RecordSplitter
from howdah.storage import native_codecs

_BATCH = 16 << 20
_COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "none")
_KINDS = {
    "int": "int64",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "text": "string",
    "boolean": "bool",
    "timestamp": "timestamp[us]",
}
_KNOWN = ("int32", "int64", "float32", "float64", "string", "bool", "date32", "timestamp[us]", *_KINDS)


class ParquetWriter(RecordWriter):
    """Writes rows. Options: `schema` (`id: int64, name: string`), `compression`, `batch` (bytes of text that become a
    row group), `max_record`."""

    suffix = ".parquet"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        parsed = FormatOptions(options)
        self._fields = [_field(parsed, word) for word in parsed.names("schema")]
        self._compression = parsed.choice("compression", _COMPRESSIONS)
        self._batch = parsed.size("batch", _BATCH)
        self._lines = RecordSplitter("lines", parsed.max_record())
        parsed.finish("parquet")
        self._target = _SinkFile(sink)
        self._rows: list[bytes] = []
        self._size = self._number = 0
        self._schema: Any = None
        self._writer: Any = None

    def write(self, data: bytes) -> None:
        self._add(self._lines.records(data))

    def close(self) -> None:
        self._add(self._lines.rest())
        if self._rows or self._writer is None:
            self._flush()
        self._writer.close()

    def _add(self, rows: list[bytes]) -> None:
        for row in rows:
            if row.strip():
                self._rows.append(row)
                self._size += len(row)
        if self._size >= self._batch:
            self._flush()

    def _flush(self) -> None:
        pyarrow = native_codecs.package("pyarrow", "format parquet")
        from pyarrow import parquet

        table = self._table(pyarrow)
        if self._writer is None:
            self._schema = table.schema
            compression = None if self._compression == "none" else self._compression
            self._writer = parquet.ParquetWriter(self._target, table.schema, compression=compression)
        self._writer.write_table(table)
        self._number += len(self._rows)
        self._rows, self._size = [], 0

    def _table(self, pyarrow: Any) -> Any:
        from pyarrow import json

        fields = [(name, pyarrow.type_for_alias(kind)) for name, kind in self._fields]
        schema = self._schema or (pyarrow.schema(fields) if fields else None)
        if not self._rows:
            return (schema or pyarrow.schema([])).empty_table()
        text = b"\n".join(self._rows)
        parsing = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if schema else "infer")
        reading = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        try:
            return json.read_json(pyarrow.BufferReader(text), reading, parsing)
        except pyarrow.ArrowInvalid as error:
            raise Corrupt(
                f"{PROGRAM} from line {self._number + 1} on is not a row of this Parquet file: {error}"
                f" (its columns are those of {'options.schema' if self._fields else 'the first rows'})"
            ) from error


class _SinkFile(io.RawIOBase):
    """The sink as a file for pyarrow, which asks for the position and must not close the sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink, self._position = sink, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._sink.write(bytes(data))
        self._position += size
        return size

    def tell(self) -> int:
        return self._position


def _field(parsed: FormatOptions, word: str) -> tuple[str, str]:
    name, _, kind = (part.strip() for part in word.partition(":"))
    if not name or kind not in _KNOWN:
        parsed.add_mistake("schema", f"has {word!r}, must be name: type, where type is one of {', '.join(_KNOWN)}")
    return name, _KINDS.get(kind, kind)
