"""Tests SequenceFiles that howdah writes and reads, and damaged ones. tests/e2e has Java's own."""

from __future__ import annotations

import contextlib
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_files import blocks, put, records, splits, written

from howdah.inputs.formats import Corrupt, Split, codecs, reader, writables
from howdah.inputs.formats.read_window import ReadWindow
from howdah.inputs.formats.sequencefile import read_header

CHANCE = random.Random(5)
SIZES = (0, 3, 50, 126, 127, 128, 200, 3000)
LINES = [CHANCE.choices(b"abcdefg\t ", k=CHANCE.choice(SIZES)) for _ in range(2500)]
DATA = b"".join(bytes(line) + b"\n" for line in LINES)
CASES = [("none", "deflate"), *((kind, codec) for kind in ("record", "block") for codec in codecs.NAMES)]


@pytest.mark.parametrize(("compression", "codec"), CASES)
def test_each_record_is_in_one_split(tmp_path: Path, compression: str, codec: str) -> None:
    data = DATA if compression != "record" else DATA[: DATA.index(b"\n", 300_000) + 1]
    file = written("sequencefile", {"compression": compression, "codec": codec}, data, 100_000)
    whole, values = put(tmp_path / "a", file), reader("sequencefile", {})
    for wanted in (0, 30_007, 250_000):
        parts = splits(values, whole, wanted)
        assert blocks(values, *parts) == data
        assert b"".join(records(values, *parts)) == data
    assert sum(1 for part in splits(values, whole, whole.length // 3) if records(values, part)) > 1


def test_keys_and_values(tmp_path: Path) -> None:
    whole = put(tmp_path / "a", written("sequencefile", {"key": "true"}, b"k\tv\tw\nalone\n", 1))
    assert records(reader("sequencefile", {}), whole) == [b"v\tw\n", b"\n"]
    assert records(reader("sequencefile", {"key": "true"}), whole) == [b"k\tv\tw\n", b"alone\t\n"]
    assert records(reader("sequencefile", {"key": "only"}), whole) == [b"k\n", b"alone\n"]
    framed = reader("sequencefile", {"key": "true", "framing": "length"})
    pair = b"\0\0\0\1k\0\0\0\3v\tw"
    assert records(framed, whole)[0] == pair
    assert blocks(framed, whole).startswith(pair)
    again = written("sequencefile", {"key": "true", "framing": "length"}, blocks(framed, whole), 3)
    assert records(reader("sequencefile", {"key": "true"}), put(tmp_path / "b", again))[0] == b"k\tv\tw\n"
    with pytest.raises(Corrupt, match="ends with a key that has no value"):
        written("sequencefile", {"key": "true", "framing": "length"}, b"\0\0\0\1k")


def test_bytes_are_base64_in_lines(tmp_path: Path) -> None:
    file = written("sequencefile", {"value": "bytes", "base64": "true"}, b"AAo=\n/w==\n")
    whole = put(tmp_path / "a", file)
    assert records(reader("sequencefile", {}), whole) == [b"AAo=\n", b"/w==\n"]
    assert records(reader("sequencefile", {"framing": "length"}), whole) == [b"\0\0\0\2\0\n", b"\0\0\0\1\xff"]


def test_a_file_without_records(tmp_path: Path) -> None:
    whole, values = put(tmp_path / "a", written("sequencefile", {}, b"")), reader("sequencefile", {})
    assert records(values, *splits(values, whole, 10)) == []


@pytest.mark.parametrize("compression", ["none", "record", "block"])
def test_a_cut_file_is_told_or_ends_between_records(tmp_path: Path, compression: str) -> None:
    file = written("sequencefile", {"compression": compression}, DATA[:3000])
    values, all_ = reader("sequencefile", {}), DATA[:3000].splitlines(keepends=True)
    told: list[str] = []
    for size in (*range(0, len(file), 61), len(file) - 1):
        whole = put(tmp_path / "a", file[:size])
        try:
            found = records(values, whole)
        except Corrupt as error:
            told.append(str(error))
        else:
            assert found == all_[: len(found)]
    assert len(told) > 10
    assert all("/a: at byte " in line for line in told)


@pytest.mark.parametrize("compression", ["none", "record", "block"])
def test_garbage_never_gets_out_as_another_error(tmp_path: Path, compression: str) -> None:
    file = written("sequencefile", {"compression": compression}, DATA[:3000])
    values, chance = reader("sequencefile", {}), random.Random(6)
    for _ in range(300):
        broken = bytearray(file)
        for at in chance.choices(range(len(file)), k=3):
            broken[at] = chance.randrange(256)
        whole = put(tmp_path / "a", bytes(broken))
        with contextlib.suppress(Corrupt):
            records(values, whole, Split(whole.uri, 200, 1000))


def test_what_is_no_sequence_file(tmp_path: Path) -> None:
    values = reader("sequencefile", {})
    with pytest.raises(Corrupt, match="is not a SequenceFile, it begins with b'PAR1'"):
        records(values, put(tmp_path / "a", b"PAR1" * 100))
    with pytest.raises(Corrupt, match="is of version 3, known are 4 to 6"):
        records(values, put(tmp_path / "a", b"SEQ\x03" * 100))
    file = written("sequencefile", {"codec": "gzip"}, b"a\n").replace(b"GzipCodec", b"LzopCodec")
    with pytest.raises(Corrupt, match=r"compressed by org\.apache\.hadoop\.io\.compress\.LzopCodec, known are"):
        records(values, put(tmp_path / "a", file))


def test_a_record_larger_than_memory_would_like(tmp_path: Path) -> None:
    small = reader("sequencefile", {"max_record": "1000"})
    for compression in ("none", "record"):
        file = written("sequencefile", {"compression": compression}, b"a\n" + b"x" * 5000 + b"\n")
        with pytest.raises(Corrupt, match=r"1000 .*\(max_record\)"):
            records(small, put(tmp_path / "a", file))
    with pytest.raises(Corrupt, match=r"allowed are 1000 \(max_record\)"):
        written("sequencefile", {"max_record": "1000"}, b"x" * 5000)


def test_classes_that_are_not_known_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written("sequencefile", {"compression": "none"}, b"ab\n").replace(b"io.Text", b"io.Wort")
    whole, values = put(tmp_path / "a", file), reader("sequencefile", {})
    assert records(values, whole, whole) == [b"AmFi\n"] * 2
    assert capsys.readouterr().err == (
        f"{whole.uri}: org.apache.hadoop.io.Wort is not known here: its bytes are passed on as Java stored them\n"
    )


def test_the_header_is_read_back(tmp_path: Path) -> None:
    file = written("sequencefile", {"key": "true", "value": "bytes", "codec": "snappy"}, b"a\tb\n")
    put(tmp_path / "a", file)
    with (tmp_path / "a").open("rb") as source:
        header = read_header(ReadWindow(source, "a", 1000))
    assert header[:4] == (writables.TEXT, writables.BYTES, "snappy", True)
    assert file[header.end :].startswith(header.mark)


@given(st.integers(0, 2**40))
def test_numbers_of_variable_length(value: int) -> None:
    packed = writables.packed_vint(value)
    assert writables.vint(packed, 0) == (value, len(packed))
    assert writables.vints(packed * 3, 3) == [value] * 3


def test_numbers_as_java_writes_them() -> None:
    # WritableUtils.writeVLong of -1, -112, -113, -257, 127, 128, 300.
    for stored, value in (("ff", -1), ("90", -112), ("8770", -113), ("860100", -257), ("7f", 127), ("8f80", 128)):
        assert writables.vint(bytes.fromhex(stored), 0) == (value, len(stored) // 2)
    with pytest.raises(IndexError):
        writables.vint(b"\x8e\x01", 0)
    with pytest.raises(ValueError, match="lengths that can't be"):
        writables.vints(b"\xff\x01", 2)


def test_numbers_in_decimal() -> None:
    data = struct.pack(">f", 0.1) + struct.pack(">f", 1e10) + struct.pack(">f", float("nan"))
    spans = [(0, 4), (4, 8), (8, 12)]
    assert writables.kind("org.apache.hadoop.io.FloatWritable").contents(data, spans) == [
        b"0.1",
        b"10000000000.0",
        b"nan",
    ]
    with pytest.raises(ValueError, match="a number of 2 bytes, which has 4"):
        writables.kind("org.apache.hadoop.io.IntWritable").contents(b"ab", [(0, 2)])
