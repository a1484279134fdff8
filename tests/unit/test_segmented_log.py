"""Tests finding and reading logs that are in segments, whatever is merged meanwhile."""

from __future__ import annotations

import io
import random

import pytest
from object_store import Store

from howdah.errors import StagingError
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import append_to_log, find_log, segment_uri

URI = "s3://bucket/jobs/job-1/events.jsonl"


class Objects(Store):
    """Opens objects, too, as every file system does."""

    def open_read(self, uri: str) -> io.BytesIO:
        return io.BytesIO(self.read_bytes(uri))

    def append(self, uri: str, data: bytes) -> None:
        raise AssertionError("an object store writes the whole object again")


def store(**segments: bytes) -> Objects:
    """Each name has the numbers of its segments: `s3`, `s0_3`."""
    made = Objects()
    for name, content in segments.items():
        made.objects[segment_uri(URI, *map(int, name[1:].split("_")))] = content
    return made


def content(files: Store) -> bytes:
    log = find_log(files, URI)  # type: ignore[arg-type]
    assert log is not None
    return log.read()


def test_names() -> None:
    assert segment_uri(URI, 0) == URI
    assert segment_uri(URI, 1) == "s3://bucket/jobs/job-1/events-000001.jsonl"
    assert segment_uri(URI, 32, 63) == "s3://bucket/jobs/job-1/events-000032-000063.jsonl"
    assert segment_uri(URI, 1234567) == "s3://bucket/jobs/job-1/events-1234567.jsonl"


def test_segments_are_read_in_the_order_of_their_numbers() -> None:
    assert content(store(s0=b"a\n", s10=b"k\n", **{f"s{n}": b"%d\n" % n for n in range(1, 10)})).startswith(
        b"a\n1\n2\n"
    )
    assert content(store(s0=b"as earlier versions wrote it\n")) == b"as earlier versions wrote it\n"
    assert find_log(store(), URI) is None  # type: ignore[arg-type]


def test_other_files_of_the_directory_are_not_its_segments() -> None:
    files = store(s0=b"a\n")
    for name in ("events-1.jsonl", "events-000001.json", "events-000001-x.jsonl", "metrics-000001.jsonl", "events"):
        files.objects[f"s3://bucket/jobs/job-1/{name}"] = b"no"
    assert content(files) == b"a\n"


def test_a_merged_file_is_read_instead_of_its_segments() -> None:
    assert content(store(s0=b"a\n", s1=b"b\n", s0_1=b"a\nb\n", s2=b"c\n")) == b"a\nb\nc\n"
    assert content(store(s0=b"a\n", s0_1=b"a\nb\n", s0_3=b"replaced\n", s2_3=b"c\nd\n", s4=b"e\n")) == b"replaced\ne\n"
    assert content(store(s0=b"a\n", s0_0=b"")) == b""


def test_a_missing_segment_is_named() -> None:
    with pytest.raises(StagingError, match=r"events-000001\.jsonl: is missing"):
        content(store(s0=b"a\n", s2=b"c\n"))


def test_reading_at_any_offset() -> None:
    chance = random.Random(1)
    parts = [chance.randbytes(chance.randrange(1, 40)) for _ in range(50)]
    whole = b"".join(parts)
    log = find_log(store(**{f"s{n}": part for n, part in enumerate(parts)}), URI)  # type: ignore[arg-type]
    assert log is not None
    assert (log.size, log.last) == (len(whole), 49)
    assert b"".join(log.iter_chunks()) == whole
    with log.open() as file:
        for _ in range(300):
            at, size = chance.randrange(len(whole) + 5), chance.randrange(200)
            file.seek(at)
            assert file.read(size) == whole[at : at + size]
        file.seek(-7, io.SEEK_END)
        assert file.read() == whole[-7:]


def test_segments_are_merged_while_they_are_read() -> None:
    files = store(**{f"s{n}": b"%03d\n" % n for n in range(8)})
    log = find_log(files, URI)  # type: ignore[arg-type]
    assert log is not None
    files.objects[segment_uri(URI, 0, 7)] = log.read()
    for number in range(1, 8):
        del files.objects[segment_uri(URI, number)]
    assert log.read() == b"".join(b"%03d\n" % n for n in range(8))


def test_a_segment_that_is_gone_is_an_error() -> None:
    files = store(s0=b"a\n", s1=b"b\n")
    log = find_log(files, URI)  # type: ignore[arg-type]
    assert log is not None
    files.objects.clear()
    with pytest.raises(StagingError, match="no such object"):
        log.read()


def test_appending_after_the_end_of_a_job() -> None:
    files = store(s0=b"a\n", s0_3=b"a\nb\nc\nd\n")
    append_to_log(files, URI, b"the end\n")  # type: ignore[arg-type]
    append_to_log(files, URI, b"of it\n")  # type: ignore[arg-type]
    assert content(files) == b"a\nb\nc\nd\nthe end\nof it\n"
    assert segment_uri(URI, 5) in files.objects
    uri = "memory://log-file/events.jsonl"
    append_to_log(filesystem(uri), uri, b"one file\n")
    found = find_log(filesystem(uri), uri)
    assert found is not None
    assert found.read() == b"one file\n"
