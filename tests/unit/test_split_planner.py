"""Tests where an input is cut into splits at submission, and the messages for one that cannot be."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from howdah.inputs.streaming.split_assignment import all_splits
from howdah.inputs.streaming.split_planner import cut_input, plan_splits
from howdah.spec import DataFile, Input, JobSpec, Output, Role, Split, StagedInput, uris
from howdah.storage.hdfs.block_locations import Blocks


def staged(*files: DataFile) -> StagedInput:
    return StagedInput("input", files)


def splits(entry: Input, tasks: int, *files: DataFile, blocks: dict[str, Blocks] | None = None) -> list[Split]:
    return all_splits(cut_input(entry, staged(*files), tasks, blocks or {}))


def stream(**fields: object) -> Input:
    return Input("d", strategy="stream", **fields)  # type: ignore[arg-type]


def test_one_file_is_cut_for_all_tasks() -> None:
    found = splits(stream(), 3, DataFile("file:///a", "a", 900))
    assert [(split.start, split.length) for split in found] == [(0, 300), (300, 300), (600, 300)]


def test_splits_follow_block_borders_and_know_who_holds_them() -> None:
    lies = {"file:///a": Blocks(100, (("x", "y"), ("y", "z"), ("z",)))}
    found = splits(stream(), 2, DataFile("file:///a", "a", 250), blocks=lies)
    assert [(split.start, split.length, split.hosts) for split in found] == [
        (0, 100, ("x", "y")),
        (100, 100, ("y", "z")),
        (200, 50, ("z",)),
    ]


def test_blocks_too_large_for_so_many_tasks_are_cut() -> None:
    lies = {"file:///a": Blocks(1000, (("x",),))}
    found = splits(stream(), 4, DataFile("file:///a", "a", 1000), blocks=lies)
    assert [split.length for split in found] == [250] * 4
    assert {split.hosts for split in found} == {("x",)}


def test_files_that_every_task_gets_are_cut_at_blocks_only() -> None:
    lies = {"file:///a": Blocks(100)}
    assert len(splits(stream(share="all"), 7, DataFile("file:///a", "a", 250), blocks=lies)) == 3


def test_shuffled_splits_are_smaller_but_not_tiny() -> None:
    file = DataFile("file:///a", "a", 64 << 20)
    assert len(splits(stream(shuffle=True), 2, file)) == 16
    assert len(splits(stream(shuffle=True), 64, file)) == 64


def test_compressed_files_stay_whole_and_empty_ones_have_no_split() -> None:
    found = splits(stream(), 5, DataFile("file:///a.gz", "a.gz", 100), DataFile("file:///b", "b", 0))
    assert [(split.uri, split.start, split.length) for split in found] == [("file:///a.gz", 0, 100)]


def test_a_users_own_reader_that_only_the_nodes_have_gets_whole_files() -> None:
    assert len(splits(stream(format="nowhere:Reader"), 5, DataFile("file:///a", "a", 100))) == 1


def wrong(entry: Input, tmp_path: Path, tasks: int = 2) -> list[str]:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n"))
    job = JobSpec(roles={"worker": Role("true", replicas=tasks)}, inputs=(entry,))
    file = DataFile(uris.of_local(path), "a.gz", path.stat().st_size)
    return [str(mistake) for mistake in plan_splits(0, job, entry, staged(file))[1]]


def test_options_that_a_format_does_not_take(tmp_path: Path) -> None:
    (mistake,) = wrong(stream(options={"delimter": "x"}), tmp_path, tasks=1)
    assert mistake.startswith("inputs.0.options.delimter: is not an option of text, which takes")
    assert "did you mean 'delimiter'?" in mistake


def test_more_tasks_than_splits(tmp_path: Path) -> None:
    (mistake,) = wrong(stream(), tmp_path)
    assert mistake.startswith("inputs.0.share: has 1 split for 2 tasks: worker:1 would have none")
    assert wrong(stream(allow_empty=True), tmp_path) == []
    assert wrong(stream(share="all"), tmp_path) == []


@pytest.mark.parametrize("format", ["text", "gzip", "tfrecord"])
def test_outputs_have_options_too(format: str) -> None:
    from howdah.inputs.streaming.split_planner import format_mistakes

    output = Output("o", strategy="stream", format=format, options={"nosuch": "1"})
    (mistake,) = format_mistakes("outputs.0", output)
    assert str(mistake).startswith("outputs.0.options.nosuch: is not an option of")
