"""Tests that rows survive being tf.train.Example records, and that all records say which columns there are."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.spark.example_records import BYTES, FLOAT, INT, Column, infer_columns, to_record, to_row

COLUMNS = {
    "image": Column(FLOAT, is_array=True),
    "label": Column(INT),
    "name": Column(BYTES, is_text=True),
    "raw": Column(BYTES),
    "tags": Column(BYTES, is_array=True, is_text=True),
}
ROWS: list[dict[str, Any]] = [
    {"image": [0.5, 1.0], "label": 7, "name": "seven", "raw": b"\xff\x00", "tags": ["a", "b"]},
    {"image": [], "label": -1, "name": "", "raw": b"", "tags": ["ü"]},
    {"image": None, "label": None, "name": None, "raw": None, "tags": None},
]


def test_rows_come_back() -> None:
    records = [to_record(row, COLUMNS) for row in ROWS]
    assert [to_row(record, COLUMNS) for record in records] == ROWS
    assert infer_columns(records, binary=["raw"]) == COLUMNS
    assert infer_columns(records[1:2])["image"] == Column(FLOAT), "no record has said that there are more"


def test_tensorflow_reads_the_same_bytes() -> None:
    """An Example with one integer, as TensorFlow 2.15 writes it."""
    assert to_record({"a": 3}, {"a": Column(INT)}) == b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x03"


def test_features_of_two_types_are_told() -> None:
    records = [to_record({"a": 1}, {"a": Column(INT)}), to_record({"a": 1.0}, {"a": Column(FLOAT)})]
    with pytest.raises(ValueError, match="feature 'a' has values of int in one record, of float in another"):
        infer_columns(records)
    with pytest.raises(ValueError, match="feature 'a' has values of float, not of int"):
        to_row(records[1], {"a": Column(INT)})
    two = to_record({"a": [1, 2]}, {"a": Column(INT, is_array=True)})
    with pytest.raises(ValueError, match="feature 'a' has 2 values, and its column one"):
        to_row(two, {"a": Column(INT)})


def test_bytes_that_are_no_text_stay_bytes() -> None:
    record = to_record({"a": b"\xff"}, {"a": Column(BYTES)})
    assert infer_columns([record]) == {"a": Column(BYTES)}
