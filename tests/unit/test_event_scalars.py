"""Tests the scalars of ended jobs' event files as columns of the list of jobs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from event_files import curve, framed, scalar, start
from history_jobs import BEGAN, begun, ended, job_id, write

from howdah.history import event_scalars, queries
from howdah.history.directory_scan import Scanner
from howdah.history.event_scalars import EventScalars
from howdah.history.index import Index
from howdah.spec import TaskId, uris
from howdah.spec.events import Measured
from howdah.spec.job import Board


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(tmp_path / "index") as made:
        assert made.claim()
        yield made


def job_with_event_files(tmp_path: Path, number: int, runs: dict[str, list[bytes]]) -> None:
    """Write a job that has ended, with its event files."""
    board = tmp_path / f"board{number}"
    for run, records in runs.items():
        (board / run).mkdir(parents=True)
        (board / run / "events.out.tfevents.1.h").write_bytes(framed([start(), *records]))
    write(tmp_path / "home", job_id(number), begun(number, board=Board(path=uris.of_local(board))))
    write(tmp_path / "home", job_id(number), [Measured(BEGAN, TaskId("worker", 0), "told", 3.0, 1)])
    write(tmp_path / "home", job_id(number), ended(number))


def read_all(index: Index, tmp_path: Path, user: str = "") -> int:
    """Scan, and read the event files of all jobs; return of how many."""
    Scanner(index, [uris.of_local(tmp_path / "home")]).scan()

    async def read() -> int:
        scalars, count = EventScalars(index, lambda _: "", lambda _: user or str(os.getuid())), 0
        while await scalars.read_next():
            count += 1
        running = asyncio.ensure_future(scalars.run())
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)  # it ends the process that has read
        return count

    return asyncio.run(read())


def metrics(index: Index) -> dict[str, dict[str, Any]]:
    with index.reading() as connection:
        return {row["id"]: row["metrics"] for row in queries.page(connection, {"columns": "all"}, 0.0)["jobs"]}


def test_scalars_of_event_files_are_columns(index: Index, tmp_path: Path) -> None:
    values = [scalar("loss", 1, 4.0), scalar("loss", 2, 0.5), scalar("loss", 3, 1.0), scalar("told", 1, 99.0)]
    job_with_event_files(tmp_path, 1, {".": values})
    runs = {"train": [scalar("loss", 1, 2.0)], "eval": [scalar("loss", 1, 3.0), scalar("bad", 1, float("nan"))]}
    job_with_event_files(tmp_path, 2, runs)
    write(tmp_path / "home", job_id(3), [*begun(3), *ended(3)])
    assert read_all(index, tmp_path) == 2
    found = metrics(index)
    assert found[job_id(1)]["loss"] == {"last": 1.0, "min": 0.5, "max": 4.0}
    assert found[job_id(1)]["told"] == {"last": 3.0, "min": 3.0, "max": 3.0}  # what the program reported itself
    assert {name: each["last"] for name, each in found[job_id(2)].items()} == {
        "told": 3.0,
        "train/loss": 2.0,
        "eval/loss": 3.0,
    }
    assert read_all(index, tmp_path) == 0  # each job once
    with index.reading() as connection:
        rows = queries.page(connection, {"sort": "metric:loss:min"}, 0.0)["jobs"]
    assert rows[0]["id"] == job_id(1)


def test_what_exceeds_a_limit_is_left_out_for_good(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_with_event_files(tmp_path, 1, {".": curve("loss", range(100))})
    monkeypatch.setattr(event_scalars, "MAX_EVENT_FILES", 1000)
    assert read_all(index, tmp_path) == 1
    assert metrics(index)[job_id(1)].keys() == {"told"}
    assert read_all(index, tmp_path) == 0


def test_the_number_of_names_has_a_limit(index: Index, tmp_path: Path) -> None:
    job_with_event_files(tmp_path, 1, {".": [scalar(f"s{number:03}", 1, 1.0) for number in range(80)]})
    assert read_all(index, tmp_path) == 1
    assert len(metrics(index)[job_id(1)]) == 50 + 1
