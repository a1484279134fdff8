"""Tests the scalars of ended jobs' event files as columns of the list of jobs."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from event_files import curve, framed, scalar, start
from history_jobs import BEGAN, begun, ended, job_id, write

from howdah.eventfiles.client import Answer, EventFileService
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


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no slow machine run into the limit."""
    monkeypatch.setattr(event_scalars, "ANSWER_S", 600.0)


def read_all(index: Index, tmp_path: Path, user: str = "", conf_dir: str = "", tries: int = 100) -> int:
    """Scan, and read the event files of all jobs; return how many tries it took, `tries` at most."""
    Scanner(index, [uris.of_local(tmp_path / "home")]).scan()

    async def read() -> int:
        scalars, count = EventScalars(index, lambda _: conf_dir, lambda _: user or str(os.getuid())), 0
        while count < tries and await scalars.read_next():
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


def test_a_job_among_too_many_files_is_left_out(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job_with_event_files(tmp_path, 1, {".": curve("loss", range(3))})
    for number in range(5):
        (tmp_path / "board1" / f"a{number}").touch()
    monkeypatch.setattr(event_scalars, "MAX_FILES", 4)
    assert read_all(index, tmp_path) == 1
    assert metrics(index)[job_id(1)].keys() == {"told"}
    assert read_all(index, tmp_path) == 0


def mount(conf: Path, target: str) -> str:
    """Write a configuration with `viewfs://c/board`; return its directory."""
    conf.mkdir(exist_ok=True)
    link = f"<name>fs.viewfs.mounttable.c.link./board</name><value>{target}</value>"
    (conf / "core-site.xml").write_text(f"<configuration><property>{link}</property></configuration>")
    return str(conf)


def job_on_another_cluster(tmp_path: Path) -> None:
    """Write a job whose event files are on `viewfs://c/board`."""
    job_with_event_files(tmp_path, 1, {".": [scalar("loss", 1, 2.0)]})
    write(tmp_path / "home", job_id(2), begun(2, board=Board(path="viewfs://c/board")))
    write(tmp_path / "home", job_id(2), ended(2))


@pytest.mark.parametrize("user", ["", "somebody else"])
def test_event_files_are_read_by_the_clusters_configuration(index: Index, tmp_path: Path, user: str) -> None:
    job_on_another_cluster(tmp_path)
    conf_dir = mount(tmp_path / "conf", uris.of_local(tmp_path / "board1"))
    assert read_all(index, tmp_path, user, conf_dir) == 2
    assert metrics(index)[job_id(2)]["loss"]["last"] == 2.0


def test_a_job_stays_while_a_file_system_does_not_answer(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_on_another_cluster(tmp_path)
    conf_dir = mount(tmp_path / "conf", "hdfs://unknown/board")
    assert read_all(index, tmp_path, "", conf_dir) == 2  # each once, and the second must wait
    assert metrics(index)[job_id(1)]["loss"]["last"] == 2.0
    monkeypatch.setattr(event_scalars, "RETRY_S", 0.0)
    assert read_all(index, tmp_path, "", conf_dir, tries=5) == 5
    mount(tmp_path / "conf", uris.of_local(tmp_path / "board1"))
    assert read_all(index, tmp_path, "", conf_dir) == 1
    assert metrics(index)[job_id(2)]["loss"]["last"] == 2.0


def test_a_job_is_given_up_after_some_tries(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "home", job_id(2), begun(2, board=Board(path="viewfs://c/board")))
    write(tmp_path / "home", job_id(2), ended(2))
    conf_dir = mount(tmp_path / "conf", "hdfs://unknown/board")
    monkeypatch.setattr(event_scalars, "RETRY_S", 0.0)
    assert read_all(index, tmp_path, "", conf_dir) == event_scalars.MAX_TRIES
    assert read_all(index, tmp_path, "", conf_dir) == 0


@pytest.mark.parametrize("status", event_scalars.OUTAGES)
def test_a_job_stays_while_the_service_does_not_answer(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    job_with_event_files(tmp_path, 1, {".": [scalar("loss", 1, 2.0)]})

    async def refuse(*_: object, **__: object) -> Answer:
        return Answer(status, "application/json", b'{"error": "not now"}')

    with monkeypatch.context() as patched:
        patched.setattr(EventFileService, "get", refuse)
        assert read_all(index, tmp_path) == 1
    assert read_all(index, tmp_path) == 1
    assert metrics(index)[job_id(1)]["loss"]["last"] == 2.0


def test_what_takes_too_long_ends_the_service_and_is_tried_again(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_with_event_files(tmp_path, 1, {".": [scalar("loss", 1, 2.0)]})
    closed: list[EventFileService] = []

    async def never(*_: object, **__: object) -> Answer:
        raise asyncio.TimeoutError

    async def close(service: EventFileService) -> None:
        closed.append(service)

    with monkeypatch.context() as patched:
        patched.setattr(EventFileService, "get", never)
        patched.setattr(EventFileService, "close", close)
        Scanner(index, [uris.of_local(tmp_path / "home")]).scan()
        scalars = EventScalars(index, lambda _: "", lambda _: str(os.getuid()))
        assert asyncio.run(scalars.read_next())
        assert asyncio.run(scalars.read_next()) is False
    assert len(closed) == 1
    assert read_all(index, tmp_path) == 1
    assert metrics(index)[job_id(1)]["loss"]["last"] == 2.0


def test_the_end_waits_for_the_thread_that_writes(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    begun_, goes_on, done = threading.Event(), threading.Event(), []

    def look(_: EventScalars) -> None:
        begun_.set()
        goes_on.wait(60)
        done.append(True)

    monkeypatch.setattr(EventScalars, "_next", look)

    async def end() -> None:
        running = asyncio.ensure_future(EventScalars(index, lambda _: "", lambda _: "").run())
        await asyncio.to_thread(begun_.wait, 60)
        running.cancel()
        await asyncio.sleep(0.05)
        assert not running.done()
        goes_on.set()
        await asyncio.gather(running, return_exceptions=True)
        assert done == [True]

    asyncio.run(end())


def test_the_pause_is_that_of_the_time_used_even_if_nothing_was_stored(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    moments = iter([0.0, 20.0])

    async def fail(_: EventScalars) -> bool:
        raise sqlite3.OperationalError("disk is full")

    async def note(seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    monkeypatch.setattr(EventScalars, "read_next", fail)
    monkeypatch.setattr(event_scalars, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr(event_scalars, "asyncio", SimpleNamespace(sleep=note))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(EventScalars(index, lambda _: "", lambda _: "").run())
    assert pauses == [200.0]
