"""Tests that a line of an event log that says an impossible time counts as garbled, and harms no list of jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from history_jobs import begun, ended, job_id, write

from howdah.api import job_annotations
from howdah.cli import cli
from howdah.client.api_client import ApiClient
from howdah.client.remote_jobs import RemoteJobs
from howdah.history.job_summary import JobSummary
from howdah.spec import State
from howdah.spec.event_lines import parse_line, read_log, read_record, to_line
from howdah.spec.events import Noted

TIMES = ["1e300", "-1e300", "-1e11", "NaN", "Infinity", "1e999", "9" * 400]


@pytest.mark.parametrize("time", TIMES)
def test_an_event_at_no_time_is_garbled(time: str) -> None:
    line = to_line(Noted(5.0, "x")).replace("5.0", time)
    assert list(read_log([line])) == [None]
    assert read_record(parse_line(line) or {}) is None


@pytest.mark.parametrize("time", TIMES)
def test_the_table_of_all_jobs_has_no_such_time(time: str) -> None:
    summary = JobSummary()
    lines = [to_line(event) for event in (*begun(1), *ended(1))]
    summary.feed([line.replace(f'"time":{json.loads(line)["time"]}', f'"time":{time}').encode() for line in lines])
    assert 0.0 <= summary.started < 1e11
    assert 0.0 <= summary.latest < 1e11


def test_an_annotation_that_was_made_at_no_time() -> None:
    assert job_annotations.parse({"note": "x", "changed": 1e300}) == job_annotations.Annotation("x")


def test_other_jobs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path))
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    (tmp_path / "state").mkdir(mode=0o700)
    for number, name in enumerate(("local-20260101-000000-aaaa", "local-20260101-000000-bbbb")):
        log = write(tmp_path / "state", name, (*begun(number), *ended(number)))
        if number == 0:
            log.write_text(re.sub(r'"time":[0-9.]+', '"time":1e300', log.read_text()))
    listed = CliRunner().invoke(cli, ["list"])
    assert (listed.exit_code, "local-20260101-000000-bbbb" in listed.stdout) == (0, True)


class Server(ApiClient):
    """A history server with a job whose log is damaged."""

    def records(self, job_id: str, since: int = 0, *_: object) -> tuple[int, list[Mapping[str, Any]]]:
        whole = [json.loads(to_line(event)) for event in (*begun(1), *ended(1))]
        return (since, []) if since else (9, [{"kind": "Ended"}, {"kind": "Noted", "time": "late"}, *whole])

    def get(self, path: str, **query: Any) -> Any:
        return {"tasks": []}


def test_damaged_events_of_a_server_are_passed_over() -> None:
    assert RemoteJobs(Server("http://127.0.0.1:1/#token=x")).job(job_id(1)).state is State.SUCCEEDED
