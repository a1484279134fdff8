"""Tests the order in which a task gets its records, and what happens when a file cannot be read."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.inputs.formats import RecordReader, join_blocks
from howdah.inputs.streaming.record_stream import BLOCK_BYTES, RecordStream, shuffle_in_window, skip_first
from howdah.inputs.streaming.split_assignment import splits_of
from howdah.spec import Feed, Split, uris
from howdah.staging.path_listing import listing
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, FileSystem

LINES = [b"%d\n" % number for number in range(100)]


@pytest.fixture
def splits(tmp_path: Path) -> tuple[Split, ...]:
    """Five files of twenty lines."""
    found = []
    for number in range(5):
        path = tmp_path / f"{number}.txt"
        path.write_bytes(b"".join(LINES[20 * number : 20 * number + 20]))
        found.append(Split(uris.of_local(path), 0, path.stat().st_size, (f"node{number % 2}",)))
    return tuple(found)


def lines(*feeds: Feed, task: str = "worker:0") -> list[bytes]:
    return b"".join(block for block, _ in RecordStream(feeds, task)).splitlines(keepends=True)


def test_in_order_once(splits: tuple[Split, ...]) -> None:
    assert lines(Feed(0, splits)) == LINES


def test_epochs_follow_each_other_and_inputs_within_them(splits: tuple[Split, ...]) -> None:
    found = lines(Feed(0, splits[:1], epochs=3), Feed(1, splits[1:2], epochs=2))
    assert found == [*LINES[:40], *LINES[:40], *LINES[:20]]


def test_shuffled_splits_have_another_order_each_epoch_and_in_each_task(splits: tuple[Split, ...]) -> None:
    feed = Feed(0, splits, epochs=2, shuffle=True, seed=1)
    found = lines(feed)
    first, second = found[:100], found[100:]
    assert found == lines(feed)
    assert first != second
    assert Counter(first) == Counter(second) == Counter(LINES)
    assert found != lines(feed, task="worker:1")
    assert found != lines(Feed(0, splits, epochs=2, shuffle=True, seed=2))


def test_a_window_mixes_records_of_neighbouring_splits(splits: tuple[Split, ...]) -> None:
    feed = Feed(0, splits, window=30)
    found = lines(feed)
    assert found == lines(feed)
    assert found != LINES
    assert Counter(found) == Counter(LINES)
    assert all(abs(found.index(line) - LINES.index(line)) < 100 for line in LINES)
    assert {int(line) for line in found[:20]} <= set(range(50))


def test_without_end_over_nothing_ends() -> None:
    assert lines(Feed(0, (), epochs=0)) == []


def test_without_end_goes_on(splits: tuple[Split, ...]) -> None:
    passes = iter(RecordStream([Feed(0, splits[:1], epochs=0)], "worker:0"))
    assert [next(passes)[0] for _ in range(3)] == [b"".join(LINES[:20])] * 3


def test_where_the_stream_stands(splits: tuple[Split, ...]) -> None:
    whole = sum(split.length for split in splits)
    passes = RecordStream([Feed(0, splits, epochs=2)], "worker:0", names=("node1",))
    # Files of this machine are always near.
    places = [place for _, place in passes]
    assert passes.bytes == 2 * whole
    assert places[-1].bytes == places[-1].local == 2 * whole
    assert places[4].at == f"{splits[4].uri}, bytes 0 to 60 in epoch 1, 50% of all"
    assert RecordStream([Feed(0, splits, epochs=0)], "t").bytes == 0


def test_a_header_comes_once(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,2\n3,4\n")
    feed = Feed(0, (Split(uris.of_local(path), 0, 12),), "csv", {"header": "once"}, epochs=2)
    assert lines(feed) == [b"x,y\n", b"1,2\n", b"3,4\n", b"1,2\n", b"3,4\n"]


def test_a_file_that_has_gone_or_changed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "0.txt"
    path.write_bytes(b"".join(LINES[:20]))
    (file,) = listing(filesystem("file:///"), uris.of_local(path)).files
    feed = Feed(0, tuple(splits_of(replace(file, cuts=(24,)))))
    assert lines(feed) == LINES[:20]
    os.utime(path, ns=(0, 10**9))  # the same size, as when a job that runs again has replaced it
    with pytest.raises(HowdahError, match=r"0\.txt: has changed since the job was submitted: it was written again"):
        lines(feed)
    path.write_bytes(b"".join(LINES[:30]))
    with pytest.raises(HowdahError, match=r"0\.txt: has changed .*: it had 50 bytes, and has 80"):
        lines(feed)
    path.unlink()
    with pytest.raises(HowdahError, match=r"0\.txt: no such file: it was there when the job was submitted"):
        lines(feed)


def test_a_file_that_is_replaced_after_an_epoch_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "0.txt"
    path.write_bytes(b"".join(LINES[:20]))
    (file,) = listing(filesystem("file:///"), uris.of_local(path)).files
    passes = iter(RecordStream((Feed(0, tuple(splits_of(file)), epochs=2),), "worker:0"))
    assert next(passes)[0] == b"".join(LINES[:20])
    os.utime(path, ns=(0, 10**9))
    with pytest.raises(HowdahError, match="has changed since the job was submitted"):
        list(passes)


class Breaking(RecordReader):
    """Breaks off in the middle, `times` times."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.left = int(options["times"])

    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        for number, line in enumerate(fs.read_bytes(split.uri).splitlines(keepends=True)):
            if number == 10 and self.left:
                self.left -= 1
                raise ConnectionBroken("the connection was lost")
            yield line

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        every = b"".join(self.records(fs, Split(split.uri, 0, split.length))) if not self.left else b""
        if not every:
            yield fs.read_bytes(split.uri)[:7]
            self.left -= 1
            raise ConnectionBroken("the connection was lost")
        yield from (every[start : start + 5] for start in range(0, len(every), 5))


@pytest.mark.parametrize("window", [0, 1])
def test_a_broken_connection_is_taken_up_where_it_broke(splits: tuple[Split, ...], window: int) -> None:
    feed = Feed(0, splits[:1], f"{__name__}:Breaking", {"times": "2"}, window=window)
    assert lines(feed) == LINES[:20]
    with pytest.raises(HowdahError, match=r"0\.txt, bytes 0 to 50: the connection was lost"):
        lines(Feed(0, splits[:1], f"{__name__}:Breaking", {"times": "3"}, window=window))


def test_pieces_of_what_was_given_before_are_left_out() -> None:
    assert list(skip_first([b"abc", b"", b"def", b"gh"], 4, len)) == [b"ef", b"gh"]
    assert list(skip_first([b"abc", b"def"], 3, len)) == [b"def"]


def test_small_records_are_joined() -> None:
    assert list(join_blocks([b"a", b"b"], BLOCK_BYTES)) == [b"ab"]
    assert list(join_blocks([], BLOCK_BYTES)) == []
    assert [len(block) for block in join_blocks([b"x" * 100_000] * 5, BLOCK_BYTES)] == [300_000, 200_000]


def test_mixing_loses_nothing_and_holds_no_more_than_the_window() -> None:
    given = iter(range(1000))
    taken: list[int] = []
    for record in shuffle_in_window((b"%d" % number for number in given), 10, random.Random(1)):
        taken.append(int(record))
        assert max(taken) <= len(taken) + 10
    assert sorted(taken) == list(range(1000))
