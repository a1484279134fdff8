"""Tests finding record formats by name, their options, and the messages for missing libraries."""

from __future__ import annotations

import ctypes.util
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from record_files import Bytes, put, records

from howdah.errors import SpecError
from howdah.inputs.formats import READERS, WRITERS, check, codecs, framing, from_hadoop_class, reader, suffix
from howdah.inputs.formats import writer as writer_of
from howdah.inputs.formats.base import Corrupt
from howdah.storage import native_codecs
from howdah.storage.libzstd import Libzstd


@pytest.mark.parametrize("name", READERS)
def test_every_reader_needs_no_option(name: str) -> None:
    assert check(name, {}) == []


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_needs_no_option(name: str) -> None:
    assert check(name, {}, writing=True) == []


def test_all_mistakes_are_told_at_once() -> None:
    assert check("csv", {"headr": "drop", "quoted_newlines": "yes", "max_record": "much", "lines": "0"}) == [
        "options.max_record: is 'much', must be a size, like 64MiB, 1GiB, or a number of bytes",
        "options.lines: is '0', must be a whole number, at least 1",
        "options.quoted_newlines: is 'yes', must be one of true, false",
        "options.headr: is not an option of csv, which takes codec, header, lines, max_record, quote, quoted_newlines"
        " (did you mean 'header'?)",
    ]
    assert check("gzip", {"level": "10"}, writing=True) == [
        "options.level: is '10', must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9"
    ]
    assert check("parquet", {"schema": "id: int, name"}, writing=True)[0].startswith("options.schema: has 'name'")


def test_unknown_names_of_formats_are_refused() -> None:
    assert check("txt", {}) == [f"format: is 'txt', known are {', '.join(READERS)}, or your own as module:function"]
    assert check("nowhere.to:be", {}) == ["format: is 'nowhere.to:be', but No module named 'nowhere'"]
    assert check("howdah.errors:no", {}) == ["format: is 'howdah.errors:no', but module howdah.errors has no no"]
    assert "known are text, gzip" in check("csv", {}, writing=True)[0]


OWN = """
from howdah.inputs.formats import RecordReader

class Words(RecordReader):
    def __init__(self, options):
        self.end = options.get("end", " ").encode()

    def records(self, fs, split):
        for word in fs.read_bytes(split.uri).split():
            yield word + self.end

def lines(options, sink):
    from howdah.inputs.formats import writer
    return writer("text", options, sink)
"""


@pytest.fixture
def own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stranger's module, and a package of theirs with entry points."""
    (tmp_path / "stranger.py").write_text(OWN)
    about = tmp_path / "stranger-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[howdah.readers]\nwords = stranger:Words\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("stranger", None)


@pytest.mark.usefixtures("own_package")
def test_a_strangers_formats(tmp_path: Path) -> None:
    whole = put(tmp_path / "a", b"one two")
    assert records(reader("stranger:Words", {}), whole) == [b"one ", b"two "]
    assert records(reader("words", {"end": "!"}), whole) == [b"one!", b"two!"]
    sink = Bytes()
    writer_of("stranger:lines", {}, sink).write(b"x")
    assert sink.data == b"x"
    assert (suffix("stranger:lines"), suffix("gzip")) == ("", ".gz")


def test_hadoops_classes_have_formats() -> None:
    assert from_hadoop_class("org.apache.hadoop.mapred.TextInputFormat") == ("text", {})
    assert from_hadoop_class("org.apache.hadoop.mapred.lib.NLineInputFormat") == ("text", {"lines": "1"})
    assert from_hadoop_class("SequenceFileAsTextInputFormat") == ("sequencefile", {})
    assert from_hadoop_class("net.qihoo.xlearning.common.TextMultiOutputFormat") == ("text", {})
    assert from_hadoop_class("stranger:Words") == ("stranger:Words", {})
    with pytest.raises(ValueError, match="a Java class that has no counterpart here"):
        from_hadoop_class("com.example.OurInputFormat")
    for name, options in (
        from_hadoop_class(name) for name in ("SequenceFileAsBinaryInputFormat", "WholeFileInputFormat")
    ):
        assert check(name, options) == []
    assert check(*from_hadoop_class("SequenceFileAsBinaryOutputFormat"), writing=True) == []


@pytest.mark.parametrize("name", framing.NAMES)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_frames_cut_anywhere(name: str, step: int) -> None:
    contents = [b"a", b"", b"\0\xff" * 300, b"b" * 90]
    data = framing.joined_frames(name, contents, binary=True)
    assert data == b"".join(framing.frames(name, contents, binary=True))
    back = framing.RecordSplitter(name, 1000, binary=name == "lines")
    found = [record for at in range(0, len(data), step) for record in back.records(data[at : at + step])]
    assert found + back.rest() == contents


def test_frames_that_are_none() -> None:
    with pytest.raises(Corrupt, match="a record of 1000 bytes or more at byte 5, allowed are 10"):
        framing.RecordSplitter("length", 10).records(struct.pack(">I", 1) + b"a" + struct.pack(">I", 1000))
    with pytest.raises(Corrupt, match="allowed are 10"):
        framing.RecordSplitter("lines", 10).records(b"x" * 11)
    cut = framing.RecordSplitter("length", 10)
    assert cut.records(b"\0\0\0\4ab") == []
    with pytest.raises(Corrupt, match="ends within a record: 6 bytes after byte 0"):
        cut.rest()
    with pytest.raises(Corrupt, match="no tfrecord frame at byte 0: the sum of the length is wrong"):
        framing.RecordSplitter("tfrecord", 10).records(b"\1" + b"\0" * 20)
    with pytest.raises(Corrupt, match="is not base64"):
        framing.RecordSplitter("lines", 10, binary=True).records(b"a\n")


def test_base64_with_an_empty_line() -> None:
    assert framing.RecordSplitter("lines", 10, binary=True).records(b"\nYQ==\n") == [b"", b"a"]


def library(name: str) -> ctypes.CDLL:
    found = ctypes.util.find_library(name)
    if found is None:
        pytest.skip(f"no lib{name} here")
    return ctypes.CDLL(found)


@pytest.mark.parametrize("name", ["lz4", "snappy"])
def test_the_machines_own_libraries_do_the_same(name: str) -> None:
    raw = {"lz4": native_codecs._lz4_of, "snappy": native_codecs._snappy_of}[name](library(name))
    package = {"lz4": native_codecs.lz4, "snappy": native_codecs.snappy}[name]()
    data = b"abc" * 1000
    assert package.decompress(raw.compress(data), 4000) == raw.decompress(package.compress(data), 4000) == data
    for one in (raw, package):
        with pytest.raises(ValueError, match=r"."):
            one.decompress(b"\xff" * 20, 4000)


def test_the_machines_own_libzstd_does_the_same() -> None:
    own = Libzstd(library("zstd"))
    data = b"abcdefgh" * 400_000
    packed = own.compress(data)
    assert (
        b"".join(codecs._members(iter([packed[:9], packed[9:], packed]), own.ZstdDecompressor, own.ZstdError))
        == 2 * data
    )
    with pytest.raises(codecs.CorruptData, match="cut"):
        list(codecs._members(iter([packed[:-2]]), own.ZstdDecompressor, own.ZstdError))
    with pytest.raises(codecs.CorruptData, match="Unknown frame"):
        list(codecs._members(iter([b"garbage" * 9]), own.ZstdDecompressor, own.ZstdError))


def test_the_c_library_within_the_wheel_sums_the_same() -> None:
    # The sum of "123456789" that every catalogue of CRCs has for CRC-32C.
    assert native_codecs.crc32c()(b"123456789") == 0xE3069283
    bundled = native_codecs._bundled_crc32c()
    if bundled is not None:
        assert bundled.crc32c_value(b"123456789", 9) & 0xFFFFFFFF == 0xE3069283


def test_a_missing_library_is_told_in_one_line() -> None:
    line = str(native_codecs.LibraryMissing.library("format avro", "fastavro"))
    assert line.startswith("format avro needs the package fastavro, which ")
    assert "add it to the environment of the job" in line


def test_bombs_are_refused() -> None:
    for codec in ("gzip", "deflate", "zstd"):
        with pytest.raises(codecs.CorruptData, match=r"holds more than 1000 bytes \(max_record\)"):
            codecs.decompress(codec, codecs.compress(codec, bytes(10**6)), 1000)


def test_a_wrong_option_is_a_spec_error() -> None:
    with pytest.raises(SpecError, match=r"options\.what: is not an option of text"):
        reader("text", {"what": "1"})
