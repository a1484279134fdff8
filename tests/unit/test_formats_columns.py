"""Tests that each row of Parquet, ORC and Avro is read once as a line of JSON, and writing JSON lines as Parquet."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from pathlib import Path
from typing import Any

import pytest
from record_files import blocks, put, records, splits, written

from howdah.inputs.formats import Corrupt, Split, reader
from howdah.inputs.formats.json_text import dumps

COUNT = 5000
DAY = datetime.date(2026, 11, 21)
MOMENT = datetime.datetime(2026, 11, 21, 1, 2, 3, 4)
TEXTS = ("a", 'say "b"\\', "line\nend\r\t", "ü中\u2028", "", None)
FLOATS = (1.0, 0.5, 1e300, float("nan"), float("inf"), None)


def table() -> Any:
    pa = pytest.importorskip("pyarrow")
    moments = [MOMENT + datetime.timedelta(seconds=number) for number in range(COUNT)]
    return pa.table(
        {
            "id": list(range(COUNT)),
            "text": [TEXTS[number % len(TEXTS)] for number in range(COUNT)],
            "float": [FLOATS[number % len(FLOATS)] for number in range(COUNT)],
            "yes": [number % 2 == 0 for number in range(COUNT)],
            "list": [[1, None], None] * (COUNT // 2),
            "struct": [{"x": float("nan"), "y": b"\xff"}] * COUNT,
            "day": [DAY] * COUNT,
            "moment": moments,
            "price": [decimal.Decimal("12.30")] * COUNT,
            "bytes": [b"\xff\0"] * COUNT,
        }
    )


def stored(name: str, rows: Any) -> bytes:
    from pyarrow import orc, parquet

    sink = io.BytesIO()
    if name == "parquet":
        parquet.write_table(rows, sink, row_group_size=300)
    else:
        orc.write_table(rows, sink, stripe_size=32 << 10)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_rows_of_columns(tmp_path: Path, name: str) -> None:
    whole, rows = put(tmp_path / "a", stored(name, table())), reader(name, {})
    text = blocks(rows, whole)
    found = [json.loads(line) for line in text.splitlines()]
    assert [row["id"] for row in found] == list(range(COUNT))
    assert [row["text"] for row in found] == [TEXTS[number % len(TEXTS)] for number in range(COUNT)]
    assert [row["float"] for row in found[:6]] == [1.0, 0.5, 1e300, None, None, None]
    assert isinstance(found[0]["float"], float)
    assert found[1] | {"moment": 0, "text": 0, "float": 0} == {
        "id": 1,
        "text": 0,
        "float": 0,
        "yes": False,
        "list": None,
        "struct": {"x": None, "y": "/w=="},
        "day": "2026-11-21",
        "moment": 0,
        "price": "12.30",
        "bytes": "/wA=",
    }
    assert found[0]["moment"].startswith("2026-11-21T01:02:03.000004")
    for wanted in (5_000, 40_000):
        parts = splits(rows, whole, wanted)
        assert len(parts) > 1
        assert blocks(rows, *parts) == text
        assert b"".join(records(rows, *parts)) == text


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_only_chosen_columns_are_read(tmp_path: Path, name: str) -> None:
    whole = put(tmp_path / "a", stored(name, table()))
    assert records(reader(name, {"columns": "yes, id"}), whole)[1] == b'{"id":1,"yes":false}\n'
    with pytest.raises(Corrupt, match=r"/a: has no column wage, there are id, text, .*\(options.columns\)"):
        records(reader(name, {"columns": "id, wage"}), whole)


@pytest.mark.parametrize("name", ["parquet", "orc"])
def test_damaged_column_files_are_refused(tmp_path: Path, name: str) -> None:
    file = stored(name, table())
    for damaged in (file[: len(file) // 2], b"garbage" * 99):
        with pytest.raises(Corrupt, match="/a: "):
            blocks(reader(name, {}), put(tmp_path / "a", damaged))


SCHEMA = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "bytes", "type": "bytes"},
        {"name": "moment", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}


def avro(codec: str = "deflate") -> bytes:
    fastavro = pytest.importorskip("fastavro")
    sink = io.BytesIO()
    at = MOMENT.replace(tzinfo=datetime.timezone.utc)
    rows = ({"id": n, "text": TEXTS[n % 6], "bytes": b"\xff", "moment": at} for n in range(COUNT))
    fastavro.writer(sink, SCHEMA, rows, codec=codec, sync_interval=3000)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "snappy", "zstandard", "xz"])
def test_records_of_avro(tmp_path: Path, codec: str) -> None:
    whole, rows = put(tmp_path / "a", avro(codec)), reader("avro", {})
    text = blocks(rows, whole)
    found = [json.loads(line) for line in text.splitlines()]
    assert [(row["id"], row["text"]) for row in found] == [(n, TEXTS[n % 6]) for n in range(COUNT)]
    assert (found[0]["bytes"], found[0]["moment"]) == ("/w==", "2026-11-21T01:02:03.000004+00:00")
    for wanted in (100, 4000, whole.length // 2):
        assert blocks(rows, *splits(rows, whole, max(wanted, whole.length // 200))) == text
    assert records(reader("avro", {"columns": "id"}), whole)[3] == b'{"id":3}\n'


def test_damaged_avro_files_are_refused(tmp_path: Path) -> None:
    file, rows = avro(), reader("avro", {})
    for size in (0, 2, 50, len(file) // 2, len(file) - 3):
        with pytest.raises(Corrupt, match=r"/a: at byte \d+: "):
            blocks(rows, put(tmp_path / "a", file[:size]))
    with pytest.raises(Corrupt, match="is not an Avro file"):
        blocks(rows, put(tmp_path / "a", b"garbage" * 99))
    broken = bytearray(file)
    broken[len(file) // 2] ^= 0xFF
    with pytest.raises(Corrupt, match=r"/a: at byte \d+: Avro: "):
        blocks(rows, put(tmp_path / "a", bytes(broken)))
    with pytest.raises(Corrupt, match="has no field wage, there are id"):
        records(reader("avro", {"columns": "wage"}), put(tmp_path / "a", file))


def rows_of(data: bytes) -> list[dict[str, Any]]:
    from pyarrow import parquet

    return parquet.read_table(io.BytesIO(data)).to_pylist()


def test_lines_of_json_become_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [{"id": number, "text": "x" * number, "deep": {"a": [number]}} for number in range(300)]
    lines = "".join(json.dumps(row) + "\n\n" for row in rows).encode()
    for options in ({}, {"batch": "5000", "compression": "zstd"}):
        file = written("parquet", options, lines)
        assert rows_of(file) == rows
        assert [
            json.loads(line) for line in blocks(reader("parquet", {}), put(tmp_path / "a", file)).splitlines()
        ] == rows
    assert rows_of(written("parquet", {"schema": "id: int, more: string"}, b'{"id": 1}\n')) == [{"id": 1, "more": None}]
    assert rows_of(written("parquet", {"schema": "id: int"}, b"")) == rows_of(written("parquet", {}, b"")) == []


def test_lines_that_are_no_rows() -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(Corrupt, match="what the program prints from line 1 on is not a row of this Parquet file: "):
        written("parquet", {}, b"loss 0.5\n")
    with pytest.raises(Corrupt, match=r"from line 1 on .*its columns are those of options.schema"):
        written("parquet", {"schema": "id: int"}, b'{"other": 1}\n')
    with pytest.raises(Corrupt, match=r"from line 2 on .*its columns are those of the first rows"):
        written("parquet", {"batch": "1"}, b'{"id": 1}\n{"id": "x"}\n', 10)


def test_values_that_json_lacks() -> None:
    value = {"a": float("nan"), "b": [float("inf"), 1.0], "c": datetime.time(1, 2), "d": decimal.Decimal("1.50")}
    assert dumps(value) == '{"a":null,"b":[null,1.0],"c":"01:02:00","d":"1.50"}'


def test_a_split_beyond_all_row_groups_has_none(tmp_path: Path) -> None:
    whole = put(tmp_path / "a", stored("parquet", table().slice(0, 10)))
    assert records(reader("parquet", {}), Split(whole.uri, whole.length - 10, 10)) == []
