"""Tests failing jobs on the local engine: a clear line, the right state, nothing left behind."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_tree import find
from local_jobs import eventually, run_command

from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.engine import LocalEngine
from howdah.engines.processes import processes_of_containers
from howdah.errors import EngineRejected, StagingError
from howdah.spec import (
    Input,
    JobReport,
    JobSpec,
    Master,
    Output,
    Resources,
    Role,
    StagedFile,
    StagedJob,
    State,
    TaskId,
    Timeouts,
    uris,
)
from howdah.spec.staged import DataFile, StagedInput
from howdah.spec.view import JobView
from howdah.supervisor.launcher import is_running
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import MachineState

GROUPS = Path("/sys/fs/cgroup/memory")
PYTHON = sys.executable
UNTIL_TOLD = "while [ ! -e ../../../../go ]; do sleep 0.05; done"
"""A command that goes on until `Local.tell`."""


class Local:
    """A local engine with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.engine = LocalEngine({"local_home": str(home)})
        self.jobs: list[str] = []

    def submit(self, command: str | tuple[str, ...], replicas: int = 1, memory_mib: int = 128, **job: object) -> str:
        role = Role(command, replicas, Resources(memory_mib))
        files = job.pop("files", ())
        timeouts = job.pop("timeouts", Timeouts(stop_s=0.3))
        spec = JobSpec({"worker": role}, timeouts=timeouts, **job)  # type: ignore[arg-type]
        staged = StagedJob(spec, self.engine.home, files)  # type: ignore[arg-type]
        self.jobs.append(self.engine.submit(self.engine.plan(staged), {}))
        return self.jobs[-1]

    def run(self, command: str | tuple[str, ...], **job: object) -> JobReport:
        """Submit it and wait for its end."""
        return self.end(self.submit(command, **job))  # type: ignore[arg-type]

    def report(self, job_id: str) -> JobReport:
        return self.engine.describe(job_id)[0]

    def tell(self, job_id: str) -> None:
        """Let the job's commands UNTIL_TOLD end."""
        (self.home / "jobs" / job_id / "go").touch()

    def until(self, job_id: str, wanted: Callable[[JobReport], object], what: str) -> JobReport:
        def shown() -> str:
            return f"{self.report(job_id)}\n{self.master_log(job_id)}"

        eventually(lambda: wanted(self.report(job_id)), f"{what} of {job_id}", output=shown)
        return self.report(job_id)

    def until_running(self, job_id: str) -> JobReport:
        return self.until(job_id, lambda report: report.state is State.RUNNING, "the start")

    def until_printed(self, job_id: str) -> JobReport:
        return self.until(job_id, lambda _: self.log(job_id, "stdout"), "the output")

    def until_another_master(self, job_id: str, before: int) -> None:
        self.until(job_id, lambda _: self.running_master(job_id) != before, f"another master than {before}")

    def end(self, job_id: str) -> JobReport:
        """The job's end, when nothing is left to be done for it."""
        state = MachineState.for_home(str(self.home))
        return self.until(job_id, lambda report: report.state.ended and job_id not in state.entries(), "the end")

    def view(self, job_id: str) -> JobView:
        return JobDirectory(self.home / "jobs" / job_id).view()

    def running_master(self, job_id: str) -> int:
        return int(json.loads((self.home / "jobs" / job_id / "master.json").read_text())["pid"])

    def master_log(self, job_id: str) -> str:
        log = self.home / "jobs" / job_id / "master.log"
        return log.read_text() if log.exists() else "it never began"

    def log(self, job_id: str, stream: str, index: int = 0) -> bytes:
        return b"".join(piece for _, piece in self.engine.logs(job_id, TaskId("worker", index), stream))

    def left(self, job_id: str) -> list[object]:
        """Whatever of an ended job is still there."""
        entry = MachineState.for_home(str(self.home)).entries().get(job_id, {})
        secrets = [path for name in SECRETS for path in find(self.home / "jobs" / job_id, name)]
        return [*processes_of_containers(f"{job_id}."), *entry, *secrets, *find(GROUPS, f"howdah-{job_id}*")]


@pytest.fixture
def local(howdah_home: Path) -> Local:
    return Local(howdah_home / "state")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of 1 MiB."""
    home = tmp_path / "small"
    home.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "howdah-test", str(home)], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield home
    subprocess.run(["umount", "--lazy", str(home)], check=True)


class TestEnds:
    def test_success(self, local: Local) -> None:
        report = local.run("echo done")
        assert (report.state, report.diagnostics, report.progress) == (State.SUCCEEDED, "", 1.0)
        assert local.log(report.id, "stdout") == b"done\n"
        assert local.left(report.id) == []

    def test_a_program_that_exits_at_once(self, local: Local) -> None:
        report = local.run("echo 'no such layer' >&2; exit 3")
        assert report.state is State.FAILED
        assert "worker:0" in report.diagnostics
        assert "exit code 3" in report.diagnostics
        exit = local.view(report.id).tasks[TaskId("worker", 0)].exit
        assert exit is not None
        assert exit.lines == ("no such layer",)
        assert local.left(report.id) == []

    def test_a_program_that_does_not_exist(self, local: Local) -> None:
        report = local.run(("nosuchprogram",))
        assert report.state is State.FAILED
        assert "'nosuchprogram' is not found on PATH" in report.diagnostics

    def test_a_program_that_leaves_children(self, local: Local) -> None:
        report = local.run("(setsid sh -c 'sleep 600 & touch up; sleep 600' &); while [ ! -e up ]; do sleep 0.05; done")
        assert report.state is State.SUCCEEDED
        assert local.left(report.id) == []
        log = (local.home / "jobs" / report.id / "tasks/worker-0/1/executor.log").read_text()
        assert "what it has left in the background is stopped, and killed after 0.3 s" in log

    def test_more_memory_than_the_limit(self, local: Local) -> None:
        if not os.access(GROUPS, os.W_OK):
            pytest.skip("control groups cannot be written here")
        report = local.run((PYTHON, "-c", "x = bytearray(300 << 20)"), memory_mib=96)
        assert report.state is State.FAILED
        assert "used 96 MiB of 96 MiB" in report.diagnostics
        exit = local.view(report.id).tasks[TaskId("worker", 0)].exit
        assert exit is not None
        assert exit.cause == "memory"
        assert local.left(report.id) == []

    def test_one_fails_while_the_others_wait(self, local: Local) -> None:
        report = local.run("[ $HOWDAH_INDEX != 1 ] || exit 9; sleep 600", replicas=3)
        assert report.state is State.FAILED
        assert "worker:1" in report.diagnostics
        assert local.left(report.id) == []


class TestOutput:
    def test_names_that_are_no_text(self, local: Local, tmp_path: Path) -> None:
        name = os.fsdecode(b"caf\xe9")
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / name).write_text("1")
        listed = DataFile(uris.of_local(tmp_path / "in" / name), name, 1)
        command = ("sh", "-c", "cp -r data/. output; ls -R")
        outputs = (Output(uris.of_local(tmp_path / "out")),)
        role = Role(command, resources=Resources(128))
        spec = JobSpec({"worker": role}, inputs=(Input(listed.uri, "data"),), outputs=outputs)
        staged = StagedJob(spec, local.engine.home, inputs=(StagedInput("data", (listed,)),))
        local.jobs.append(local.engine.submit(local.engine.plan(staged), {}))
        assert local.end(local.jobs[-1]).state is State.SUCCEEDED, local.master_log(local.jobs[-1])
        assert (tmp_path / "out" / "worker-0" / name).read_text() == "1"

    def test_a_flood_of_300_mb(self, local: Local) -> None:
        source = "import os; b = b'x' * 65535 + b'\\n'; [os.write(1, b) for _ in range(4800)]"
        report = local.run((PYTHON, "-c", source))
        assert report.state is State.SUCCEEDED
        assert (local.home / "jobs" / report.id / "tasks/worker-0/1/stdout").stat().st_size == 4800 * 65536

    def test_binary(self, local: Local) -> None:
        report = local.run((PYTHON, "-c", "import os; os.write(2, bytes(range(256)) * 100); os._exit(1)"))
        assert report.state is State.FAILED
        assert local.log(report.id, "stderr") == bytes(range(256)) * 100


class TestKilled:
    def test_cancel_of_what_ignores_term(self, local: Local) -> None:
        source = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(600)"
        job_id = local.submit((PYTHON, "-c", source))
        local.until_printed(job_id)
        local.engine.cancel(job_id)
        report = local.end(job_id)
        assert (report.state, report.diagnostics) == (State.CANCELLED, f"cancelled by {getpass.getuser()}")
        assert local.left(job_id) == []

    def test_cancel_is_idempotent(self, local: Local) -> None:
        job_id = local.submit("sleep 600")
        local.engine.cancel(job_id)
        local.engine.cancel(job_id)
        assert local.end(job_id).state is State.CANCELLED
        local.engine.cancel(local.run("true").id)
        assert local.report(local.jobs[-1]).state is State.SUCCEEDED
        local.engine.cancel("local-nosuch")

    def test_a_killed_master_leaves_nothing(self, local: Local) -> None:
        job_id = local.submit("(setsid sleep 600 &); echo up; sleep 600; true", replicas=2, master=Master(attempts=1))
        local.until_printed(job_id)
        killed = local.running_master(job_id)
        os.kill(killed, signal.SIGKILL)
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert report.diagnostics == f"the master was killed (pid {killed}); nothing else is known"
        assert local.left(job_id) == []
        assert local.log(job_id, "stdout") == b"up\n"

    def test_another_master_goes_on_and_programs_do_not_notice(self, local: Local) -> None:
        job_id = local.submit('echo "epoch $HOWDAH_EPOCH"; while [ ! -e go ]; do sleep 0.1; done', replicas=2)
        local.until_printed(job_id)
        killed = local.running_master(job_id)
        os.kill(killed, signal.SIGKILL)
        local.until_another_master(job_id, killed)
        for number in range(2):
            (local.home / "jobs" / job_id / "tasks" / f"worker-{number}" / "1" / "work" / "go").touch()
        assert local.end(job_id).state is State.SUCCEEDED
        view = local.view(job_id)
        assert (view.epoch, [task.attempt for task in view.tasks.values()]) == (1, [1, 1])
        assert any("attempt 2 of the master took over" in note for note in view.notes)
        assert local.left(job_id) == []

    def test_a_master_killed_too_often_leaves_nothing(self, local: Local) -> None:
        job_id = local.submit("echo up; sleep 600; true", replicas=2)
        local.until_printed(job_id)
        for _ in range(2):
            killed = local.running_master(job_id)
            os.kill(killed, signal.SIGKILL)
            local.until(
                job_id,
                lambda report, old=killed: report.state.ended or local.running_master(job_id) != old,
                "the end, or another master",
            )
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert local.left(job_id) == []

    def test_a_killed_executor_is_named_and_leaves_nothing(self, local: Local) -> None:
        job_id = local.submit("(setsid sleep 600 &); echo up; sleep 600; true")
        local.until_printed(job_id)
        os.kill(executor_of(local, job_id), signal.SIGKILL)
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert "its executor was killed by signal 9" in report.diagnostics
        assert local.left(job_id) == []

    def test_a_master_that_cannot_begin(self, local: Local) -> None:
        job_id = local.submit("true", framework="nosuch")
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert "nosuch" in report.diagnostics


class TestRoom:
    def test_a_job_that_can_never_fit(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOWDAH_LOCAL_MEMORY_MIB", str(24 << 10))
        with pytest.raises(EngineRejected, match="never run here") as refusal:
            local.submit("true", replicas=3, memory_mib=40 << 10)
        assert "needs 3 × 40 GiB (worker) = 120 GiB, this machine has 24 GiB (HOWDAH_LOCAL_MEMORY_MIB" in str(
            refusal.value
        )
        assert not (local.home / "jobs").exists()

    def test_jobs_queue_when_the_machine_is_full(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOWDAH_LOCAL_MEMORY_MIB", "256")
        first = local.submit("sleep 600", replicas=2)
        local.until_running(first)
        second = local.submit("true", replicas=2)
        report = local.report(second)
        assert report.diagnostics == f"waiting for 256 MiB: 256 MiB of 256 MiB are used by {first}"
        assert report.state is State.PENDING
        local.engine.cancel(first)
        assert local.end(second).state is State.SUCCEEDED

    def test_a_waiting_job_can_be_cancelled(self, local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOWDAH_LOCAL_MEMORY_MIB", "128")
        first = local.submit("sleep 600")
        local.until_running(first)
        second = local.submit("true")
        assert local.report(second).diagnostics
        local.engine.cancel(second)
        assert local.end(second).state is State.CANCELLED
        assert local.left(second) == []

    def test_a_missing_file_leaves_no_job(self, local: Local) -> None:
        uri = (local.home / "cache" / "aa" / "aa-x.py").as_uri()
        with pytest.raises(StagingError, match=r"(?i)nowhere/x\.py: no such file"):
            local.submit("true", files=(StagedFile("x.py", uri, source="/nowhere/x.py"),))
        assert local.engine.describe() == []

    @pytest.mark.filterwarnings(
        "ignore:unclosed file"
    )  # A sink that failed is dropped, not closed: storage/filesystem.py.
    def test_a_full_disk_leaves_no_job(self, small_disk: Path, tmp_path: Path) -> None:
        (tmp_path / "large").write_bytes(bytes(2 << 20))
        local = Local(small_disk)
        file = StagedFile("large", (small_disk / "cache" / "aa" / "aa-large").as_uri(), source=str(tmp_path / "large"))
        with pytest.raises(StagingError, match=r"(?i)no space left"):
            local.submit("true", files=(file,))
        assert local.engine.describe() == []
        assert [path for path in small_disk.rglob("*") if path.is_file() and path.stat().st_size] == []

    def test_on_a_full_disk_it_waits_and_says_so(self, small_disk: Path) -> None:
        local = Local(small_disk)
        (small_disk / "filler").write_bytes(bytes((1 << 20) - (48 << 10)))
        job_id = local.submit("true")
        said = local.until(job_id, lambda report: report.diagnostics, "the reason to wait").diagnostics
        state = MachineState.for_home(str(small_disk))
        assert said == f"no room in {state.directory}: No space left on device; the job goes on when there is some"
        assert [one.facts["text"] for one in local.engine.pending_reasons(job_id, None, {})] == [said]
        (small_disk / "filler").unlink()
        assert local.end(job_id).state is State.SUCCEEDED
        eventually(lambda: not is_running(state), "the end of the supervisor")


class TestLife:
    def test_a_job_outlives_its_submitter(self, local: Local) -> None:
        source = (
            "import sys; from howdah.engines.local.engine import LocalEngine; from howdah.spec import *\n"
            "engine = LocalEngine({'local_home': sys.argv[1]})\n"
            "job = JobSpec({'worker': Role(sys.argv[2], 1, Resources(64))})\n"
            "print(engine.submit(engine.plan(StagedJob(job, engine.home)), {}))\n"
        )
        command = [PYTHON, "-W", "ignore", "-c", source, str(local.home), f"{UNTIL_TOLD}; echo survived"]
        submitted = run_command(command, check=True, start_new_session=True)
        job_id = submitted.stdout.strip()
        local.tell(job_id)
        assert local.end(job_id).state is State.SUCCEEDED
        assert local.log(job_id, "stdout") == b"survived\n"

    def test_the_newest_job_is_listed_first(self, local: Local) -> None:
        ids = [local.run("true").id for _ in range(3)]
        assert [report.id for report in local.engine.describe()] == ids[::-1]
        assert local.engine.describe("local-nosuch") == []
        assert local.engine.describe("../jobs") == []

    def test_secrets_and_the_directory_are_private(self, local: Local) -> None:
        job_id = local.submit("sleep 600")
        local.until_running(job_id)
        directory = local.home / "jobs" / job_id
        assert directory.stat().st_mode & 0o777 == 0o700
        for path in (directory / "key", *directory.rglob("credentials")):
            assert path.stat().st_mode & 0o777 == 0o600


def executor_of(local: Local, job_id: str) -> int:
    """The one marked process that runs our executor."""
    for pid in processes_of_containers(f"{job_id}."):
        if b"howdah.executor" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("no executor")
