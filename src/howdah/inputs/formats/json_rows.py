"""Writes rows of Arrow as lines of JSON, column by column inside Arrow: no Python runs for a row of plain types.

Values have the same form as in `json_text`.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from howdah.inputs.formats.json_text import dumps

_LARGE = pa.large_string()
_TO_ESCAPE = r'["\\\x00-\x1f]'


def lines(batch: pa.RecordBatch) -> bytes:
    """Return a JSON object and LF for each row."""
    if not batch.num_rows:
        return b""
    if not batch.num_columns:
        return b"{}\n" * int(batch.num_rows)
    parts: list[Any] = []
    for number, name in enumerate(batch.schema.names):
        parts += [_text(("," if number else "{") + json.dumps(name, ensure_ascii=False) + ":")]
        parts += [pc.fill_null(values(batch.column(number)), "null")]
    rows = pc.binary_join_element_wise(*parts, _text("}\n"), _text(""))
    _, offsets, data = rows.buffers()
    # The rows lie one after another in Arrow's buffer.
    ends = memoryview(offsets).cast("q")
    text: bytes = memoryview(data)[ends[rows.offset] : ends[rows.offset + len(rows)]].tobytes()
    return text


def values(column: pa.Array) -> pa.Array:
    """Return each value as JSON; null where there is none."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return values(column.dictionary_decode())
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return pc.cast(column, _LARGE)
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _strings(pc.cast(column, _LARGE))
    if pa.types.is_timestamp(kind):
        return _quoted(pc.replace_substring(pc.cast(column, _LARGE), " ", "T", max_replacements=1))
    if pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return _quoted(pc.cast(column, _LARGE))
    return pa.array([None if value is None else dumps(value) for value in _python_values(column)], _LARGE)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, _LARGE)


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_text('"'), texts, _text('"'), _text(""))


def _floats(column: pa.Array) -> pa.Array:
    numbers = pc.cast(column, pa.float32() if pa.types.is_float16(column.type) else column.type)
    texts = pc.cast(pc.if_else(pc.is_finite(numbers), numbers, None), _LARGE)
    # A whole number stays a float for the reader.
    return pc.replace_substring_regex(texts, "^(-?[0-9]+)$", r"\1.0")


def _strings(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, _TO_ESCAPE)).as_py():
        found = texts.to_pylist()
        return pa.array([None if text is None else json.dumps(text, ensure_ascii=False) for text in found], _LARGE)
    return _quoted(texts)


def _python_values(column: pa.Array) -> list[Any]:
    try:
        return list(column.to_pylist(maps_as_pydicts="lossy"))
    except TypeError:  # pyarrow before 20
        return list(column.to_pylist())
