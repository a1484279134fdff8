"""Tests that signals which end TonY's command end its local job."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_tree import find

from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.jobs import JobPositions, job_report
from howdah.engines.processes import processes_of_containers
from howdah.spec import State
from howdah.supervisor.state import MachineState

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 60.0
MEMORY = ("--conf", "tony.am.memory=128m")
JOB = ("tony", "local", "--executes", "echo it runs; exec sleep 600", *MEMORY)
TALKING = ("tony", "local", "--executes", "while echo it talks; do sleep 0.1; done", *MEMORY)
# A shell's part: the terminal is the session's own, so that closing it is told to the command.
OWNING = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


class Submitted:
    """TonY's command with a home of its own, and the jobs that it has made there."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.log = directory, directory / "out"
        self.environment = {**os.environ, "HOWDAH_HOME": str(directory), "TONY_CONF_DIR": str(directory)}

    def start(self, *arguments: str, **how: Any) -> subprocess.Popen[bytes]:
        with self.log.open("wb") as out:
            return self._start([HOWDAH, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out, **how)

    def start_in(self, terminal: int, *command: str) -> subprocess.Popen[bytes]:
        return self._start([*command], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)

    def _start(self, command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(command, env=self.environment, cwd=self.directory, **how)
        return self.process

    def eventually(self, found: Callable[[], object], what: str) -> None:
        until = time.monotonic() + LIMIT_S
        while not found():
            assert time.monotonic() < until, f"{what} did not come: {self.printed()}"
            time.sleep(0.02)

    def ends(self) -> None:
        """The command and its job end, as TonY's did."""
        self.eventually(lambda: self.process.poll() is not None, "the command's end")
        assert self.process.returncode == 255, self.printed()
        self.eventually(lambda: not self.left(), "the job's end")
        assert len(self.jobs()) == 1, self.printed()

    def printed(self) -> str:
        return self.log.read_text() if self.log.exists() else "(to a terminal)"

    def jobs(self) -> list[JobDirectory]:
        return [JobDirectory(path) for path in find(self.directory, "jobs/local-*")]

    def runs(self) -> bool:
        return any(path.read_bytes() == b"it runs\n" for path in find(self.directory, "stdout"))

    def left(self) -> list[str]:
        """Jobs that still run, or have ended otherwise than by a wish."""
        return [
            job.id
            for job in self.jobs()
            if self.state_of(job) is not State.CANCELLED or any(processes_of_containers(job.id))
        ]

    def state_of(self, job: JobDirectory) -> State:
        return job_report(job, JobPositions(MachineState.for_home(str(job.path.parents[1])))).state


@pytest.fixture
def submitted(tmp_path: Path) -> Iterator[Submitted]:
    submitted = Submitted(tmp_path)
    yield submitted
    submitted.process.kill()
    submitted.process.wait()
    for job in submitted.left():
        subprocess.run([HOWDAH, "cancel", job], env=submitted.environment, timeout=LIMIT_S)


def read_until(terminal: int, text: bytes) -> None:
    read = b""
    while text not in read:
        assert select.select([terminal], [], [], LIMIT_S)[0], read
        read += os.read(terminal, 1 << 16)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=str)
def test_of_a_job_that_runs(submitted: Submitted, number: signal.Signals) -> None:
    process = submitted.start(*JOB)
    submitted.eventually(submitted.runs, "the program's output")
    process.send_signal(number)
    submitted.ends()


def test_of_a_job_that_is_being_handed_over(submitted: Submitted) -> None:
    process = submitted.start(*JOB)
    submitted.eventually(submitted.jobs, "the job's directory")
    process.send_signal(signal.SIGTERM)
    submitted.ends()


def test_by_closing_the_terminal(submitted: Submitted) -> None:
    ours, theirs = os.openpty()
    submitted.start_in(theirs, sys.executable, "-c", OWNING, HOWDAH, *JOB)
    os.close(theirs)
    submitted.eventually(submitted.runs, "the program's output")
    os.close(ours)
    submitted.ends()


def test_by_closing_the_terminal_of_which_the_error_comes_before_the_signal(submitted: Submitted) -> None:
    ours, theirs = os.openpty()
    process = submitted.start_in(theirs, HOWDAH, *TALKING)
    os.close(theirs)
    read_until(ours, b"it talks")
    os.close(ours)
    output = Path(f"/proc/{process.pid}/fd/1")
    submitted.eventually(lambda: process.poll() or str(output.readlink()) == os.devnull, "the error")
    process.send_signal(signal.SIGHUP)
    submitted.ends()


def test_nohup_is_obeyed(submitted: Submitted) -> None:
    process = submitted.start(*JOB, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    submitted.eventually(submitted.runs, "the program's output")
    status = Path(f"/proc/{process.pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    assert int(ignored.split()[1], 16) & 1 << signal.SIGHUP - 1
    process.send_signal(signal.SIGTERM)
    submitted.ends()


@pytest.mark.parametrize("arguments", [(), ("--nothing",), ("nothing.properties",)])
def test_azkaban_without_its_file_ends_as_theirs(submitted: Submitted, arguments: tuple[str, ...]) -> None:
    assert submitted.start("azkaban-job", *arguments).wait(LIMIT_S) == 255, submitted.printed()
    assert "howdah: " in submitted.printed()
