"""Tests that each line is in exactly one split by Hadoop's rule, with any line end and compression."""

from __future__ import annotations

import bz2
import gzip
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_files import FS, blocks, put, records, splits, written

from howdah.inputs.formats import Corrupt, Split, codecs, reader
from howdah.inputs.formats.bzip2 import blocks as bzip2_blocks
from howdah.inputs.formats.lines import TextLines, overlaps

ENDS = re.compile(rb"\r\n|\n|\r")
SUFFIX = {codec: suffix for suffix, codec in codecs.SUFFIXES.items()}


def lines_of(data: bytes, delimiter: bytes = b"") -> list[bytes]:
    """By the plainest means."""
    parts = data.split(delimiter) if delimiter else ENDS.split(data)
    return [part + (delimiter or b"\n") for part in (parts if parts[-1] else parts[:-1])]


def chunked(data: bytes, start: int, end: int, step: int, overlap: int) -> list[tuple[bytes, bool]]:
    """As a file gives them, `step` bytes at a time."""
    first = max(0, start - overlap)
    inside = [(data[at : min(at + step, end)], False) for at in range(first, end, step)]
    return inside + [(data[at : at + step], True) for at in range(end, len(data), step)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"|", b"|-"]), max_size=30).map(b"".join),
    st.sampled_from([b"", b"\n", b"|-", b"bc|"]),
    st.integers(1, 9),
    st.integers(1, 12),
)
def test_each_line_is_in_one_split(data: bytes, delimiter: bytes, step: int, size: int) -> None:
    lines = TextLines("file:///x", delimiter, 1000)
    found: list[bytes] = []
    for start in range(0, len(data), size):
        end = min(start + size, len(data))
        chunks = chunked(data, start, end, step, lines.overlap)
        pieces = list(lines.owned(chunks, start))
        owned = list(lines.one_by_one(pieces))
        assert b"".join(owned) == b"".join(pieces)
        found += owned
    assert found == lines_of(data, delimiter)
    ends = list(lines.ends(data[at : at + step] for at in range(0, len(data), step)))
    pattern = re.compile(re.escape(delimiter)) if delimiter else ENDS
    assert ends == [match.end() for match in pattern.finditer(data)]


def test_a_line_longer_than_many_splits(tmp_path: Path) -> None:
    data = b"a\n" + b"x" * 5000 + b"\r\nb"
    whole = put(tmp_path / "a", data)
    text = reader("text", {})
    assert records(text, *splits(text, whole, 100)) == lines_of(data)


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    assert blocks(reader("text", {}), put(tmp_path / "a", b"\xef\xbb\xbfa\nb")) == b"a\nb\n"


def test_an_empty_file_has_no_split(tmp_path: Path) -> None:
    assert splits(reader("text", {}), put(tmp_path / "a", b""), 10) == []


def test_splits_follow_blocks(tmp_path: Path) -> None:
    text = reader("text", {})
    cuts = [split.start for split in text.splits(FS, "file:///x", 1000, 300, 100)]
    assert cuts == [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]
    assert [split.start for split in text.splits(FS, "file:///x", 1000, 300, 0)] == [0, 300, 600, 900]
    assert [split.start for split in text.splits(FS, "file:///x", 1000, 300, 700)] == [0, 600]
    # A last part of less than a tenth is not worth a start.
    assert [split.length for split in text.splits(FS, "file:///x", 1020, 500, 0)] == [500, 520]


def test_so_many_lines_a_split(tmp_path: Path) -> None:
    data = b"".join(b"%d\r\n" % number for number in range(10))
    whole = put(tmp_path / "a", data)
    text = reader("text", {"lines": "3"})
    assert [len(records(text, split)) for split in splits(text, whole, 0)] == [3, 3, 3, 1]


def test_delimiters_that_may_overlap_keep_a_file_whole(tmp_path: Path) -> None:
    assert overlaps(b"||")
    assert not overlaps(b"|-")
    text = reader("text", {"delimiter": "||"})
    assert len(splits(text, put(tmp_path / "a", b"a|||b" * 100), 10)) == 1


@pytest.mark.parametrize("codec", codecs.NAMES)
def test_compressed_files_are_read(tmp_path: Path, codec: str) -> None:
    data = b"".join(b"line %d\n" % number for number in range(100_000))
    packed = codecs.compress(codec, data)
    whole = put(tmp_path / f"a{SUFFIX[codec]}", packed)
    text = reader("text", {})
    assert blocks(text, *splits(text, whole, 10**9)) == data
    for size in (len(packed) // 2, len(packed) - 1, 5):
        with pytest.raises(Corrupt, match=r"file:.*at byte \d+: .*(cut|no block)"):
            blocks(text, put(tmp_path / f"cut{SUFFIX[codec]}", packed[:size]))
    with pytest.raises(Corrupt, match=r"file:.*at byte"):
        blocks(text, put(tmp_path / f"garbage{SUFFIX[codec]}", b"this is no such file at all" * 9))
    if codec == "deflate":
        return  # one stream a file
    assert blocks(text, put(tmp_path / f"twice{SUFFIX[codec]}", packed + packed)) == data + data


def test_a_name_that_does_not_tell(tmp_path: Path) -> None:
    assert blocks(reader("text", {"codec": "gzip"}), put(tmp_path / "a", gzip.compress(b"x"))) == b"x\n"
    assert blocks(reader("text", {"codec": "none"}), put(tmp_path / "a.gz", b"x")) == b"x\n"


def test_zeros_may_follow_gzip_members(tmp_path: Path) -> None:
    assert blocks(reader("text", {}), put(tmp_path / "a.gz", gzip.compress(b"x\n") + b"\0" * 600)) == b"x\n"


def test_bzip2_is_split_at_its_blocks(tmp_path: Path) -> None:
    chance = random.Random(1)
    data = b"".join(chance.randbytes(chance.randrange(60)).hex().encode() + b"\n" for _ in range(8000))
    parts = [data[at : at + 300_000] for at in range(0, len(data), 300_000)]
    whole = put(tmp_path / "a.bz2", b"".join(bz2.compress(part, 1) for part in parts))
    text = reader("text", {})
    for wanted in (20_000, 70_001, 10**7):
        parts_ = splits(text, whole, wanted)
        assert blocks(text, *parts_) == data
        assert b"".join(records(text, *parts_)) == data
    with (tmp_path / "a.bz2").open("rb") as file:
        assert b"".join(content for content, _ in bzip2_blocks(file, whole.uri, 0, whole.length)) == data


def test_a_damaged_bzip2_block_is_told(tmp_path: Path) -> None:
    packed = bytearray(bz2.compress(random.Random(2).randbytes(50_000).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(Corrupt, match="at byte 4: bzip2: the block that begins here"):
        blocks(reader("text", {}), put(tmp_path / "a.bz2", bytes(packed)))


def test_a_line_longer_than_memory_would_like(tmp_path: Path) -> None:
    whole = put(tmp_path / "a", b"a\n" + b"x" * 300_000)
    text = reader("text", {"max_record": "100KiB"})
    with pytest.raises(Corrupt, match=r"a: a record of more than 102400 bytes \(max_record\): b'xxx"):
        records(text, whole)
    with pytest.raises(Corrupt, match="no line ends within 102400 bytes"):
        blocks(text, Split(whole.uri, 10, 20))


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    whole = put(tmp_path / "a", b"a\nb\n")
    with pytest.raises(Corrupt, match="at byte 4: the file ends here, but had 9 bytes or more"):
        blocks(reader("text", {}), Split(whole.uri, 0, 9))


CSV = b"id,name\n1,a\n2,b\n"


@pytest.mark.parametrize(
    ("header", "wanted"), [("keep", CSV), ("drop", b"1,a\n2,b\n"), ("once", b"1,a\n2,b\n")], ids=str
)
@pytest.mark.parametrize("packed", [False, True])
def test_headers_of_csv(tmp_path: Path, header: str, wanted: bytes, packed: bool) -> None:
    whole = put(tmp_path / "a.csv.gz", gzip.compress(CSV)) if packed else put(tmp_path / "a.csv", CSV)
    table = reader("csv", {"header": header})
    parts = splits(table, whole, 6)
    assert blocks(table, *parts) == b"".join(records(table, *parts)) == wanted
    assert table.prologue(FS, parts[-1]) == (b"id,name\n" if header == "once" else b"")


def test_quotes_of_csv_may_hold_line_ends(tmp_path: Path) -> None:
    data = b'id,"a\nb"\n1,"x ""y""\n\nz"\n2,c\n'
    whole = put(tmp_path / "a.csv", data)
    table = reader("csv", {"quoted_newlines": "true", "header": "drop"})
    parts = splits(table, whole, 3)
    assert len(parts) == 1
    assert records(table, *parts) == [b'1,"x ""y""\n\nz"\n', b"2,c\n"]
    assert blocks(table, *parts) == b'1,"x ""y""\n\nz"\n2,c\n'
    with pytest.raises(Corrupt, match="the file ends within quotes"):
        records(table, put(tmp_path / "b.csv", b'a,"b\nc\n'))


def test_whole_files_are_records(tmp_path: Path) -> None:
    whole = put(tmp_path / "a.gz", gzip.compress(b"\0\n"))
    assert records(reader("whole", {}), whole) == [b"\0\0\0\2\0\n"]
    assert records(reader("whole", {"framing": "lines"}), whole) == [b"AAo=\n"]
    name = whole.uri.encode()
    assert records(reader("whole", {"framing": "lines", "name": "true"}), whole) == [name + b"\tAAo=\n"]
    framed = len(name).to_bytes(4, "big") + name + b"\0\0\0\2\0\n"
    assert records(reader("whole", {"name": "true"}), whole) == [framed]
    empty = put(tmp_path / "b", b"")
    assert records(reader("whole", {}), *reader("whole", {}).splits(FS, empty.uri, 0, 0, 0)) == [b"\0\0\0\0"]
    with pytest.raises(Corrupt, match="more than the 1 bytes"):
        records(reader("whole", {"max_record": "1"}), whole)


def test_what_a_program_prints_as_text_and_gzip() -> None:
    assert written("text", {}, b"a\nb", 1) == b"a\nb"
    assert gzip.decompress(written("gzip", {"level": "1"}, b"a\nb", 1)) == b"a\nb"
    assert gzip.decompress(written("gzip", {}, b"")) == b""
