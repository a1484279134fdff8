"""Reads and writes directories of TFRecord files with tf.train.Example records, as the partitions of a DataFrame.

These functions run on the driver and on executors, which need howdah for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from howdah.errors import StagingError
from howdah.hadoop.identity import user
from howdah.inputs.formats.base import Split
from howdah.inputs.formats.framing import joined_frames
from howdah.inputs.formats.tfrecord import TFRecordReader
from howdah.spark.example_records import BYTES, FLOAT, INT, Column, infer_columns, to_record, to_row
from howdah.spec import uris
from howdah.spec.job import SUCCESS
from howdah.storage.factory import filesystem

SAMPLED = 1000
"""How many of the first records say which columns there are."""
_HEAD, _TAIL = 12, 4
_WRITTEN_RECORDS = 1000


def schema_of(columns: Mapping[str, Column]) -> StructType:
    """Return the columns as Spark has them: whole numbers as long, others as double."""
    fields = []
    for name, column in columns.items():
        kinds = {INT: LongType(), FLOAT: DoubleType(), BYTES: StringType() if column.is_text else BinaryType()}
        kind: DataType = kinds[column.kind]
        fields.append(StructField(name, ArrayType(kind) if column.is_array else kind))
    return StructType(fields)


def columns_of(schema: StructType) -> dict[str, Column]:
    """Return the columns of a DataFrame as records have them.

    Raises:
        ValueError: records cannot hold a column's type.
    """
    found = {}
    for field in schema.fields:
        is_array = isinstance(field.dataType, ArrayType)
        kind = field.dataType.elementType if isinstance(field.dataType, ArrayType) else field.dataType
        if isinstance(kind, IntegralType | BooleanType):
            found[field.name] = Column(INT, is_array)
        elif isinstance(kind, FloatType | DoubleType):
            found[field.name] = Column(FLOAT, is_array)
        elif isinstance(kind, StringType | BinaryType):
            found[field.name] = Column(BYTES, is_array, is_text=isinstance(kind, StringType))
        else:
            text = f"column {field.name!r} has the type {field.dataType.simpleString()}"
            raise ValueError(f"{text}: records hold numbers, texts, bytes, and arrays of them")
    return found


def uri_of(path: str, default_fs: str = "file://") -> str:
    """Return the URI of a path as Hadoop understands it: without a scheme it is on `default_fs`, and a relative one in
    the user's home there, or below the current directory where that is this machine's file system."""
    is_local, home = default_fs.startswith("file:"), ""
    if not (uris.has_scheme(path) or path.startswith("/")):  # in a container the user may have no name
        home = uris.of_local(".") if is_local else f"{default_fs}/user/{user(secure=False)}"
    return uris.absolute(path, "file://" if is_local else default_fs, home)


def record_files(directory: str) -> list[str]:
    """Return the URIs of the files in a directory (or of the file), sorted, without those that begin with `_` or `.`,
    or lie in a directory that does: a writer has not finished them.

    Raises:
        StagingError: there is none.
    """
    files = filesystem(directory)
    found = sorted(entry.uri for entry in files.walk(directory))
    if not found and files.exists(directory):
        found = [directory]
    root = uris.path(uris.normalize(directory))
    inner = {uri: uris.path(uris.normalize(uri)).removeprefix(root) for uri in found}
    found = [uri for uri in found if not any(part.startswith(("_", ".")) for part in inner[uri].split("/"))]
    if not found:
        raise StagingError(f"{directory}: no files")
    return found


def read_records(uri: str) -> Iterator[bytes]:
    """Return the records of a file; their checksums are checked.

    Raises:
        StagingError: there is no such file.
    """
    files = filesystem(uri)
    entry = files.stat(uri)
    if entry is None:
        raise StagingError(f"{uri}: no such file or directory")
    frames = TFRecordReader({}).records(files, Split(uri, 0, entry.size))
    return (frame[_HEAD:-_TAIL] for frame in frames)


def sample_columns(files: Sequence[str], binary: Sequence[str] = ()) -> dict[str, Column]:
    """Return the columns of the first records. Features in `binary` are bytes, though they look like text."""
    return infer_columns(islice(chain.from_iterable(map(read_records, files)), SAMPLED), binary)


def read_rows(uri: str, columns: Mapping[str, Column]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a file, with their values in the order of `columns`."""
    return (tuple(to_row(record, columns).values()) for record in read_records(uri))


def write_rows(uri: str, rows: Iterable[Any], columns: Mapping[str, Column]) -> int:
    """Write rows, which have values by column, as one file; return how many."""
    count, iterator = 0, iter(rows)
    with filesystem(uri).writing(uri) as sink:
        while some := list(islice(iterator, _WRITTEN_RECORDS)):
            sink.write(joined_frames("tfrecord", [to_record(row, columns) for row in some]))
            count += len(some)
    return count


def partition_writer(directory: str, columns: Mapping[str, Column]) -> Callable[[int, Iterable[Any]], Iterator[int]]:
    """Return the function for `mapPartitionsWithIndex` that writes each partition as one file."""

    def write(partition: int, rows: Iterable[Any]) -> Iterator[int]:
        yield write_rows(uris.join(directory, f"part-r-{partition:05d}"), rows, columns)

    return write


def prepare_directory(directory: str) -> None:
    """Make a directory for files.

    Raises:
        StagingError: it exists.
    """
    files = filesystem(directory)
    if files.exists(directory):
        raise StagingError(f"{directory}: exists already")
    files.mkdirs(directory)


def mark_complete(directory: str) -> None:
    """Say in the directory that all of its files are whole."""
    uri = uris.join(directory, SUCCESS)
    filesystem(uri).write_bytes(uri, b"")
