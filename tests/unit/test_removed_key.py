"""Tests that a job which ends while its client looks, and so removes its key, is no error."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from test_job_end import NO_MASTER, Running

from howdah.cli.follow import follow
from howdah.cli.interrupts import Interrupts
from howdah.cli.jobs import status
from howdah.client.master_client import connect
from howdah.client.page_links import page_link, page_url, tensorboard_url
from howdah.engines.local.engine import LocalEngine
from howdah.errors import StagingError
from howdah.functions import function_job
from howdah.spec import JobReport, State
from howdah.spec.events import BoardChanged
from howdah.spec.view import JobView

ENGINE = LocalEngine({})


def report_of_running(directory: Path) -> JobReport:
    return JobReport("local-1", "", State.RUNNING, "local", master="http://127.0.0.1:1", directory=directory.as_uri())


def test_the_key_is_gone(tmp_path: Path) -> None:
    report = report_of_running(tmp_path)
    assert connect(ENGINE, report) is None
    assert page_url(ENGINE, report) == ""
    assert tensorboard_url(ENGINE, report, JobView(tensorboard=BoardChanged(1.0, "open", "node7", 80))) == ""
    with pytest.raises(StagingError, match="local-1: its key is gone"):
        page_link(ENGINE, report)


def test_the_key_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "key").mkdir()
    report = report_of_running(tmp_path)
    for look in (connect, page_url):
        with pytest.raises(StagingError, match="key"):
            look(ENGINE, report)


def test_a_job_whose_key_cannot_be_read_is_followed_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").mkdir()
    engine = Running(str(tmp_path), NO_MASTER)
    monkeypatch.setattr("howdah.cli.jobs.choose_job", lambda *_: (engine, "job_1"))
    shown = CliRunner().invoke(status, ["job_1"])
    assert (shown.exit_code, shown.stdout.startswith("job_1  j  RUNNING"), "key" in shown.stderr) == (0, True, True)
    engine.step_s, engine.ends_at = 1.0, engine.now + 5.0
    with Interrupts() as interrupts, pytest.raises(SystemExit) as ended:
        follow(engine, "job_1", "", "detach", False, interrupts)
    assert ended.value.code == 2
    engine = Running(str(tmp_path), NO_MASTER)
    engine.step_s, engine.ends_at = 1.0, engine.now + 5.0
    with Interrupts() as interrupts:
        assert function_job._follow(engine, "job_1", interrupts)[1].state.ended


def test_the_key_is_there(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("00" * 32)
    report = report_of_running(tmp_path)
    link = connect(ENGINE, report)
    assert link is not None
    link.close()
    assert page_url(ENGINE, report).startswith("http://127.0.0.1:1/#token=")
