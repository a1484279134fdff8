"""Tests that every checksum of TFRecord files is verified, and that a good file's bytes are passed on unchanged."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import pytest
from record_files import blocks, put, records, splits, written

from howdah.inputs.formats import Corrupt, reader

CHANCE = random.Random(3)
CONTENTS = [CHANCE.randbytes(CHANCE.choice((0, 1, 100, 5000, 2_000_000))) for _ in range(12)]


def framed(contents: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(content)) + content for content in contents)


FILE = written("tfrecord", {"framing": "length"}, framed(CONTENTS), 7777)


def test_there_and_back(tmp_path: Path) -> None:
    whole, same = put(tmp_path / "a", FILE), reader("tfrecord", {})
    assert splits(same, whole, 1000) == [whole]
    assert blocks(same, whole) == b"".join(records(same, whole)) == FILE
    assert len(records(same, whole)) == len(CONTENTS)
    assert blocks(reader("tfrecord", {"framing": "length"}), whole) == framed(CONTENTS)
    assert b"".join(records(reader("tfrecord", {"framing": "length"}), whole)) == framed(CONTENTS)
    assert written("tfrecord", {"framing": "tfrecord"}, FILE, 999_999) == FILE
    lines = blocks(reader("tfrecord", {"framing": "lines"}), whole)
    assert written("tfrecord", {"base64": "true"}, lines, 999_999) == FILE
    assert blocks(same, put(tmp_path / "a.gz", gzip.compress(FILE, 1))) == FILE


def test_lines_become_records(tmp_path: Path) -> None:
    file = written("tfrecord", {}, b"a\n\nbc")
    assert blocks(reader("tfrecord", {"framing": "length"}), put(tmp_path / "a", file)) == framed([b"a", b"", b"bc"])


def test_an_empty_file(tmp_path: Path) -> None:
    assert splits(reader("tfrecord", {}), put(tmp_path / "a", b""), 10) == []
    assert written("tfrecord", {}, b"") == b""


def test_a_wrong_sum_is_told_with_its_place(tmp_path: Path) -> None:
    file = written("tfrecord", {}, b"first\nsecond\n")
    same = reader("tfrecord", {})
    for at, problem in (
        (21, "the length of a record does not have the sum"),
        (35, "a record of 6 bytes does not have"),
    ):
        broken = bytearray(file)
        broken[at] ^= 1
        with pytest.raises(Corrupt, match=f"/a: at byte 21: TFRecord: {problem}"):
            blocks(same, put(tmp_path / "a", bytes(broken)))


@pytest.mark.parametrize("size", [3, 15, 22, 30, -1])
def test_a_cut_file_is_told(tmp_path: Path, size: int) -> None:
    file = written("tfrecord", {}, b"first\nsecond\n")
    with pytest.raises(Corrupt, match=r"/a: at byte (0|21): the file is cut: \d+ bytes are left of the \d+"):
        blocks(reader("tfrecord", {}), put(tmp_path / "a", file[:size]))


def test_a_record_larger_than_memory_would_like(tmp_path: Path) -> None:
    with pytest.raises(Corrupt, match=r"at byte \d+: TFRecord: a record of 2000000 bytes, allowed are 1048576"):
        blocks(reader("tfrecord", {"max_record": "1MiB"}), put(tmp_path / "a", FILE))
