"""Rows as columns of Arrow, and columns of Arrow as NumPy arrays, without a Python object for each value where the data
allows it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy
import pyarrow


def to_numpy(column: pyarrow.ChunkedArray | pyarrow.Array) -> Any:
    """Return a column as an array. Lists of one length become a matrix, also nested ones; lists of several lengths,
    texts and bytes an array of objects. Nulls in numbers become NaN."""
    array = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(array, pyarrow.ChunkedArray):  # of no chunks
        array = pyarrow.array([], array.type)
    kind = array.type
    if pyarrow.types.is_fixed_size_list(kind) and not array.null_count:
        return to_numpy(array.flatten()).reshape(len(array), kind.list_size, *_inner_shape(array.flatten()))
    if (pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)) and not array.null_count and len(array):
        lengths = numpy.diff(array.offsets.to_numpy())
        if (lengths == lengths[0]).all():
            inner = to_numpy(array.flatten())
            return inner.reshape(len(array), int(lengths[0]), *inner.shape[1:])
    return array.to_numpy(zero_copy_only=False)


def _inner_shape(array: pyarrow.Array) -> tuple[int, ...]:
    return to_numpy(array).shape[1:] if pyarrow.types.is_nested(array.type) else ()


ROWS = b"howdah_rows"
"""The key of a schema's metadata that says what the rows were: `value`, `tuple`, `list`, `dict` or `array`."""
VALUE = "value"
"""The only column of rows that are plain values, as Spark calls it."""


def to_batches(rows: Iterable[Any], size: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield rows as record batches of up to `size` rows. Tuples and lists have the columns `0`, `1` and so on,
    mappings and Spark's Rows their keys, all other rows the one column `value`. A mapping that lacks a key of the first
    one has a null there.

    Raises:
        ValueError: rows have different columns, or a column has values of different types.
    """
    iterator, schema, names = iter(rows), None, None  # type: tuple[Iterator[Any], Any, list[str] | None]
    while some := list(islice(iterator, size)):
        batch = _to_batch(some, names)
        try:
            yield batch if schema is None else batch.cast(schema)
        except (ValueError, pyarrow.ArrowInvalid) as error:
            raise ValueError(f"rows must have the same columns and types as the first ones: {error}") from error
        schema = schema or batch.schema
        names = schema.names


def to_rows(batch: pyarrow.RecordBatch | pyarrow.Table) -> Iterator[Any]:
    """Yield the rows of a batch as `to_batches` has taken them, or as tuples where it has not."""
    kind = (batch.schema.metadata or {}).get(ROWS, b"tuple").decode()
    if kind == "array":
        yield from to_numpy(batch.column(0))
        return
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    if kind == "value":
        yield from (row[0] for row in rows)
    elif kind == "list":
        yield from map(list, rows)
    elif kind == "dict":
        yield from (dict(zip(batch.schema.names, row, strict=True)) for row in rows)
    else:
        yield from rows


def _to_batch(rows: list[Any], known: list[str] | None) -> pyarrow.RecordBatch:
    """Return rows as a batch; mappings with the columns that are `known` of earlier ones."""
    first = rows[0]
    if isinstance(first, Mapping):
        kind, names = "dict", known or list(first)
        _check_columns(rows, names, Mapping, frozenset(names).issuperset, True)
        columns: Iterable[Any] = ([row.get(name) for row in rows] for name in names)
    elif isinstance(first, tuple | list):
        kind = "list" if isinstance(first, list) else "tuple"
        names = list(getattr(first, "__fields__", map(str, range(len(first)))))  # Spark's Row has names
        columns_of: Callable[[Any], Any] = _names_of_row if hasattr(first, "__fields__") else len
        _check_columns(rows, names, tuple | list, columns_of, columns_of(first))
        columns = zip(*rows, strict=True)
    else:
        kind, names, columns = "array" if isinstance(first, numpy.ndarray) else "value", [VALUE], [rows]
    arrays = [_to_column(values) for values in columns]
    return pyarrow.RecordBatch.from_arrays(arrays, names, metadata={ROWS: kind.encode()})


def _check_columns(rows: list[Any], names: list[str], kind: Any, columns_of: Callable[[Any], Any], wanted: Any) -> None:
    """Do nothing if rows are of this kind and have these columns, and more than none: `columns_of` returns what is
    `wanted`.

    Raises:
        ValueError: they have not: values would be lost, or get into other columns.
    """
    if not names:
        raise ValueError("rows must have at least one column")
    if all(issubclass(each, kind) for each in set(map(type, rows))) and set(map(columns_of, rows)) == {wanted}:
        return
    wrong = next(row for row in rows if not isinstance(row, kind) or columns_of(row) != wanted)
    raise ValueError(f"rows must have the columns of the first one, {', '.join(names):.100}: {wrong!r:.100} has others")


def _names_of_row(row: Any) -> tuple[str, ...]:
    return tuple(getattr(row, "__fields__", ()))


def _to_column(values: Iterable[Any]) -> pyarrow.Array:
    values = list(values)
    if isinstance(values[0], numpy.ndarray) and all(
        getattr(value, "shape", None) == values[0].shape for value in values
    ):
        array = pyarrow.array(numpy.stack(values).reshape(-1))
        for length in reversed(values[0].shape):
            array = pyarrow.FixedSizeListArray.from_arrays(array, length)
        return array
    if (array := _float_lists(values)) is not None:
        return array
    if isinstance(values[0], bytearray):
        values = [value if value is None else bytes(value) for value in values]
    return pyarrow.array(values)


def _float_lists(values: list[Any]) -> pyarrow.Array | None:
    """Return lists of floats that have one length as a column; None for other values. Arrow's own conversion takes
    almost twice the time, and it is most of what feeding an RDD costs."""
    first = values[0]
    if not (isinstance(first, list | tuple) and first and all(isinstance(each, float) for each in first)):
        return None
    row = struct.Struct(f"{len(first)}d")
    try:
        data = b"".join([row.pack(*value) for value in values])
    except (struct.error, TypeError):  # lists of several lengths, or with nulls
        return None
    offsets = numpy.arange(0, (len(values) + 1) * len(first), len(first), dtype=numpy.int32)
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(numpy.frombuffer(data)))
