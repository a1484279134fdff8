"""Tests this machine's queue and its supervisor: order, killed processes, damaged or missing files."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_tree import find
from local_jobs import eventually, howdah_home, processes_in, run_command
from test_local import UNTIL_TOLD, Local, executor_of, local  # noqa: F401 - a fixture

from howdah.errors import EngineUnavailable
from howdah.spec import Master, Output, State
from howdah.spec.job import Timeouts
from howdah.supervisor.launcher import is_running
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import MachineState
from howdah.supervisor.supervisor import TERM_S

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
    """The supervisor's process id; 0 while it begins."""
    return int(Path(state_of(local).supervisor_lock).read_text() or 0)


def kill_everything(local: Local) -> None:  # noqa: F811
    """As a reboot does: nothing has time to say anything."""
    stopped = set[int]()
    while found := set(processes_in(local.home)) - stopped:  # none may see another's end, and start a new one
        send(signal.SIGSTOP, found)
        stopped |= found
    send(signal.SIGKILL, stopped)
    eventually(lambda: not processes_in(local.home), "the end of all processes")


def send(number: signal.Signals, pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def ends_in_log(local: Local, job_id: str) -> int:  # noqa: F811
    return (local.home / "jobs" / job_id / "events.jsonl").read_text().count('"kind":"JobFinished"')


def secrets_in(directory: Path) -> list[Path]:
    return [path for name in (*SECRETS, "howdah-here") for path in find(directory, name)]


class TestQueue:
    def test_jobs_begin_in_the_order_of_submission(self, local: Local) -> None:  # noqa: F811
        ids = [local.submit(command) for command in (UNTIL_TOLD, *["true"] * 3)]
        assert local.report(ids[-1]).state is State.PENDING
        local.tell(ids[0])
        reports = [local.end(job_id) for job_id in ids]
        assert [report.state for report in reports] == [State.SUCCEEDED] * 4
        begun = [report.started for report in reports]
        assert begun == sorted(begun)

    def test_a_small_job_does_not_overtake_a_large_one(self, local: Local) -> None:  # noqa: F811
        first = local.submit(UNTIL_TOLD, memory_mib=64)
        local.until_running(first)
        large = local.submit("true", memory_mib=128)
        small = local.submit("true", memory_mib=32)
        assert local.report(large).diagnostics == f"waiting for 128 MiB: 64 MiB of 128 MiB are used by {first}"
        behind = f"number 2 in this machine's queue, behind {large}"
        assert local.report(small).diagnostics == behind
        assert [one.facts["text"] for one in local.engine.pending_reasons(small, None, {})] == [behind]
        local.tell(first)
        assert local.end(large).started < local.end(small).started

    def test_a_waiting_job_has_no_process(self, local: Local) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until_running(first)
        ids = [local.submit("true") for _ in range(2)]
        assert [local.report(job_id).state for job_id in ids] == [State.PENDING] * 2
        assert processes_in(local.home / "jobs" / first) != []
        assert [processes_in(local.home / "jobs" / job_id) for job_id in ids] == [[]] * 2

    def test_a_waiting_job_that_is_cancelled_never_begins(self, local: Local, tmp_path: Path) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until_running(first)
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
        local.until_running(first)
        program = "umask; ulimit -n; echo $MINE"
        shell = f"umask 027; ulimit -n 321; exec {PYTHON} -W ignore -c '{SUBMIT}' {local.home} '{program}'"
        variables = {**os.environb, b"MINE": b"5 \xff"}
        done = run_command(["/bin/sh", "-c", shell], env=variables, check=True)
        local.jobs.append(done.stdout.strip())
        local.engine.cancel(first)
        assert local.end(local.jobs[-1]).state is State.SUCCEEDED
        assert local.log(local.jobs[-1], "stdout") == b"0027\n321\n5 \xff\n"

    def test_a_supervisor_leaves_when_nothing_is_left(self, local: Local) -> None:  # noqa: F811
        assert local.run("true").state is State.SUCCEEDED
        eventually(lambda: not is_running(state_of(local)), "the supervisor's end")
        assert Path(state_of(local).directory, "supervisor.log").read_text() == ""


class TestKilled:
    def test_the_end_of_the_supervisor_ends_no_job(self, local: Local) -> None:  # noqa: F811
        first = local.submit(f"echo up; {UNTIL_TOLD}")
        second = local.submit("true")
        local.until_printed(first)
        killed = supervisor_of(local)
        os.kill(killed, signal.SIGKILL)
        # Nobody looks: the master has another one started.
        eventually(
            lambda: is_running(state_of(local)) and supervisor_of(local) not in (0, killed), "another supervisor"
        )
        master = local.running_master(first)
        os.kill(master, signal.SIGKILL)
        local.until_another_master(first, master)
        local.tell(first)
        for job_id in (first, second):
            assert local.end(job_id).state is State.SUCCEEDED
            assert ends_in_log(local, job_id) == 1
            assert local.left(job_id) == []
        assert [task.attempt for task in local.view(first).tasks.values()] == [1]

    def test_a_master_that_is_asked_to_end_is_followed(self, local: Local) -> None:  # noqa: F811
        """By a machine that is shut down, for instance: nobody has cancelled the job."""
        job_id = local.submit(f"echo up; {UNTIL_TOLD}")
        local.until_printed(job_id)
        master = local.running_master(job_id)
        os.kill(master, signal.SIGTERM)
        local.until_another_master(job_id, master)
        local.tell(job_id)
        assert local.end(job_id).state is State.SUCCEEDED
        assert [task.attempt for task in local.view(job_id).tasks.values()] == [1]
        assert local.left(job_id) == []

    def test_a_master_that_does_not_hear_is_killed_for_a_cancellation(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; sleep 600; true")
        local.until_printed(job_id)
        os.kill(local.running_master(job_id), signal.SIGSTOP)
        local.engine.cancel(job_id)
        report = local.end(job_id)
        assert (report.state, report.diagnostics) == (
            State.CANCELLED,
            f"cancelled by {getpass.getuser()}; the master had to be killed",
        )
        assert local.left(job_id) == []

    def test_a_cancellation_leaves_programs_their_time_to_stop(self, local: Local, tmp_path: Path) -> None:  # noqa: F811
        """Also where the engine is asked, because the job's key cannot be read."""
        save = f"trap 'sleep {2 * TERM_S:g}; touch {tmp_path}/saved; exit 1' TERM"
        job_id = local.submit(f"{save}; echo up; while :; do sleep 0.1; done", timeouts=Timeouts(stop_s=120.0))
        local.until_printed(job_id)
        local.engine.cancel(job_id)
        report = local.end(job_id)
        assert (report.state, report.diagnostics) == (State.CANCELLED, f"cancelled by {getpass.getuser()}")
        assert (tmp_path / "saved").exists()

    def test_the_queue_goes_on_when_everything_was_killed(self, local: Local) -> None:  # noqa: F811
        first = local.submit("echo up; until [ -e ../../../../again ]; do sleep 0.1; done", retries=1)
        waiting = [local.submit("true") for _ in range(3)]
        local.until_printed(first)
        kill_everything(local)
        reports = {report.id: report for report in local.engine.describe()}  # as `howdah list` does
        assert [reports[job_id].state for job_id in waiting] == [State.PENDING] * 3
        assert not reports[first].state.ended
        (local.home / "jobs" / first / "again").touch()
        ended = [local.end(job_id) for job_id in (first, *waiting)]
        assert [report.state for report in ended] == [State.SUCCEEDED] * 4, [report.diagnostics for report in ended]
        assert [ends_in_log(local, job_id) for job_id in (first, *waiting)] == [1] * 4
        assert ended[0].started < ended[1].started < ended[2].started < ended[3].started
        assert secrets_in(local.home / "jobs") == []

    def test_a_job_that_may_not_go_on_is_told_so(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; sleep 600", master=Master(attempts=1))
        local.until_printed(job_id)
        kill_everything(local)
        report = local.end(job_id)
        assert report.state is State.FAILED
        assert "the master was killed" in report.diagnostics
        assert ends_in_log(local, job_id) == 1
        assert secrets_in(local.home / "jobs") == []
        assert local.left(job_id) == []

    def test_a_killed_executor_leaves_no_secret(self, local: Local) -> None:  # noqa: F811
        job_id = local.submit("echo up; [ -e ../../../../again ] || sleep 600", retries=1)
        local.until_printed(job_id)
        (local.home / "jobs" / job_id / "again").touch()
        os.kill(executor_of(local, job_id), signal.SIGKILL)
        eventually(lambda: not secrets_in(local.home / "jobs" / job_id / "tasks/worker-0/1"), "removal of the key")
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
        submitter = subprocess.Popen(command)
        try:
            eventually(lambda: out.parent.exists() and list(out.parent.iterdir()), "the output's reservation")
            assert local.engine.describe() == []
            (directory,) = Path(state_of(local).submitting_directory).iterdir()
            (directory / "key").touch()  # it was about to write that
            local.engine.describe()
            assert (directory / "key").exists(), "it still lives"
        finally:
            submitter.kill()
            submitter.wait()
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


# One interpreter for all of them.
COMMANDS = """
import contextlib, sys
from howdah.cli import main
for command in ["list"], *([word, sys.argv[1]] for word in ("status", "explain", "logs")):
    with contextlib.suppress(SystemExit):
        main(command)
    print("done", *command, flush=True)
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A home with two jobs that have ended."""
    with howdah_home(tmp_path_factory.mktemp("ended")) as home:
        made = Local(home / "state")
        for word in ("one", "two"):
            assert made.run(f"echo {word}").state is State.SUCCEEDED
        yield made


class TestDamaged:
    @pytest.mark.parametrize("damage", DAMAGES)
    def test_an_event_log(self, local: Local, ended: Local, damage: str) -> None:  # noqa: F811
        """It is one job that is told as damaged: nothing else stops."""
        shutil.copytree(ended.home / "jobs", local.home / "jobs")
        damaged, whole = ended.jobs
        DAMAGES[damage](local.home / "jobs" / damaged / "events.jsonl")
        (local.home / "jobs" / damaged / "key").touch()
        reports = {report.id: report for report in local.engine.describe()}
        assert reports[whole].state is State.SUCCEEDED
        last_line_is_whole = damage in ("lists", "unknown tasks")
        assert reports[damaged].state is (State.SUCCEEDED if last_line_is_whole else State.FAILED)
        assert local.run("echo three").state is State.SUCCEEDED
        environment = {**os.environ, "HOWDAH_HOME": str(local.home.parent)}
        said = run_command([PYTHON, "-c", COMMANDS, damaged], env=environment)
        assert (said.returncode, "Traceback" in said.stderr) == (0, False), said.stderr
        assert said.stdout.endswith(f"done logs {damaged}\n")
        status = said.stdout.partition("done list\n")[2].partition("done status")[0]
        assert re.search(r"log is damaged|events\.jsonl: Is a directory", status), status

    def test_a_job_file(self, local: Local) -> None:  # noqa: F811
        job_id = local.run("true").id
        for text in ("", "{", "[]", '{"job": {"roles": 5}}', '{"job": "x"}'):
            (local.home / "jobs" / job_id / "job.json").write_text(text)
            (report,) = local.engine.describe()
            assert (report.id, report.state) == (job_id, State.SUCCEEDED)

    def test_an_entry_of_the_queue(self, local: Local) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until_running(first)
        damaged, third = local.submit("true"), local.submit("true")
        (entry,) = Path(state_of(local).queue_directory).glob(f"*-{damaged}")
        entry.write_text('{"wants": [1, 2')
        local.engine.cancel(first)
        assert "is damaged" in local.end(damaged).diagnostics
        assert local.end(third).state is State.SUCCEEDED

    def test_the_start_of_a_job(self, local: Local) -> None:  # noqa: F811
        first = local.submit("sleep 600")
        local.until_running(first)
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
    local.until_running(first)
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
