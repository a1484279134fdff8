"""Tests what `howdah wait` says when its time is over."""

from __future__ import annotations

import threading

import pytest
from click.testing import CliRunner
from test_interrupts import LIMIT_S, Stuck

from howdah.cli import cli
from howdah.cli.interrupts import Interrupts
from howdah.cli.wait import wait_for_jobs
from howdah.spec import JobReport


class LateNews(Stuck):
    """An engine whose job has ended; who waits for the end hears nothing of it."""

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        if threading.current_thread().name == "wait":
            self.over.wait(LIMIT_S)
        return super().describe(job_id)


def test_no_job_that_has_ended_goes_on_at_the_end_of_a_wait(capsys: pytest.CaptureFixture[str]) -> None:
    engine = LateNews(answers=True, cancels=True)
    engine.cancelled.set()
    with Interrupts() as interrupts, pytest.raises(SystemExit) as left:
        wait_for_jobs([(engine, "job_1")], False, interrupts, 0.0)
    engine.over.set()
    assert left.value.code == 2
    assert capsys.readouterr().err == ""


def test_no_time_is_negative() -> None:
    refused = CliRunner().invoke(cli, ["wait", "--timeout", "-5s", "@last"])
    assert "is '-5s', must be at least 0" in str(refused.exception)
