"""Tests that commands read event logs of any size and damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from history_jobs import begun, ended, job_id, write

from howdah.cli import cli
from howdah.client import recorded_events
from howdah.client.annotated_jobs import read_annotation
from howdah.spec import JobReport, State, uris
from howdah.spec.events import JobFinished, JobStarted, Noted


def report_of(log: Path) -> JobReport:
    return JobReport(log.parent.name, "", State.SUCCEEDED, "yarn", directory=uris.of_local(log.parent))


def test_the_middle_of_a_large_log_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_events, "MAX_BYTES", 1 << 20)
    notes = [Noted(1_700_000_000.0 + number, "x" * 100_000) for number in range(50)]
    report = report_of(write(tmp_path, job_id(1), [*begun(1), *notes, *ended(1)]))
    events = list(recorded_events.recorded_log(report))
    assert None not in events
    assert (type(events[0]), type(events[-1])) == (JobStarted, JobFinished)
    said = [event.text for event in events if isinstance(event, Noted)]
    assert len(said) < 35
    assert sum("too large to be shown whole" in text for text in said) == 1


def test_a_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    log = write(tmp_path, job_id(1), begun(1))
    log.write_text(log.read_text().rstrip("\n"))
    whole = list(recorded_events.recorded_log(report_of(log)))
    log.write_text(log.read_text()[:-9])
    assert [*whole[:-1], None] == list(recorded_events.recorded_log(report_of(log)))


def test_the_tags_of_a_job_are_read_from_the_beginning_of_its_log(tmp_path: Path) -> None:
    log = write(tmp_path, job_id(1), begun(1, tags=("best",)), "garbage\n")
    assert read_annotation(report_of(log)).tags == ("best",)
    assert read_annotation(report_of(write(tmp_path, job_id(2), []))).tags == ()


def test_a_container_of_a_job_with_an_event_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    (tmp_path / "state").mkdir(mode=0o700)
    log = write(tmp_path / "state", job_id(1), (*begun(1), *ended(1)))
    lines = log.read_text().splitlines(keepends=True)
    damaged = [line.replace('"worker"', '"ghost"') if '"Joined"' in line else line for line in lines]
    assert damaged != lines
    log.write_text("".join(damaged))
    traced = CliRunner().invoke(cli, ["trace", "container_1700000000000_0001_01_000002"])
    assert (traced.exit_code, traced.stdout.startswith(f"{job_id(1)} worker:0")) == (0, True)
