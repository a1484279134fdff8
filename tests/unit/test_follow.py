"""Following a job whose master and engine do not say the same."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from howdah.client.follow import Follower
from howdah.engines import Engine, Progress, silent
from howdah.spec import JobReport, Outcome, Plan, StagedJob, State, TaskId
from howdah.spec.events import JobFinished, to_line


class Late(Engine):
    """An engine that calls a job running whose master has gone."""

    name = "late"

    def __init__(self, directory: Path, master: str) -> None:
        self.report = JobReport("job_1", "j", State.RUNNING, self.name, directory=str(directory), master=master)

    @property
    def home(self) -> str:
        raise NotImplementedError

    def plan(self, job: StagedJob) -> Plan:
        raise NotImplementedError

    def submit(self, plan: Plan, secrets: Mapping[str, str], progress: Progress = silent) -> str:
        raise NotImplementedError

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        return [self.report]

    def cancel(self, job_id: str) -> None:
        raise NotImplementedError

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]:
        return iter(())


@pytest.fixture
def engine(tmp_path: Path) -> Late:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    (tmp_path / "key").write_text("00" * 32)
    return Late(tmp_path, f"http://127.0.0.1:{port}")


def test_the_log_of_a_master_that_has_gone_is_believed_before_the_engine(engine: Late, tmp_path: Path) -> None:
    end = to_line(JobFinished(time.time(), Outcome(State.CANCELLED, "cancelled by ann")))
    (tmp_path / "events.jsonl").write_text(end)
    (only,) = Follower(engine, "job_1").updates()
    assert only.view.outcome == Outcome(State.CANCELLED, "cancelled by ann")


def test_a_master_that_does_not_answer_has_not_ended(engine: Late, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("")
    assert next(Follower(engine, "job_1").updates()).view.outcome is None
