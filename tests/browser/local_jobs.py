"""Runs the `howdah` command on this machine with a home of its own: jobs, their pages, history servers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 120.0


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
        return str(eventually(lambda: re.findall(r"http://\S+#\S+", self.text), "a link")[0])

    @property
    def job(self) -> str:
        return str(eventually(lambda: re.findall(r"local-\d+-\d+-\w+", self.text), "an id")[0])

    def done(self) -> int:
        """Wait for the command's end and return its exit code."""
        return self.process.wait(LIMIT_S)


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
        """Start a command; what still runs at the end of the test is ended."""
        running = RunningCommand([self._howdah, *arguments], self.environment, self.directory / f"out-{time.time_ns()}")
        self._started.append(running)
        return running

    def __call__(self, *arguments: str) -> str:
        """Run a command, which must succeed, and return its output."""
        running = self.start(*arguments)
        assert running.done() == 0, running.text
        return running.text

    def end_all(self) -> None:
        """End commands and jobs that still run."""
        for running in self._started:
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
                running.process.wait(LIMIT_S)
        for job in {job for running in self._started for job in re.findall(r"local-\d+-\d+-\w+", running.text)}:
            self("cancel", job)


def eventually(found: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """Wait until `found()` is true, and return its value."""
    deadline = time.monotonic() + limit_s
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.1)
    return value
