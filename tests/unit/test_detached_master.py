"""Tests that a master of this machine which is told to end has the time that its programs may take to stop, and that
one of another machine is left alone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from howdah.engines import detached_master
from howdah.engines.detached_master import DetachedMasterEngine, control_directory, is_locked
from howdah.errors import EngineRejected, StagingError
from howdah.spec import JobSpec, Plan, Role, StagedJob, State, TaskId, uris
from howdah.spec.codec import encode
from howdah.spec.job import Timeouts

JOB_ID = "here-1"
# It holds the lock, as a master does, and saves for longer than a master may take whose programs have stopped.
MASTER = 'trap "sleep 1; touch saved; exit" TERM; touch up; while :; do sleep 0.05; done'


class Here(DetachedMasterEngine):
    name = "here"

    @property
    def home(self) -> str:
        return self._settings["home"]

    def plan(self, job: StagedJob) -> Plan:
        raise NotImplementedError

    def master_environment(self, plan: Plan) -> Mapping[str, str]:
        raise NotImplementedError


@pytest.mark.parametrize(("stop_s", "has_saved"), [(60.0, True), (-5.0, False)])
def test_a_master_has_the_time_of_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_s: float, has_saved: bool
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(detached_master, "CANCEL_LIMIT_S", 0.0)
    (tmp_path / "home/jobs" / JOB_ID).mkdir(parents=True)
    control = control_directory("here", JOB_ID)
    control.mkdir(parents=True)
    job = JobSpec({"worker": Role("train")}, timeouts=Timeouts(stop_s=stop_s))
    (control / "job.json").write_text(json.dumps(encode(StagedJob(job, "file:///home"))))
    command = ["flock", str(control / "lock"), "bash", "-c", MASTER]
    with subprocess.Popen(command, cwd=control, start_new_session=True) as master:
        (control / "pid").write_text(str(master.pid))
        while not (control / "up").exists():
            assert master.poll() is None
        Here({"home": uris.of_local(tmp_path / "home")}).cancel(JOB_ID)
        assert not is_locked(control / "lock") or not has_saved
        if master.poll() is None:
            os.killpg(master.pid, signal.SIGKILL)
    assert (control / "saved").exists() == has_saved


def test_what_another_machine_with_the_same_home_runs_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock may not be seen here, and its master's number is here that of another process."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "state"))
    directory = tmp_path / "home/jobs" / JOB_ID
    directory.mkdir(parents=True)
    (directory / "job.json").write_text(json.dumps(encode(StagedJob(JobSpec({"worker": Role("train")}), "file:///h"))))
    control = control_directory("here", JOB_ID)
    control.mkdir(parents=True)
    here = Here({"home": uris.of_local(tmp_path / "home")})
    lock = control / "lock"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as other:
        (control / "pid").write_text(str(other.pid))
        lock.write_text("elsewhere 00000000-0000-0000-0000-000000000000")
        with lock.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(EngineRejected, match="runs on another machine: cancel the job there") as refused:
                here.cancel(JOB_ID)
            assert str(refused.value).endswith(f"or is this one by another name, empty {lock}")
            assert other.poll() is None
            other.kill()
    (report,) = here.describe(JOB_ID)
    assert not report.state.ended
    assert report.diagnostics == "its master runs on another machine, the one that submitted it"
    for written in ("", os.uname().nodename, "renamed " + Path("/proc/sys/kernel/random/boot_id").read_text()):
        lock.write_text(written)
        assert is_locked(lock) is False, "a master of this machine that has ended"
    assert here.describe(JOB_ID)[0].state is State.FAILED


def test_the_advice_for_a_master_that_is_gone_with_its_machine_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver in a container keeps the lock in the container, so that there is not even its directory here."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "the state"))
    directory = tmp_path / "home/jobs" / JOB_ID
    directory.mkdir(parents=True)
    (directory / "job.json").write_text(json.dumps(encode(StagedJob(JobSpec({"worker": Role("train")}), "file:///h"))))
    here = Here({"home": uris.of_local(tmp_path / "home")})
    with pytest.raises(EngineRejected, match="its master runs on another machine") as refused:
        here.cancel(JOB_ID)
    assert not here.describe(JOB_ID)[0].state.ended
    subprocess.run(["bash", "-c", str(refused.value).split("`")[1]], check=True)
    here.cancel(JOB_ID)
    assert here.describe(JOB_ID)[0].state is State.FAILED


def command_lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended just now
            yield path.read_bytes()


class Full(Here):
    """Has no room for the number of its master's process."""

    def master_environment(self, plan: Plan) -> Mapping[str, str]:
        (control,) = control_directory("here", "any").parent.iterdir()
        (control / "pid").mkdir()
        return {}


def test_a_submission_that_fails_last_leaves_no_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(detached_master, "_START", f"cd {tmp_path}; while sleep 1; do :; done")
    staged = StagedJob(JobSpec({"worker": Role("train")}), uris.of_local(tmp_path / "home"))
    with pytest.raises(StagingError, match="pid: Is a directory"):
        Full({"home": uris.of_local(tmp_path / "home")}).submit(Plan("here", staged, {}), {})
    deadline = time.monotonic() + 30.0
    while any(f"cd {tmp_path};".encode() in line for line in command_lines()):
        assert time.monotonic() < deadline, "its master runs"
        time.sleep(0.01)
    assert list(control_directory("here", "any").parent.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", '{"job"', '{"job": 5}', '{"job": {"roles": {}}, "home": 7}'])
def test_a_damaged_file_of_one_job_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "state"))
    whole = json.dumps(encode(StagedJob(JobSpec({"worker": Role("train")}, name="whole"), "file:///h")))
    for name, content in {"here-1": text, "here-2": whole}.items():
        directory = tmp_path / "home/jobs" / name
        directory.mkdir(parents=True)
        (directory / "job.json").write_text(content)
        (directory / "master.json").write_text(text)
        control_directory("here", name).mkdir(parents=True)
    reports = {report.id: report for report in Here({"home": uris.of_local(tmp_path / "home")}).describe()}
    assert {id_: report.name for id_, report in reports.items()} == {"here-1": "", "here-2": "whole"}


def test_what_is_no_attempt_has_no_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "state"))
    for name in ("10", "9", ".nfs0001", "9.part"):
        (tmp_path / "home/jobs" / JOB_ID / "tasks/worker-0" / name).mkdir(parents=True)
        (tmp_path / "home/jobs" / JOB_ID / "tasks/worker-0" / name / "stdout").write_text(name)
    found = Here({"home": uris.of_local(tmp_path / "home")}).logs(JOB_ID, TaskId("worker", 0), "stdout")
    assert list(found) == [("worker:0 attempt 9 stdout", b"9"), ("worker:0 attempt 10 stdout", b"10")]


def test_jobs_of_another_user_in_the_same_home_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as base, contextlib.ExitStack() as stack:
        monkeypatch.setenv("HOWDAH_HOME", f"{base}/state")
        Path(base).chmod(0o755)
        directory = Path(base, "jobs", JOB_ID)
        directory.mkdir(parents=True)
        directory.chmod(0)
        here = Here({"home": uris.of_local(base)})
        if os.geteuid() == 0:
            os.seteuid(65534)
            stack.callback(os.seteuid, 0)
        assert here.describe() == []
        with pytest.raises(StagingError, match="permission denied"):
            here.describe(JOB_ID)
