"""Runs the `howdah` command on this machine with its own home: jobs, their pages, history servers.

Waits until real programs have done something, and ends everything that works in a home, for tests/browser and
tests/faults.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from howdah.engines.local.engine import LocalEngine
from howdah.errors import HowdahError

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 120.0
"""Limit in seconds of each wait. A busy machine needs minutes for something that usually takes seconds; only a failing
test waits so long."""


class RunningCommand:
    """Runs a `howdah` command; its output goes to a file."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def link(self) -> str:
        """Return the link that the command prints, once it does: of a job's page, or of the history."""
        return str(self.prints(r"http://\S+#\S+", "a link"))

    @property
    def job(self) -> str:
        return str(self.prints(r"local-\d+-\d+-\w+", "a job's id"))

    def prints(self, pattern: str, what: str = "") -> str:
        """Wait until the output of the command matches `pattern`, and return the first match."""
        wanted = f"{what or pattern} in the output of {self.process.args}"
        return str(eventually(lambda: re.search(pattern, self.text), wanted, output=lambda: self.text)[0])

    def done(self) -> int:
        """Wait for the command's end and return its exit code."""
        return wait_for_exit(self.process, lambda: self.text)


class LocalJobs:
    """Runs commands of the program `howdah`; `directory` holds their home and their output."""

    def __init__(self, directory: Path, howdah: str = HOWDAH) -> None:
        self.directory = directory
        self._howdah = howdah
        self.environment = {**os.environ, "HOWDAH_HOME": str(directory / "home")}
        for name in ("HADOOP_CONF_DIR", "LANG", "LC_ALL", "LANGUAGE"):
            self.environment.pop(name, None)
        self._started: list[RunningCommand] = []

    def job_file(self, command: str | list[str], **job: Any) -> str:
        """Write a job file of one role, `worker`."""
        replicas = job.pop("replicas", 1)
        role = {"command": command, "replicas": replicas, "resources": {"memory": "128MiB"}}
        path = self.directory / f"job-{time.time_ns()}.yaml"
        path.write_text(json.dumps({"roles": {"worker": role}, "timeouts": {"stop": "1s"}, **job}))
        return str(path)

    def until_told(self, then: str) -> str:
        """Return a command that prints `begun`, and does `then` once `tell` is called."""
        return f"echo begun; while [ ! -e {self.directory}/told ]; do sleep 0.1; done; {then}"

    def tell(self) -> None:
        """Let all commands of `until_told` continue."""
        (self.directory / "told").touch()

    def master_of(self, job: str) -> int:
        """Return the pid of a job's master."""
        return int(json.loads((self.directory / "home/state/jobs" / job / "master.json").read_text())["pid"])

    def start(self, *arguments: str) -> RunningCommand:
        """Start a command, which is ended at the end of the test if it still runs."""
        running = RunningCommand([self._howdah, *arguments], self.environment, self.directory / f"out-{time.time_ns()}")
        self._started.append(running)
        return running

    def __call__(self, *arguments: str) -> str:
        """Run a command, which must succeed, and return its output."""
        running = self.start(*arguments)
        assert running.done() == 0, running.text
        return running.text

    def end_all(self) -> None:
        """End commands, jobs and servers that still run."""
        for running in self._started:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
                running.done()
        end_jobs(self.directory / "home")


def run_command(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return its result with its output."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, **how)
    except subprocess.TimeoutExpired as error:
        said = f"{error.stdout}\n{error.stderr}"
        raise AssertionError(f"not within {LIMIT_S:.0f} s: the end of {command}\n{said}") from error


def wait_for_exit(process: subprocess.Popen[Any], output: Callable[[], str]) -> int:
    """Wait for a process's end and return its exit code; a failure shows `output()`."""
    try:
        return process.wait(LIMIT_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise AssertionError(f"not within {LIMIT_S:.0f} s: the end of {process.args}\n{output()}") from error


def eventually(
    found: Callable[[], Any], what: str, limit_s: float = LIMIT_S, output: Callable[[], object] = str
) -> Any:
    """Wait until `found()` is true, and return its value. A failure names `what` is missing, and shows `output()`."""
    deadline = time.monotonic() + limit_s
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}\n{output()}"
        time.sleep(0.02)
    return value


@contextlib.contextmanager
def howdah_home(directory: Path) -> Iterator[Path]:
    """Give `directory` for HOWDAH_HOME; at the end, end everything that works there, as `end_jobs` does."""
    try:
        yield directory
    finally:
        end_jobs(directory)


def end_jobs(home: Path) -> None:
    """Cancel the jobs of HOWDAH_HOME `home`, and wait until no process works there; kill and report the processes that
    stay."""
    engine = LocalEngine({"local_home": str(home / "state")})

    def cancel(job: Path) -> None:
        with contextlib.suppress(HowdahError):  # its files, or the ledger, are damaged
            engine.cancel(job.name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(cancel, (home / "state" / "jobs").glob("local-*")))
    try:
        # It ends when no job is left. What lives longer shows a page: that of an ended job, or the history.
        eventually(
            lambda: not processes_in(home, "supervisor/__main__.py"), "the supervisor's end", output=lambda: _list(home)
        )
        for pid in processes_in(home):
            _kill(pid, signal.SIGTERM)
        eventually(lambda: not processes_in(home), f"the end of all that works in {home}", output=lambda: _list(home))
    finally:
        for pid in processes_in(home):
            _kill(pid, signal.SIGKILL)


def processes_in(directory: Path, program: str = "") -> list[int]:
    """Return the processes with a path below `directory` in their arguments or variables: howdah's own and users'
    programs. With `program`, return only those that have this text in their arguments."""
    path, found = re.compile(re.escape(os.fsencode(directory)) + rb"[/\0]"), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                arguments = (entry / "cmdline").read_bytes()
                if program.encode() in arguments and path.search(arguments + (entry / "environ").read_bytes()):
                    found.append(int(entry.name))
    return found


def command_of(pid: int) -> str:
    """Return a process's command line; "" if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _list(home: Path) -> str:
    return "\n".join(f"{pid} {command_of(pid)}" for pid in processes_in(home))


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
