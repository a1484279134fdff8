"""Tests this machine's queue and its supervisor: order, killed processes, damaged or missing files."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_local import Local, local, printed, running  # noqa: F401 - a fixture

from howdah.engines.local.processes import processes_of_containers
from howdah.errors import EngineUnavailable
from howdah.spec import Master, Output, State
from howdah.supervisor.launcher import is_running
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import MachineState

PYTHON = sys.executable
SUBMIT = """
import sys
from howdah.engines.local.engine import LocalEngine
from howdah.spec import JobSpec, Resources, Role, StagedJob
engine = LocalEngine({"local_home": sys.argv[1]})
job = JobSpec({"worker": Role(sys.argv[2], 1, Resources(64))})
print(engine.submit(engine.plan(StagedJob(job, engine.home)), {}))
"""


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One on which a single job of these tests has room, unless it says otherwise."""
    monkeypatch.setenv("HOWDAH_LOCAL_MEMORY_MIB", "128")


def state_of(local: Local) -> MachineState:  # noqa: F811
    return MachineState.for_home(str(local.home))


def supervisor_of(local: Local) -> int:  # noqa: F811
    return int(Path(state_of(local).supervisor_lock).read_text())


def processes_of(local: Local) -> list[int]:  # noqa: F811
    """All of howdah's processes that work in this home: the supervisor, masters, executors, their programs."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                if f"{local.home}/".encode() in text:
                    found.append(int(entry.name))
    return found


def wait_until(wanted: Callable[[], object], what: str, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while not wanted():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def kill_everything(local: Local) -> None:  # noqa: F811
    """As a reboot does: nothing has time to say anything."""
    pids = processes_of(local)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # none of them may see another end, and start a new one
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
    wait_until(lambda: not processes_of(local), "the end of all processes")


def ends_in_log(local: Local, job_id: str) -> int:  # noqa: F811
    return (local.home / "jobs" / job_id / "events.jsonl").read_text().count('"kind":"JobFinished"')


def secrets_in(directory: Path) -> list[Path]:
    return [path for name in (*SECRETS, "howdah-here") for path in directory.rglob(name)]


class TestQueue:
    def test_jobs_begin_in_the_order_of_submission(self, local: Local) -> None:  # noqa: F811
        ids = [local.submit("sleep 0.2") for _ in range(5)]
        assert local.report(ids[-1]).state is State.PENDING
        reports = [local.end(job_id) for job_id in ids]
        assert [report.state for report in reports] == [State.SUCCEEDED] * 5
        begun = [report.started for report in reports]
        assert begun == sorted(begun)

    def test_a_small_job_does_not_overtake_a_large_one(self, local: Local) -> None:  # noqa: F811
        first = local.submit("while [ ! -e ../../../../go ]; do sleep 0.05; done", memory_mib=64)
        local.until(first, running)
        large = local.submit("true", memory_mib=128)
        small = local.submit("true", memory_mib=32)
        assert local.report(large).diagnostics == f"waiting for 128 MiB: 64 MiB of 128 MiB are used by {first}"
        behind = f"number 2 in this machine's queue, in which {large} is the first"
        assert local.report(small).diagnostics == behind
        assert [one.facts["text"] for one in local.engine.pending_reasons(small, None, {})] == [behind]
        (local.home / "jobs" / first / "go").touch()
        assert local.end(large).started < local.end(small).started

    def test_a_waiting_job_has_no_process(self, local: Local) -> None:  # noqa: F811
        first = local.submit("echo up; sleep 600; true")
        local.until(first, printed(local, first))
        before = processes_of(local)
        ids = [local.submit("true") for _ in range(5)]
        assert [local.report(job_id).state for job_id in ids] == [State.PENDING] * 5
        assert processes_of(local) == before

    def test_a_waiting_job_that_is_cancelled_never_begins(self, local: Local, tmp_path: Path) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until(first, running)
        outputs = (Output((tmp_path / "models" / "out").as_uri()),)
        second, third = local.submit("true", outputs=outputs, name="second"), local.submit("true")
        assert list((tmp_path / "models").iterdir())
        local.engine.cancel(second)
        report = local.end(second)
        assert (report.state, report.name) == (State.CANCELLED, "second")
        assert ends_in_log(local, second) == 1
        assert local.view(second).job is not None
        assert list((tmp_path / "models").iterdir()) == []
        assert local.left(second) == []
        local.engine.cancel(first)
        assert local.end(third).state is State.SUCCEEDED

    def test_the_program_has_its_submitters_limits(self, local: Local) -> None:  # noqa: F811
        """Though the supervisor was started for another one."""
        first = local.submit("sleep 600")
        local.until(first, running)
        program = "umask; ulimit -n; echo $MINE"
        shell = f"umask 027; ulimit -n 321; exec {PYTHON} -W ignore -c '{SUBMIT}' {local.home} '{program}'"
        variables = {**os.environb, b"MINE": b"5 \xff"}
        done = subprocess.run(["/bin/sh", "-c", shell], env=variables, stdout=subprocess.PIPE, check=True)
        local.jobs.append(done.stdout.decode().strip())
        local.engine.cancel(first)
        assert local.end(local.jobs[-1]).state is State.SUCCEEDED
        assert local.log(local.jobs[-1], "stdout") == b"0027\n321\n5 \xff\n"

    def test_a_supervisor_leaves_when_nothing_is_left(self, local: Local) -> None:  # noqa: F811
        assert local.run("true").state is State.SUCCEEDED
        wait_until(lambda: not is_running(state_of(local)), "the supervisor's end")
        assert Path(state_of(local).directory, "supervisor.log").read_text() == ""


class TestKilled:
    def test_the_end_of_the_supervisor_ends_no_job(self, local: Local) -> None:  # noqa: F811
        first = local.submit("echo up; while [ ! -e go ]; do sleep 0.05; done")
        second = local.submit("true")
        local.until(first, printed(local, first))
        killed = supervisor_of(local)
        os.kill(killed, signal.SIGKILL)
        # Nobody looks: the master has another one started.
        wait_until(lambda: is_running(state_of(local)) and supervisor_of(local) != killed, "another supervisor")
        master = local.running_master(first)
        os.kill(master, signal.SIGKILL)
        wait_until(lambda: local.running_master(first) != master, "another master")
        (local.home / "jobs" / first / "tasks/worker-0/1/work/go").touch()
        for job_id in (first, second):
            assert local.end(job_id).state is State.SUCCEEDED
            assert ends_in_log(local, job_id) == 1
            assert local.left(job_id) == []
        assert [task.attempt for task in local.view(first).tasks.values()] == [1]

    def test_a_master_that_is_asked_to_end_is_followed(self, local: Local) -> None:  # noqa: F811
        """By a machine that is shut down, for instance: nobody has cancelled the job."""
        job_id = local.submit("echo up; while [ ! -e go ]; do sleep 0.05; done")
        local.until(job_id, printed(local, job_id))
        master = local.running_master(job_id)
        os.kill(master, signal.SIGTERM)
        wait_until(lambda: local.running_master(job_id) != master, "another master")
        (local.home / "jobs" / job_id / "tasks/worker-0/1/work/go").touch()
        assert local.end(job_id).state is State.SUCCEEDED
        assert [task.attempt for task in local.view(job_id).tasks.values()] == [1]
        assert local.left(job_id) == []

    def test_a_master_that_does_not_hear_is_killed_for_a_cancellation(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; sleep 600; true")
        local.until(job_id, printed(local, job_id))
        os.kill(local.running_master(job_id), signal.SIGSTOP)
        local.engine.cancel(job_id)
        report = local.end(job_id)
        assert (report.state, report.diagnostics) == (
            State.CANCELLED,
            f"cancelled by {getpass.getuser()}; the master had to be killed",
        )
        assert local.left(job_id) == []

    def test_the_queue_goes_on_when_everything_was_killed(self, local: Local) -> None:  # noqa: F811
        first = local.submit("echo up; [ -e ../../../../again ] || sleep 600", retries=1)
        waiting = [local.submit("true") for _ in range(3)]
        local.until(first, printed(local, first))
        (local.home / "jobs" / first / "again").touch()
        kill_everything(local)
        reports = {report.id: report for report in local.engine.describe()}  # as `howdah list` does
        assert [reports[job_id].state for job_id in waiting] == [State.PENDING] * 3
        assert not reports[first].state.ended
        ended = [local.end(job_id, 120.0) for job_id in (first, *waiting)]
        assert [report.state for report in ended] == [State.SUCCEEDED] * 4, [report.diagnostics for report in ended]
        assert [ends_in_log(local, job_id) for job_id in (first, *waiting)] == [1] * 4
        assert ended[0].started < ended[1].started < ended[2].started < ended[3].started
        assert secrets_in(local.home / "jobs") == []

    def test_a_job_that_may_not_go_on_is_told_so(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; sleep 600", master=Master(attempts=1))
        local.until(job_id, printed(local, job_id))
        kill_everything(local)
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert "the master was killed" in report.diagnostics
        assert ends_in_log(local, job_id) == 1
        assert secrets_in(local.home / "jobs") == []
        assert local.left(job_id) == []

    def test_a_killed_executor_leaves_no_secret(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; [ -e ../../../../again ] || sleep 600", retries=1)
        local.until(job_id, printed(local, job_id))
        (local.home / "jobs" / job_id / "again").touch()
        (executor,) = [
            pid
            for pid in processes_of_containers(f"{job_id}.")
            if b"howdah.executor" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: not secrets_in(local.home / "jobs" / job_id / "tasks/worker-0/1"), "removal of the key")
        assert local.end(job_id).state is State.SUCCEEDED

    def test_a_submission_that_was_killed_leaves_nothing(self, local: Local, tmp_path: Path) -> None:  # noqa: F811
        """It stands still where it brings its files: in a FIFO that nobody writes."""
        fifo, out = tmp_path / "data.bin", tmp_path / "models" / "out"
        os.mkfifo(fifo)
        source = (
            "import sys; from howdah.engines.local.engine import LocalEngine; from howdah.spec import *\n"
            "engine = LocalEngine({'local_home': sys.argv[1]})\n"
            "job = JobSpec({'worker': Role('true', 1, Resources(64))}, outputs=(Output(sys.argv[3]),))\n"
            "file = StagedFile('data.bin', 'file://' + sys.argv[1] + '/cache/aa/aa-data.bin', source=sys.argv[2])\n"
            "engine.submit(engine.plan(StagedJob(job, engine.home, (file,))), {})\n"
        )
        command = [PYTHON, "-W", "ignore", "-c", source, str(local.home), str(fifo), out.as_uri()]
        with subprocess.Popen(command) as submitter:
            wait_until(lambda: out.parent.exists() and list(out.parent.iterdir()), "the output's reservation")
            assert local.engine.describe() == []
            (directory,) = Path(state_of(local).submitting_directory).iterdir()
            (directory / "key").touch()  # it was about to write that
            local.engine.describe()
            assert (directory / "key").exists(), "it still lives"
            submitter.kill()
        assert local.engine.describe() == []
        assert secrets_in(directory) == []
        assert local.run("true").state is State.SUCCEEDED
        assert list(out.parent.iterdir()) == []
        assert list(Path(state_of(local).submitting_directory).iterdir()) == []


DAMAGES: dict[str, Callable[[Path], object]] = {
    "random bytes": lambda log: log.write_bytes(bytes(range(256)) * 64),
    "zeros": lambda log: log.write_bytes(bytes(log.stat().st_size)),
    "half of it": lambda log: log.write_bytes(log.read_bytes()[: log.stat().st_size // 2]),
    "other types": lambda log: log.write_text(log.read_text().replace('"time":1', '"time":"1')),
    "lists": lambda log: log.write_text("[]\n[[1]]\n" + log.read_text().replace('{"role"', '[{"role"')),
    "unknown tasks": lambda log: log.write_text("".join(log.read_text().splitlines(keepends=True)[5:])),
    "deep nesting": lambda log: log.write_text('{"kind":"Noted","text":' + "[" * 100_000 + "\n"),
    "a directory": lambda log: log.rename(log.with_name("before")) and log.mkdir(),  # type: ignore[func-returns-value]
}


class TestDamaged:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_an_event_log(self, local: Local, damage: str) -> None:  # noqa: F811
        """It is one job that is told as damaged: nothing else stops."""
        damaged, whole = local.run("echo one").id, local.run("echo two").id
        DAMAGES[damage](local.home / "jobs" / damaged / "events.jsonl")
        (local.home / "jobs" / damaged / "key").touch()
        reports = {report.id: report for report in local.engine.describe()}
        assert reports[whole].state is State.SUCCEEDED
        last_line_is_whole = damage in ("lists", "unknown tasks")
        assert reports[damaged].state is (State.SUCCEEDED if last_line_is_whole else State.FAILED)
        assert local.run("echo three").state is State.SUCCEEDED
        (local.home / "cli").mkdir()
        (local.home / "cli" / "state").symlink_to(local.home)
        environment = {**os.environ, "HOWDAH_HOME": str(local.home / "cli")}
        for arguments in (["list"], ["status", damaged], ["explain", damaged], ["logs", damaged]):
            command = [str(Path(PYTHON).with_name("howdah")), *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            assert "Traceback" not in done.stderr, done.stderr
            if arguments[0] == "status":
                assert re.search(r"log is damaged|events\.jsonl: Is a directory", done.stdout), done.stdout

    def test_a_job_file(self, local: Local) -> None:  # noqa: F811
        job_id = local.run("true").id
        for text in ("", "{", "[]", '{"job": {"roles": 5}}', '{"job": "x"}'):
            (local.home / "jobs" / job_id / "job.json").write_text(text)
            (report,) = local.engine.describe()
            assert (report.id, report.state) == (job_id, State.SUCCEEDED)

    def test_an_entry_of_the_queue(self, local: Local) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until(first, running)
        damaged, third = local.submit("true"), local.submit("true")
        (entry,) = Path(state_of(local).queue_directory).glob(f"*-{damaged}")
        entry.write_text('{"wants": [1, 2')
        local.engine.cancel(first)
        assert "is damaged" in local.end(damaged).diagnostics
        assert local.end(third).state is State.SUCCEEDED

    def test_the_start_of_a_job(self, local: Local) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until(first, running)
        damaged, third = local.submit("true"), local.submit("true")
        (local.home / "jobs" / damaged / "start.json").write_text("{}")
        local.engine.cancel(first)
        assert "the master cannot be started" in local.end(damaged).diagnostics
        assert local.end(third).state is State.SUCCEEDED

    def test_the_ledger(self, local: Local) -> None:  # noqa: F811
        assert local.run("true").state is State.SUCCEEDED
        ledger = Path(state_of(local).ledger_file)
        ledger.write_text('{"local-1": ')
        with pytest.raises(EngineUnavailable, match=r"ledger\.json is damaged .*remove it"):
            local.engine.describe()
        ledger.unlink()
        assert local.run("true").state is State.SUCCEEDED


@pytest.fixture
def open_files() -> Iterator[Callable[[int], None]]:
    """Sets how many more files this process may open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def allow(more: int) -> None:
        free = [number for number in range(1000) if not os.path.lexists(f"/proc/self/fd/{number}")]
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[more], before[1]))

    yield allow
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_too_few_open_files_do_not_make_a_living_job_a_dead_one(
    local: Local,  # noqa: F811
    open_files: Callable[[int], None],
) -> None:
    first = local.submit("sleep 600")
    local.until(first, running)
    waits = local.submit("true")
    told, problems = [], []
    for more in range(12):
        open_files(more)
        try:
            told += [(report.id, report.state) for report in local.engine.describe()]
        except EngineUnavailable as error:
            problems.append(str(error))
    assert problems
    assert all("Too many open files" in problem for problem in problems)
    assert set(told) == {(first, State.RUNNING), (waits, State.PENDING)}
