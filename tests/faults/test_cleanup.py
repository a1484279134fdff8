"""Tests that files which a killed master could not remove are removed once its job has ended."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from test_local import Local, local  # noqa: F401 - a fixture

from howdah.client.follow import Follower
from howdah.engines import cleanup
from howdah.spec import JobReport, JobSpec, Master, Outcome, Output, Role, StagedJob, State, TaskId
from howdah.spec.codec import encode
from howdah.spec.event_lines import read_lines, to_line
from howdah.spec.events import JobFinished, Noted
from howdah.storage.factory import filesystem


def test_outputs_key_and_credentials_of_a_killed_master_are_removed(local: Local, tmp_path: Path) -> None:  # noqa: F811
    outputs = (Output((tmp_path / "models" / "out").as_uri()),)
    killed = local.submit("sleep 600", outputs=outputs, master=Master(attempts=1))
    local.until_running(killed)
    assert list((tmp_path / "models").iterdir())
    os.kill(local.running_master(killed), signal.SIGKILL)
    local.end(killed)

    assert list((tmp_path / "models").iterdir()) == []
    assert local.left(killed) == []
    *_, last = Follower(local.engine, killed).updates()
    assert last.view.state is State.FAILED
    assert last.view.outcome is not None
    assert "the master was killed" in last.view.outcome.diagnostics
    assert last.view.tasks[TaskId("worker", 0)].state is State.STOPPED


@pytest.mark.parametrize("written", [(), (JobFinished(2.0, Outcome(State.SUCCEEDED)),)])
def test_a_job_has_one_end(written: tuple[JobFinished, ...]) -> None:
    """An engine may tell that a job has ended before its master has removed the key."""
    home = f"memory://homes/{os.getpid()}-{len(written)}"
    files, directory = filesystem(home), f"{home}/jobs/job-1"
    text = json.dumps(encode(StagedJob(JobSpec({"worker": Role("x")}), home))).encode()
    files.write_bytes(f"{directory}/job.json", text)
    files.write_bytes(f"{directory}/key", b"key")
    lines = [to_line(event) for event in (Noted(1.0, "begun"), *written)]
    files.write_bytes(f"{directory}/events.jsonl", "".join(lines).encode() + (b"" if written else b'{"kind":"No'))
    told = {"diagnostics": "it was killed", "directory": directory, "finished": 3.0}
    report = JobReport("job-1", "", State.FAILED, "yarn", **told)
    assert cleanup.list_unfinished_jobs(files, home) == ["job-1"]
    cleanup.finish_ended_job(files, report, "")
    assert cleanup.list_unfinished_jobs(files, home) == []
    events = list(read_lines(files.read_bytes(f"{directory}/events.jsonl").decode().splitlines()))
    ends = [event for event in events if isinstance(event, JobFinished)]
    assert ends == ([*written] or [JobFinished(3.0, Outcome(State.FAILED, "it was killed"))])
    assert events[0] == Noted(1.0, "begun")
