"""Tests that every complete record of event files is read once, in whatever pieces the files grow."""

from __future__ import annotations

import math
import os
import random
import shutil
import struct
import sys
import time
from pathlib import Path

import event_files as files
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.eventfiles import decoder, events, parallel
from howdah.eventfiles.event_batch import Batch
from howdah.eventfiles.event_directory import EventDirectory
from howdah.eventfiles.proto import event_pb2
from howdah.eventfiles.record_framing import MAX_RECORD, DamagedRecord, _slow_crc32c, scan, verified_frames
from howdah.eventfiles.run_store import Run, ScalarSeries, points_per_scalar
from howdah.inputs.formats import framing
from howdah.spec import uris
from howdah.storage import native_codecs
from howdah.storage.factory import filesystem

Read = dict[bytes, list[tuple[int, float, float]]]


def points(data: bytes, window: int = decoder.WINDOW) -> tuple[Read, list[DamagedRecord]]:
    """The scalars of some bytes, taken in as the file grows."""
    run, flaws, kinds, at, end = Run(), [], {}, 0, 0
    while end < len(data):
        end = min(len(data), end + window)
        batch, used, _ = decoder.decode(data[at:end], "file:///x", at, kinds)
        at += used
        run.add(batch, 1 << 20)
        flaws += batch.damaged
    return {tag: list(zip(one.steps, one.walls, one.values, strict=True)) for tag, one in run.scalars.items()}, flaws


def expected(contents: list[bytes]) -> Read:
    """By protobuf alone, one event after the other."""
    found: Read = {}
    for content in contents:
        event = event_pb2.Event.FromString(content)
        for value in event.summary.value:
            number = value.simple_value
            if value.HasField("tensor"):
                raw = value.tensor.tensor_content
                number = struct.unpack("<d" if len(raw) == 8 else "<f", raw)[0]
            found.setdefault(value.tag, []).append((event.step, event.wall_time, number))
    return found


CONTENTS = [
    files.start(),
    *(
        write(tag, step, step / 7)
        for step in [*range(300), 16383, 16384, 2_097_151, 2_097_152, 1 << 40]
        for tag, write in (
            ("loss", files.scalar),
            ("acc1", files.scalar),
            ("much/longer", files.scalar),
            ("t", files.tensor_scalar),
        )
    ),
    *(files.tensor_scalar("double", step, step / 7, double=True) for step in range(50)),
]


def test_columns_are_what_protobuf_reads() -> None:
    read, flaws = points(files.framed(CONTENTS))
    assert not flaws
    assert read == expected(CONTENTS)


@settings(max_examples=40)
@given(st.randoms(use_true_random=False), st.integers(1, 4000))
def test_a_file_may_grow_in_any_pieces(chance: random.Random, window: int) -> None:
    some = sorted(chance.sample(range(len(CONTENTS)), 60))
    contents = [CONTENTS[number] for number in some]
    read, flaws = points(files.framed(contents), window)
    assert not flaws
    assert read == expected(contents)


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=300), st.integers(0, 40), st.integers(1, 5000))
def test_garbage_is_passed_over_and_told(garbage: bytes, place: int, window: int) -> None:
    contents = files.curve("loss", range(40))
    data = files.framed(contents[:place]) + garbage + files.framed(contents[place:])
    read, flaws = points(data, window)
    known = expected(contents)[b"loss"]
    assert [point for point in read.get(b"loss", []) if point not in known] == []
    if place < 40:
        assert read[b"loss"] == known
        assert flaws


@settings(max_examples=60)
@given(st.integers(16, 3000), st.integers(1, 255))
def test_one_wrong_byte_costs_one_record(place: int, change: int) -> None:
    contents = files.curve("loss", range(60))
    data = bytearray(files.framed(contents))
    place %= len(data) - 100
    data[place] ^= change
    read, flaws = points(bytes(data))
    assert flaws
    assert len(read[b"loss"]) >= len(contents) - 2
    assert set(read[b"loss"]) <= set(expected(contents)[b"loss"])


def test_a_record_that_was_cut_hides_none_of_those_after_it() -> None:
    long = files.image("x", 1, bytes(5000))
    data = files.framed([long])[:100] + files.framed(files.curve("loss", range(200)))
    read, flaws = points(data)
    assert [step for step, _, _ in read[b"loss"]] == list(range(200))
    assert [(flaw.offset, flaw.length) for flaw in flaws if "no record" in flaw.text] == [(12, 88)]


@pytest.mark.parametrize("length", [MAX_RECORD + 1, 1 << 40, (1 << 64) - 1])
def test_a_gigantic_length_is_garbage(length: int) -> None:
    head = struct.pack("<Q", length)
    hostile = head + struct.pack("<I", framing.mask_crc(native_codecs.crc32c()(head)))
    read, flaws = points(files.framed(files.curve("a", [1])) + hostile + files.framed(files.curve("a", [2])))
    assert [step for step, _, _ in read[b"a"]] == [1, 2]
    assert len(flaws) == 1


def test_zeros_are_passed_over_many_at_a_time() -> None:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    data = bytes(20 << 20) + files.framed(files.curve("a", range(3)))
    sys.setprofile(count)
    try:
        read, flaws = points(data, 32 << 20)
    finally:
        sys.setprofile(None)
    assert len(read[b"a"]) == 3
    assert flaws[0].length == 20 << 20
    assert calls < 20_000  # of Python's functions, where 20 million bytes are looked at


def test_sums_by_hand() -> None:
    crc32c, chance = native_codecs.crc32c(), random.Random(1)
    for size in (0, 1, 8, 100):
        data = chance.randbytes(size)
        assert _slow_crc32c(data) == crc32c(data)
    data = files.framed(files.curve("loss", range(1000)))
    for length, offsets in scan(data).groups.items():
        frames = [data[at : at + length] for at in offsets]
        assert verified_frames(frames, offsets) == (frames, offsets, [])


def test_a_step_that_is_none_and_fields_of_others_do_no_harm() -> None:
    contents = files.curve("loss", range(20))
    odd = contents[5] + b"\x52\x02hi"  # an unknown field
    several = files.event(3)
    several.summary.value.add(tag=b"loss", simple_value=7)
    several.summary.value.add(tag=b"\xff<script>", simple_value=8)
    negative = files.scalar("loss", -5, 1.0)
    all_of_it = [*contents, odd, several.SerializeToString(), negative, b"\x08garbage"]
    read, flaws = points(files.framed(all_of_it))
    assert read == expected(all_of_it[:-1])
    assert [flaw.text for flaw in flaws] == ["a record is not an event"]


# Runs


def scalars(root: EventDirectory, run: str = ".", tag: bytes = b"loss") -> list[int]:
    return list(root.runs[run].scalars[tag].steps)


def looked(root: EventDirectory) -> EventDirectory:
    """As after the pause between two looks."""
    root._next = 0.0
    root.refresh(30)
    return root


def test_a_growing_file_is_read_on(tmp_path: Path) -> None:
    path = files.put(tmp_path / "train", files.curve("loss", range(10)))
    files.put(tmp_path, files.curve("loss", range(3), tensors=True))
    root = looked(EventDirectory(uris.of_local(tmp_path)))
    assert sorted(root.runs) == [".", "train"]
    assert scalars(root, "train") == list(range(10))
    assert root.complete
    more = files.framed(files.curve("loss", range(10, 20)))
    files.append(path, more[:-7])
    assert scalars(looked(root), "train") == list(range(19))
    before = root.version
    assert looked(root).version == before
    files.append(path, more[-7:])
    assert scalars(looked(root), "train") == list(range(20))
    assert not root.errors()


def test_another_file_of_that_name_is_read_anew(tmp_path: Path) -> None:
    path = files.put(tmp_path, files.curve("loss", range(50)))
    root = looked(EventDirectory(uris.of_local(tmp_path)))
    later = files.event(0, files.WALL + 99)
    fresh = files.framed([later.SerializeToString(), *files.curve("loss", range(3))])
    path.write_bytes(fresh)
    os.utime(path, (time.time() + 5, time.time() + 5))
    assert scalars(looked(root)) == [0, 1, 2]


def test_a_file_that_was_cut_keeps_what_was_read(tmp_path: Path) -> None:
    path = files.put(tmp_path, files.curve("loss", range(50)))
    root = looked(EventDirectory(uris.of_local(tmp_path)))
    path.write_bytes(path.read_bytes()[:400])
    assert scalars(looked(root)) == list(range(50))
    assert "it has 400 bytes" in root.errors()[0]["text"]


def test_a_directory_that_was_deleted(tmp_path: Path) -> None:
    files.put(tmp_path / "logs", files.curve("loss", range(5)))
    root = looked(EventDirectory(uris.of_local(tmp_path / "logs")))
    shutil.rmtree(tmp_path / "logs")
    assert scalars(looked(root)) == list(range(5))
    assert root.errors()[0]["text"] == "it is not there any more"
    never = looked(EventDirectory(uris.of_local(tmp_path / "never")))
    assert not never.runs
    assert never.complete
    assert not never.errors()


def test_many_files_that_are_no_events(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"part-{number}").touch()
    (tmp_path / "tfevents-notes.txt").write_text("nothing of the kind, but longer than a head")
    files.put(tmp_path, files.curve("loss", range(5)))
    root = looked(EventDirectory(uris.of_local(tmp_path)))
    assert scalars(root) == list(range(5))
    assert [error["file"] for error in root.errors()] == ["tfevents-notes.txt"]


def test_a_program_that_starts_again_takes_back_what_it_said(tmp_path: Path) -> None:
    files.put(tmp_path, files.curve("loss", range(100)), "events.out.tfevents.1.a")
    again = [files.scalar("loss", step, 9.0, files.WALL + 1000 + step) for step in range(50, 60)]
    files.put(tmp_path, again, "events.out.tfevents.2.a")
    assert scalars(looked(EventDirectory(uris.of_local(tmp_path)))) == list(range(60))


def test_two_that_write_at_the_same_time_take_nothing_back(tmp_path: Path) -> None:
    for name in "ab":
        files.put(tmp_path, files.curve("loss", range(100)), f"events.out.tfevents.1.{name}")
    assert sorted(scalars(looked(EventDirectory(uris.of_local(tmp_path))))) == sorted([*range(100), *range(100)])


def test_a_start_in_the_file_takes_back_all_tags(tmp_path: Path) -> None:
    restart = files.event(30, files.WALL)
    restart.session_log.status = event_pb2.SessionLog.START
    contents = [*files.curve("loss", range(100)), *files.curve("other", range(100)), restart.SerializeToString()]
    files.put(tmp_path, [*contents, *files.curve("loss", range(30, 40))])
    root = looked(EventDirectory(uris.of_local(tmp_path)))
    assert scalars(root) == list(range(40))
    assert scalars(root, tag=b"other") == list(range(30))


def test_a_long_curve_stays_bounded_and_keeps_its_extremes() -> None:
    series = ScalarSeries()
    values = [math.sin(number) for number in range(100_000)]
    values[777], values[888], values[999] = 50.0, -50.0, math.nan
    data = files.framed([files.scalar("a", number, value) for number, value in enumerate(values)])
    batch, _, _ = decoder.decode(data, "file:///x", 0, {})
    series.extend(batch.scalars[b"a"], "x")
    for _ in range(5):
        series.thin()
    assert len(series.values) < 10_000
    assert (series.steps[0], series.steps[-1]) == (0, 99_999)
    kept = [value for value in series.values if not math.isnan(value)]
    assert (min(kept), max(kept)) == (-50.0, 50.0)
    assert series.seen == 100_000
    assert points_per_scalar(1) == 1 << 20
    assert points_per_scalar(10**6) == 2_000


def test_several_processes_read_what_one_does(tmp_path: Path) -> None:
    paths = [
        files.put(tmp_path / f"run{number}", files.curve("loss", range(200 * (number + 1)))) for number in range(4)
    ]
    parts = [parallel.FilePart(path.parent.name, uris.of_local(path), 0, path.stat().st_size) for path in paths]
    parts.append(parallel.FilePart("run3", uris.of_local(tmp_path / "gone"), 0, 1))
    told: list[tuple[str, int | str]] = []

    def taken(part: parallel.FilePart, found: Batch | str) -> None:
        told.append((part.run, found if isinstance(found, str) else len(found.scalars[b"loss"].steps)))

    parallel.read(parts, {}, taken, worth=1)
    read = sorted((run, count) for run, count in told if isinstance(count, int))
    assert read == [(f"run{number}", 200 * (number + 1)) for number in range(4)]
    assert [text for _, text in told if isinstance(text, str)] == [f"{tmp_path}/gone: no such file or directory"]


def test_histograms_and_images_and_the_rest(tmp_path: Path) -> None:
    event = files.event(7)
    old = event.summary.value.add(tag=b"w").histo
    old.min, old.max = -1.0, 2.0
    old.bucket_limit.extend([-5.0, 0.0, 1.0, 1e308])
    old.bucket.extend([0, 3, 0, 4])
    new = event.summary.value.add(tag=b"v")
    new.metadata.plugin_data.plugin_name, new.tensor.dtype = b"histograms", 2
    new.tensor.tensor_content = struct.pack("<6d", 0, 1, 5, 1, 2, 6)
    text = event.summary.value.add(tag=b"t")
    text.metadata.plugin_data.plugin_name, text.tensor.dtype = b"text", 7
    text.tensor.string_val.append(b"<script>")
    path = files.put(tmp_path, [event.SerializeToString(), files.image("i", 1, files.PIXEL)])
    (batch,) = decoder.batches(filesystem(uris.of_local(path)), uris.of_local(path), 0, {})
    (_, first), (_, second) = batch.histograms
    assert list(first.buckets) == [-1.0, 0.0, 3, 0.0, 1.0, 0, 1.0, 2.0, 4]
    assert list(second.buckets) == [0, 1, 5, 1, 2, 6]
    assert batch.texts[0][1].text == "<script>"
    assert batch.images[0][1].step == 1


@pytest.mark.parametrize(
    ("cells", "kept"),
    [(["é" * 40_000], "é" * 32_768), (["a", "é" * 40_000], "a\n" + "é" * 32_767), (["é" * 9], "é" * 9)],
)
def test_a_text_is_cut_at_bytes_and_between_characters(cells: list[str], kept: str) -> None:
    event = files.event(7)
    text = event.summary.value.add(tag=b"t")
    text.metadata.plugin_data.plugin_name, text.tensor.dtype = b"text", 7
    text.tensor.string_val.extend(cell.encode() for cell in cells)
    batch = Batch("file:///x", 0)
    assert events.read(event.SerializeToString(), 0, 0, batch, {})
    assert batch.texts[0][1].text == kept


def test_audio_of_each_framework_and_curves_of_precision(tmp_path: Path) -> None:
    pairs = files.event(2)
    one = pairs.summary.value.add(tag=b"spoken")
    one.metadata.plugin_data.plugin_name, one.tensor.dtype = b"audio", 7
    for size in (2, 2):
        one.tensor.tensor_shape.dim.add(size=size)
    one.tensor.string_val.extend([files.WAV, b"first", files.WAV + b"\0", b"second"])
    counts = [[4, 2, 0], [4, 1, 0], [0, 3, 4], [0, 2, 4]]  # of positives and negatives, true and false
    curve = files.precision_recall("pr", 5, [*counts, [0.5, 2 / 3, 1], [1, 0.5, 0]])
    broken = files.precision_recall("pr", 6, [[1, 2], [3, 4]])
    padded = files.precision_recall("pr", 7, [[1, 1]] * 6)
    shortened = event_pb2.Event.FromString(padded)
    del shortened.summary.value[0].tensor.float_val[1:]  # the last number stands for all that follow
    many = files.precision_recall("pr", 8, [[1] * 5000] * 6)
    others = [curve, broken, shortened.SerializeToString(), many]
    records = [pairs.SerializeToString(), files.audio("old", 1, files.WAV), *others]
    path = files.put(tmp_path, records)
    (batch,) = decoder.batches(filesystem(uris.of_local(path)), uris.of_local(path), 0, {})
    assert [(tag, clips.step, clips.count) for tag, clips in batch.audio] == [(b"spoken", 2, 2), (b"old", 1, 1)]
    assert [events.audio_clip(records[0], b"spoken", number) for number in (0, 1, 2)] == [
        *(files.WAV, files.WAV + b"\0", b"")
    ]
    assert events.audio_clip(records[1], b"old", 0) == files.WAV
    (_, found), (_, padded), (_, many) = batch.pr_curves
    assert list(found.points) == pytest.approx([1, 0.5, 0, 0.5, 2 / 3, 0.5])  # nothing reaches the last threshold
    assert list(padded.points) == [1, 1, 0, 1, 1, 1]
    assert (len(many.points) // 3, list(many.points[:3]), list(many.points[-3:])) == (200, [1, 1, 0], [1, 1, 1])
