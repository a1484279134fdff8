"""Tests that signals which end TonY's command end its local job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.compat.tony.commands import SubmitInterrupts
from howdah.engines.local.jobs import JobDirectory, JobPositions
from howdah.engines.local.processes import processes_of_containers
from howdah.spec import State
from howdah.supervisor.state import MachineState

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 60.0
JOB = ("tony", "local", "--executes", "echo it runs; exec sleep 600", "--conf", "tony.am.memory=128m")
# A shell's part: the terminal is the session's own, so that closing it is told to the command.
OWNING = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Submitted:
    """TonY's command with a home of its own, and the jobs that it has made there."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.log = directory, directory / "out"
        self.environment = {**os.environ, "HOWDAH_HOME": str(directory), "TONY_CONF_DIR": str(directory)}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as out:
            return self._start([HOWDAH, *arguments], stdout=out, stderr=out)

    def start_in(self, terminal: int, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", OWNING, HOWDAH, *arguments]
        return self._start(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)

    def _start(self, command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=self.environment, cwd=self.directory, **how)

    def jobs(self) -> list[JobDirectory]:
        return [JobDirectory(path) for path in self.directory.glob("**/jobs/local-*")]

    def runs(self) -> bool:
        return any(path.read_bytes() == b"it runs\n" for path in self.directory.glob("**/stdout"))

    def left(self) -> list[str]:
        """Jobs that still run, or have ended otherwise than by a wish."""
        return [
            job.id
            for job in self.jobs()
            if self.state_of(job) is not State.CANCELLED or any(processes_of_containers(job.id))
        ]

    def state_of(self, job: JobDirectory) -> State:
        return job.report(JobPositions(MachineState.for_home(str(job.path.parents[1])))).state


@pytest.fixture
def submitted(tmp_path: Path) -> Submitted:
    return Submitted(tmp_path)


def eventually(found: Callable[[], object], what: str) -> None:
    until = time.monotonic() + LIMIT_S
    while not found():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=str)
def test_of_a_job_that_runs(submitted: Submitted, number: signal.Signals) -> None:
    process = submitted.start(*JOB)
    eventually(submitted.runs, "the program's output")
    process.send_signal(number)
    assert process.wait(LIMIT_S) == 255, submitted.log.read_text()
    assert len(submitted.jobs()) == 1
    eventually(lambda: not submitted.left(), "the job's end")


def test_of_a_job_that_is_being_handed_over(submitted: Submitted) -> None:
    process = submitted.start(*JOB)
    eventually(submitted.jobs, "the job's directory")
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == 255, submitted.log.read_text()
    eventually(lambda: not submitted.left(), "the job's end")


def test_by_closing_the_terminal(submitted: Submitted) -> None:
    ours, theirs = os.openpty()
    process = submitted.start_in(theirs, *JOB)
    os.close(theirs)
    eventually(submitted.runs, "the program's output")
    os.close(ours)
    assert process.wait(LIMIT_S) == 255
    eventually(lambda: not submitted.left(), "the job's end")


def test_nohup_is_obeyed() -> None:
    program = (
        "import os, signal; "
        "from howdah.compat.tony.commands import SubmitInterrupts; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "SubmitInterrupts(); os.kill(os.getpid(), signal.SIGHUP); print('goes on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout == "goes on\n", done.stderr


def test_a_signal_waits_until_there_is_a_job_to_end() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        ending = SubmitInterrupts()
        ending.delayed = True
        ending.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            ending.check()
        ending.delayed = False
        os.kill(os.getpid(), signal.SIGTERM)  # told twice: the first is being obeyed
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("arguments", [(), ("--nothing",), ("nothing.properties",)])
def test_azkaban_without_its_file_ends_as_theirs(submitted: Submitted, arguments: tuple[str, ...]) -> None:
    assert submitted.start("azkaban-job", *arguments).wait(LIMIT_S) == 255, submitted.log.read_text()
    assert "howdah: " in submitted.log.read_text()
