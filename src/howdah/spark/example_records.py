"""Rows as tf.train.Example records, and records as rows: which columns there are, and of which types.

A feature is a list of bytes, floats or integers. One with a single value in all records that were looked at becomes a
plain column, any other one an array; a record without a feature has a null there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from howdah.spark.example_message import Example
from howdah.spec.values import dataclass

BYTES, FLOAT, INT = "bytes", "float", "int"
_LISTS = {BYTES: "bytes_list", FLOAT: "float_list", INT: "int64_list"}
_KINDS = {name: kind for kind, name in _LISTS.items()}


@dataclass(frozen=True)
class Column:
    """One feature as a column."""

    kind: str
    """`bytes`, `float` or `int`."""
    is_array: bool = False
    """Whether a row may have another number of values than one."""
    is_text: bool = False
    """Whether bytes are text in UTF-8."""


def infer_columns(records: Iterable[bytes], binary: Sequence[str] = ()) -> dict[str, Column]:
    """Return the columns of these records by name, sorted. Features of bytes are text, unless `binary` names them or
    one of their values is no UTF-8.

    Raises:
        ValueError: a feature has two types.
    """
    found: dict[str, Column] = {}
    for record in records:
        for name, feature in Example.FromString(record).features.feature.items():
            if (list_name := feature.WhichOneof("kind")) is None:
                continue
            kind, values = _KINDS[list_name], getattr(feature, list_name).value
            known = found.get(name, Column(kind, is_text=kind == BYTES and name not in binary))
            if known.kind != kind and values:
                raise ValueError(f"feature {name!r} has values of {known.kind} in one record, of {kind} in another")
            is_text = known.is_text and all(map(_is_text, values))
            found[name] = Column(known.kind, known.is_array or len(values) > 1, is_text)
    return dict(sorted(found.items()))


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def to_row(record: bytes, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Return a record's values by column; None for a feature that it does not have, or that has no value.

    Raises:
        ValueError: a feature has another type, or several values where the column has one.
    """
    features, row = Example.FromString(record).features.feature, {}
    for name, column in columns.items():
        values: Any = None
        if name in features and (list_name := features[name].WhichOneof("kind")) is not None:
            if _KINDS[list_name] != column.kind:
                raise ValueError(f"feature {name!r} has values of {_KINDS[list_name]}, not of {column.kind}")
            values = list(getattr(features[name], list_name).value)
            if column.is_text:
                values = [value.decode() for value in values]
            if not column.is_array:
                if len(values) > 1:
                    raise ValueError(f"feature {name!r} has {len(values)} values, and its column one")
                values = values[0] if values else None
        row[name] = values
    return row


def to_record(row: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Return a row as a record; a value that is None is left out."""
    example = Example()
    for name, column in columns.items():
        value = row[name]
        if value is None:
            continue
        values = list(value) if column.is_array else [value]
        if column.kind == BYTES:
            values = [each.encode() if isinstance(each, str) else bytes(each) for each in values]
        getattr(example.features.feature[name], _LISTS[column.kind]).value.extend(values)
    return bytes(example.SerializeToString(deterministic=True))
