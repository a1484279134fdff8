"""Tests that nothing runs of what another user could have put into the state of this user's jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_jobs import eventually
from test_local import Local, local  # noqa: F401 - a fixture
from test_supervisor import state_of

from howdah.errors import HowdahError
from howdah.spec import State
from howdah.supervisor.launcher import ensure_running, is_running

NOBODY = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


def put_job(local: Local, job_id: str, line: str) -> Path:  # noqa: F811
    """A waiting job as another user would write it, which runs a shell's line in place of a master."""
    state = state_of(local)
    directory = Path(state.jobs_directory, job_id)
    directory.mkdir(parents=True)
    record = {"command": ["/bin/sh", "-c", line], "environment": {}, "attempts": 1, "umask": 18, "limits": {}}
    (directory / "submitted.json").write_text(json.dumps({"submitted": 1, "host": os.uname().nodename}))
    (directory / "start.json").write_text(json.dumps({**record, "cores": [0], "nice": 0}))
    state.make()
    Path(state.queue_directory, f"000000000001-{job_id}").write_text('{"wants": [1, 1, 0], "machine": [1000, 4, []]}')
    return directory


@pytest.fixture
def stolen(local: Local, tmp_path: Path) -> Iterator[Path]:  # noqa: F811
    """A file that a job of another user would write."""
    yield tmp_path / "stolen"
    for path in (local.home, *local.home.rglob("*")):
        os.chown(path, os.geteuid(), -1, follow_symlinks=False)
    for path in Path(state_of(local).queue_directory).iterdir():
        path.unlink()


@needs_root
@pytest.mark.parametrize("whose", ["", "jobs", "local"])
def test_the_state_of_another_user_is_not_used(local: Local, stolen: Path, whose: str) -> None:  # noqa: F811
    put_job(local, "local-20260101-000000-0001", f"id > {stolen}")
    theirs = local.home / whose
    os.chown(theirs, NOBODY, -1)
    problem = f"{theirs} belongs to user {NOBODY}, and you are user 0: choose a HOWDAH_HOME of your own"
    for act in (local.engine.describe, lambda: local.submit("true")):
        with pytest.raises(HowdahError) as error:
            act()
        assert str(error.value) == problem
    assert not is_running(state_of(local))
    assert not stolen.exists()


@needs_root
@pytest.mark.parametrize("whose", [".", "start.json"])
def test_a_job_of_another_user_is_not_run(local: Local, stolen: Path, whose: str) -> None:  # noqa: F811
    directory = put_job(local, "local-20260101-000000-0001", f"id > {stolen}")
    os.chown(directory / whose, NOBODY, -1)
    assert local.run("true").state is State.SUCCEEDED
    eventually(lambda: not is_running(state_of(local)), "the supervisor's end")
    assert not stolen.exists()
    if whose == ".":
        assert sorted(path.name for path in directory.iterdir()) == ["start.json", "submitted.json"]
        assert "is left alone" in Path(state_of(local).directory, "supervisor.log").read_text()
    else:
        assert f"start.json belongs to user {NOBODY}" in local.report(directory.name).diagnostics


def test_an_entry_of_the_queue_that_stays_starts_nothing(local: Local) -> None:  # noqa: F811
    job_id = local.run("true").id
    queue = Path(state_of(local).queue_directory)
    (queue / "000000000001-local-x").mkdir()  # can't be removed as a file
    (queue / f"000000000002-{job_id}").write_text('{"wants": [1, 1, 0], "machine": [1000, 4, []]}')
    ensure_running(state_of(local))
    assert local.run("true").state is State.SUCCEEDED
    eventually(lambda: not is_running(state_of(local)), "the supervisor's end")
    log = (local.home / "jobs" / job_id / "events.jsonl").read_text()
    assert log.count('"kind":"JobFinished"') == 1
    assert local.report(job_id).state is State.SUCCEEDED
