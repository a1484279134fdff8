"""Tests how many processes read metrics for pages at once, and what other requests are answered."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from howdah.api import metric_series
from howdah.api.handlers import metrics
from howdah.api.http_server import Request
from howdah.api.routes import ApiRequest
from howdah.api.sources import JobSource, Source
from howdah.errors import NotReady
from howdah.spec import TaskId, uris
from howdah.spec.view import JobView, MetricPoint, TaskView

SOON_S = 60.0
HEADER = metric_series.header(0, ["worker:0"])


@dataclass
class Job:
    directory: str
    conf_dir: str = ""
    view: JobView = field(default_factory=JobView)

    def samples(self) -> tuple[int, list[str]]:
        return 1, []


def readers() -> list[psutil.Process]:
    """The processes that read for this one."""
    found = []
    for child in psutil.Process().children():
        try:
            if "howdah.api.metric_series" in child.cmdline():
                found.append(child)
        except psutil.Error:
            continue
    return found


def asked(job: Job, number: int) -> asyncio.Task[tuple[int, bytes]]:
    """A question that nobody else asks."""
    wish = metric_series.SeriesQuery(("cpu",), points=100 + number)
    return asyncio.ensure_future(metrics._sampled(job, wish, ["worker:0"], 1, []))  # type: ignore[arg-type]


async def until_one_reads() -> None:
    deadline = time.monotonic() + SOON_S
    while not readers():
        assert time.monotonic() < deadline, "no process reads the metrics"
        await asyncio.sleep(0.02)


def test_different_questions_are_read_one_after_the_other_and_not_too_many_wait(tmp_path: Path) -> None:
    pipe = tmp_path / metric_series.FILE
    os.mkfifo(pipe)  # who reads it waits until somebody writes
    job = Job(uris.of_local(tmp_path))

    async def questions() -> None:
        first = [asked(job, number) for number in range(metrics.MAX_WAITING)]
        await until_one_reads()
        first.append(asked(job, metrics.MAX_WAITING))  # for the one that is being read is out of the queue
        await asyncio.sleep(0)
        with pytest.raises(NotReady):
            await asked(job, 1 + metrics.MAX_WAITING)
        again = asked(job, 0)  # waits with who asked it before, and not for a turn
        pipe.unlink()  # who comes next finds a file
        pipe.write_text(HEADER + '{"t":10,"s":10,"cpu":[3]}\n')
        (hangs,) = readers()
        hangs.kill()
        seen, maximum = set(), 0
        while not all(one.done() for one in first):
            now = readers()
            seen.update(now)
            maximum = max(maximum, len(now))
            await asyncio.wait(first, timeout=0.01)
        assert maximum == 1
        assert len(seen - {hangs}) == 1  # one has answered all the others
        with pytest.raises(NotReady):
            await first[0]
        answers = await asyncio.gather(*first[1:])
        assert all(version == 1 and b"[10.0,3" in rows for version, rows in answers)
        with pytest.raises(NotReady, match="can't be read: see"):
            await again
        assert b"[10.0,3" in (await asked(job, 0))[1]  # a failure is not kept

    asyncio.run(asyncio.wait_for(questions(), 2 * SOON_S))


def test_who_asks_for_more_while_it_is_read_gets_what_is_read_with_its_own_version(tmp_path: Path) -> None:
    (tmp_path / metric_series.FILE).write_text(HEADER + '{"t":10,"s":10,"cpu":[3]}\n')
    job, wish = Job(uris.of_local(tmp_path)), metric_series.SeriesQuery(("cpu",))

    async def ask(version: int) -> tuple[int, bytes]:
        return await metrics._sampled(job, wish, ["worker:0"], version, [])  # type: ignore[arg-type]

    async def questions() -> None:
        (one, rows), (other, same) = await asyncio.gather(ask(1), ask(2))
        assert (one, other) == (1, 1)
        assert rows is same
        assert (await ask(2))[0] == 2

    asyncio.run(asyncio.wait_for(questions(), SOON_S))


def test_answers_are_kept_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / metric_series.FILE).write_text(HEADER + '{"t":10,"s":10,"cpu":[3]}\n')
    job = Job(uris.of_local(tmp_path))
    monkeypatch.setattr(metrics, "MAX_ANSWER_BYTES", 100)

    async def questions() -> None:
        for number in range(3):
            await asked(job, number)
        assert len(metrics._answers) == 1

    asyncio.run(asyncio.wait_for(questions(), SOON_S))


class Headers(dict[str, str]):
    """Remembers which thread asks for a header."""

    thread: threading.Thread | None = None

    def get(self, *key: Any) -> Any:
        self.thread = threading.current_thread()
        return super().get(*key)


def test_the_metrics_of_programs_and_the_sampled_ones_are_one_answer_made_beside_the_loop(tmp_path: Path) -> None:
    (tmp_path / metric_series.FILE).write_text(HEADER + '{"t":10,"s":10,"cpu":[3]}\n')
    task = TaskId("worker", 0)
    view = JobView(tasks={task: TaskView(task, metrics={"loss": [MetricPoint(1.0, 7, 0.5)]})}, finished=20.0)
    job, headers = Job(uris.of_local(tmp_path), view=view), Headers()

    def series_of(**query: str) -> list[tuple[str, list[list[float]]]]:
        call = ApiRequest(Request("GET", "/", headers, b"", ""), cast(Source, None), cast(JobSource, job), {}, query)
        answer = asyncio.run(asyncio.wait_for(metrics.series(call), SOON_S))
        assert not isinstance(answer, dict)
        return [(one["name"], one["points"]) for one in json.loads(answer.body)["series"]]

    sampled, told = ("cpu", [[10.0, 3, 3, 3]]), ("loss", [[1.0, 0.5, 0.5, 0.5]])
    assert series_of(name="cpu,loss") == [sampled, told]
    assert series_of(name="loss") == [told]
    assert series_of(name="cpu") == [sampled]
    assert series_of(name="none") == []
    assert headers.thread not in (None, threading.main_thread())
