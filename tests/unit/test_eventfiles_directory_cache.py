"""Tests the memory limit of all event files together: beyond it steps become coarser, and answers say so."""

from __future__ import annotations

import os
from pathlib import Path

import event_files as files
import pytest

from howdah.eventfiles import oom_priority, parallel
from howdah.eventfiles.directory_cache import IDLE_S, EventDirectories
from howdah.eventfiles.queries import MAX_POINTS, JobEventFiles
from howdah.spec import uris

MIB = 1 << 20


def histogram(tag: str, step: int, buckets: int) -> bytes:
    made = files.event(step)
    one = made.summary.value.add(tag=tag.encode()).histo
    one.bucket_limit.extend(range(buckets))
    one.bucket.extend([1.0] * buckets)
    return made.SerializeToString()


def board_of(store: EventDirectories, *directories: Path) -> JobEventFiles:
    """All there is in these directories."""
    places = [(directory.name, uris.of_local(directory)) for directory in directories]
    while not (board := store.read_job(places)).runs()["complete"]:
        pass
    return board


def held(store: EventDirectories) -> int:
    return sum(root.size for root in store._directories.values())


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> EventDirectories:
    monkeypatch.setenv("HOWDAH_CURVES_MIB", "1")
    return EventDirectories()


def test_beyond_the_bound_every_second_step_goes_and_that_is_said(tmp_path: Path, store: EventDirectories) -> None:
    curves = [one for tag in ("a", "b") for one in files.curve(tag, range(40_000))]
    histograms = [histogram("h", step, 500) for step in range(300)]
    files.put(tmp_path, [*curves, *histograms])
    board = board_of(store, tmp_path)
    assert 0.2 * MIB < held(store) <= MIB
    (said,) = board.runs()["errors"]
    assert "no memory for all of it: of each tag about one step in " in said["text"]
    one = board.scalars({"tag": ["a"], "points": ["100000"]})["series"][0]
    assert one["count"] == 40_000
    assert (one["points"][0][0], one["points"][-1][0]) == (0, 39_999)
    steps = board.histograms({"steps": ["1000"]})["steps"]
    assert (steps[0]["step"], steps[-1]["step"]) == (0, 299)
    assert 4 <= len(steps) < 200


def test_what_is_held_is_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CURVES_MIB", "100")
    store = EventDirectories()
    contents = [*files.curve("a", range(5_000)), *(histogram("h", step, 100) for step in range(500))]
    files.put(tmp_path, contents)
    board = board_of(store, tmp_path)
    assert board.runs()["errors"] == []
    ((_, run),) = board.runs_by_name().values()
    (steps,) = run.histograms.values()
    buckets = sum(8 * len(one.buckets) + 400 for one in steps)
    assert held(store) == 5_000 * 24 + buckets + 2 * 800
    for _ in range(20):
        run.halve()
    assert run.size == sum(8 * len(one.buckets) + 400 for one in steps) + 24 * run.points + 2 * 800
    assert len(steps) <= 4
    assert run.points <= 64


def test_too_many_tags_are_left_out(tmp_path: Path, store: EventDirectories) -> None:
    for run in range(4):
        files.put(tmp_path / f"run{run}", [one for tag in range(1_000) for one in files.curve(f"t{tag}", range(80))])
    errors = " ".join(error["text"] for error in board_of(store, tmp_path).runs()["errors"])
    assert "and no further tags" in errors
    assert "values of more tags than can be kept are left out" in errors
    assert held(store) < 3 * MIB  # a MiB, and what little is left of the tags that are known


def test_directories_without_requests_are_dropped_first(tmp_path: Path, store: EventDirectories) -> None:
    for name in ("old", "new"):
        files.put(tmp_path / name, [one for tag in range(8) for one in files.curve(f"{tag}", range(4_000))])
    board_of(store, tmp_path / "old")
    store._directories["", uris.of_local(tmp_path / "old")].used_at -= 2 * IDLE_S
    board = board_of(store, tmp_path / "new")
    assert board.runs()["errors"] == []
    assert list(store._directories) == [("", uris.of_local(tmp_path / "new"))]
    assert board_of(store, tmp_path / "old").scalars({"tag": ["3"]})["series"][0]["count"] == 4_000


def test_an_answer_has_so_many_points_however_many_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.put(tmp_path, [one for tag in range(300) for one in files.curve(f"{tag}", range(1_500))])
    series = board_of(EventDirectories(), tmp_path).scalars({"points": ["100000"]})["series"]
    assert len(series) == 300
    assert 0.2 * MAX_POINTS < sum(len(one["points"]) for one in series) <= MAX_POINTS


@pytest.mark.parametrize(
    ("container", "own", "budget", "limit", "processes"),
    [("", "", 384, 0, 8), ("512", "", 128, 256, 1), ("20", "", 16, 10, 1), ("4096", "", 1024, 2048, 5),
     ("65536", "", 16384, 32768, 8), ("512", "300", 300, 364, 1), ("", "300", 300, 0, 8), ("x", "-1", 384, 0, 8)],
)  # fmt: skip
def test_shares_of_a_container(
    monkeypatch: pytest.MonkeyPatch, container: str, own: str, budget: int, limit: int, processes: int
) -> None:
    monkeypatch.setenv(oom_priority.CONTAINER_VARIABLE, container)
    monkeypatch.setenv(oom_priority.BUDGET_VARIABLE, own)
    assert (oom_priority.memory_budget() // MIB, oom_priority.memory_limit() // MIB, oom_priority.max_processes()) == (
        budget,
        limit,
        processes,
    )
    parts = [parallel.FilePart(f"run{number}", "file:///x", 0, 1 << 30) for number in range(20)]
    assert len(parallel._shares(parts, 1)) == min(processes, len(os.sched_getaffinity(0)))
