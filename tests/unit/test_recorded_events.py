"""Tests that commands read event logs of any size and damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from history_jobs import BEGAN, begun, ended, job_id, launched, write

from howdah.cli import cli
from howdah.cli.logs import LogSelection, _with_container_number
from howdah.client import recorded_events
from howdah.client.annotated_jobs import read_annotation
from howdah.client.follow import fetch_update
from howdah.logs.lines import LineFilter
from howdah.logs.stream_index import STREAMS
from howdah.spec import JobReport, State, TaskId, uris
from howdah.spec.events import Event, JobFinished, JobStarted, Noted, Used
from howdah.spec.usage import Usage


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


def samples(count: int) -> list[Event]:
    return [Used(BEGAN + 2000 + number, TaskId("worker", 0), Usage(memory_mib=number)) for number in range(count)]


def test_of_a_large_log_only_samples_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_events, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(recorded_events, "LAST_BYTES", 1 << 16)
    again = list(launched(1, 0, BEGAN + 2000, 2, 2))
    facts = [*begun(1), *again, *ended(1)]
    log = write(tmp_path, job_id(1), [*begun(1), *samples(20_000), *again, *samples(20_000), *ended(1)])
    read = list(recorded_events.recorded_log(report_of(log)))
    assert [event for event in read if not isinstance(event, Used)] == facts
    used = [event.usage.memory_mib for event in read if isinstance(event, Used)]
    assert (used[0], used[-1], len(used) < 20_000) == (0, 19_999, True)
    engine: Any = type("Engine", (), {"name": "yarn", "describe": lambda *_: [report_of(log)]})()
    view = fetch_update(engine, job_id(1)).view
    chosen = LogSelection(("worker:0",), STREAMS, 2, LineFilter(), merge=False, follow=False, whole=True)
    assert _with_container_number(chosen, view).attempt == 2


def test_the_end_of_a_job_is_looked_for_at_the_end_of_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_events, "LAST_BYTES", 1 << 10)
    log = write(tmp_path, job_id(1), [*begun(1), *samples(100)])
    assert not recorded_events.has_end(report_of(log))
    log = write(tmp_path, job_id(1), ended(1))
    assert recorded_events.has_end(report_of(log))
    log.write_text(log.read_text().rstrip("\n"))
    assert recorded_events.has_end(report_of(log))


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
