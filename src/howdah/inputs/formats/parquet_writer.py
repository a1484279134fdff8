"""Lines of JSON as a Parquet file, by pyarrow: the schema is the first rows', or the one that is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.inputs.formats.base import Corrupt, RecordWriter, Sink
from howdah.inputs.formats.format_options import FormatOptions
from howdah.inputs.formats.framing import PROGRAM, Unframed
from howdah.storage.native_codecs import Missing

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
    """Options: `schema` (`id: int64, name: string`), `compression`, `batch` (bytes of text that become rows together:
    a row group), `max_record`."""

    suffix = ".parquet"

    def __init__(self, options: Mapping[str, str], sink: Sink) -> None:
        asked = FormatOptions(options)
        self._fields = [_field(asked, word) for word in asked.words("schema")]
        self._compression = asked.choice("compression", _COMPRESSIONS)
        self._batch = asked.size("batch", _BATCH)
        self._lines = Unframed("lines", asked.max_record())
        asked.end("parquet")
        self._target = _Target(sink)
        self._rows: list[bytes] = []
        self._size = self._number = 0
        self._schema: Any = None
        self._writer: Any = None

    def write(self, data: bytes) -> None:
        self._put(self._lines.records(data))

    def close(self) -> None:
        self._put(self._lines.rest())
        if self._rows or self._writer is None:
            self._flush()
        self._writer.close()

    def _put(self, rows: list[bytes]) -> None:
        for row in rows:
            if row.strip():
                self._rows.append(row)
                self._size += len(row)
        if self._size >= self._batch:
            self._flush()

    def _flush(self) -> None:
        pyarrow = _library()
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

        schema = self._schema or (pyarrow.schema(_typed(pyarrow, self._fields)) if self._fields else None)
        if not self._rows:
            return (schema or pyarrow.schema([])).empty_table()
        text = b"\n".join(self._rows)
        how = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error" if schema else "infer")
        try:
            return json.read_json(
                pyarrow.BufferReader(text), json.ReadOptions(use_threads=False, block_size=len(text) + 1), how
            )
        except pyarrow.ArrowInvalid as error:
            raise Corrupt(
                f"{PROGRAM} from line {self._number + 1} on is no row of this Parquet file: {error}"
                f" (its columns are those of {'options.schema' if self._fields else 'the first rows'})"
            ) from error


class _Target:
    """The sink as a file of pyarrow's, which wants to know how far it is and must not close it."""

    closed = False

    def __init__(self, sink: Sink) -> None:
        self._sink, self._at = sink, 0

    def write(self, data: Any) -> int:
        """Takes it all."""
        size = memoryview(data).nbytes
        self._sink.write(bytes(data))
        self._at += size
        return size

    def tell(self) -> int:
        """Bytes so far."""
        return self._at

    def flush(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Whoever opened the sink closes it."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def _field(asked: FormatOptions, word: str) -> tuple[str, str]:
    name, _, kind = (part.strip() for part in word.partition(":"))
    if not name or kind not in _KNOWN:
        asked.wrong("schema", f"has {word!r}, must be name: type, where type is one of {', '.join(_KNOWN)}")
    return name, _KINDS.get(kind, kind)


def _typed(pyarrow: Any, fields: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    return [(name, pyarrow.type_for_alias(kind)) for name, kind in fields]


def _library() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise Missing.library("format parquet", "pyarrow") from None
    return pyarrow
