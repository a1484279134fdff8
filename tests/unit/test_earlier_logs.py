"""Tests that event logs of version 0.1, written before its modules were renamed, are read as today's.

`simulated-*.jsonl` are of jobs on the simulated cluster, with masters replaced and lines torn. `local.jsonl` is of a
job that failed on a real machine and had reported a metric.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.history.job_summary import JobSummary
from howdah.master.recovery import replay
from howdah.master.state import GangState
from howdah.spec import State, TaskId
from howdah.spec.event_lines import parse_line, read_lines, read_log, to_line
from howdah.spec.events import KINDS, JobFinished, JobStarted, Used
from howdah.spec.fold import fold_recorded
from howdah.spec.usage import Usage

LOGS = sorted((Path(__file__).parent / "earlier_logs").glob("*.jsonl"))


def lines_of(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_each_event_is_known_and_the_outcome_is_the_recorded_one(log: Path) -> None:
    records = [record for line in lines_of(log) if (record := parse_line(line))]
    assert {record["kind"] for record in records} <= set(KINDS)
    events = [event for event in read_log(lines_of(log)) if event is not None]
    finished = [event for event in events if isinstance(event, JobFinished)][-1]
    view = fold_recorded(events)
    assert view.outcome == finished.outcome
    assert view.state == finished.outcome.state.value


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_the_table_of_all_jobs_has_its_row(log: Path) -> None:
    summary = JobSummary()
    summary.feed([f"{line}\n".encode() for line in lines_of(log)])
    assert summary.ended
    assert summary.tasks > 0


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_master_of_today_takes_the_job_over_at_any_moment(log: Path) -> None:
    events = [event for event in read_log(lines_of(log)) if event is not None]
    assert isinstance(events[0], JobStarted)
    assert events[0].job is not None
    for upto in range(1, len(events), 7):
        state = GangState.for_job(events[0].id, events[0].job)
        replay(state, events[:upto], events[upto - 1].time)
        assert state.outcome is None or state.outcome.state in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


def test_the_logs_hold_most_kinds_of_events() -> None:
    kinds = {record["kind"] for log in LOGS for line in lines_of(log) if (record := parse_line(line))}
    assert len(kinds) >= 25, sorted(set(KINDS) - kinds)


def test_a_sample_stands_flat_in_its_line() -> None:
    sample = Used(1.5, TaskId("worker", 1), Usage(memory_mib=8.5, progress=0.5), data_bytes=3)
    flat = '"memory_mib":8.5,"progress":0.5,"data_bytes":3}'
    assert to_line(sample) == f'{{"kind":"Used","time":1.5,"task":{{"role":"worker","index":1}},{flat}\n'
    assert list(read_lines([to_line(sample)])) == [sample]
    assert list(read_log([to_line(sample).replace("8.5", '"much"')])) == [None]
