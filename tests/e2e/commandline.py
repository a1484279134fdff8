"""Runs the `howdah` command on a real cluster, and asks the cluster and the machine about its jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.hadoop import conf
from howdah.sandbox import Sandbox
from howdah.sandbox.hadoop import Launcher
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.install import Java
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import FileSystem

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 240.0
"""A busy machine needs minutes for something that usually takes seconds; only a failing test waits so long."""


@dataclass(frozen=True)
class Done:
    """Holds the result of an ended command."""

    code: int
    out: bytes
    err: bytes
    seconds: float

    @property
    def text(self) -> str:
        return (self.out + self.err).decode("utf-8", "replace")

    @property
    def job(self) -> str:
        found = re.search(r"application_\d+_\d+", self.text)
        assert found, self.text
        return found[0]


class Running:
    """Runs a command; its output goes to files."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str], log: Path) -> None:
        self._out, self._err, self._begun = log, log.with_suffix(".err"), time.monotonic()
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen([HOWDAH, *arguments], env=environment, stdout=out, stderr=err)

    @property
    def text(self) -> str:
        return self._out.read_text(errors="replace")

    def says(self, words: str) -> str:
        """Return the output once it contains `words`."""
        return eventually(lambda: text if words in (text := self.text) else "", words)

    @property
    def job(self) -> str:
        return re.findall(r"application_\d+_\d+", self.says("submitted application"))[0]

    def done(self, limit_s: float = LIMIT_S) -> Done:
        code = self.process.wait(limit_s)
        return Done(code, self._out.read_bytes(), self._err.read_bytes(), time.monotonic() - self._begun)


class CommandLine:
    """Runs commands on the cluster. `directory` takes job files and output; `files` is its file system, `root`."""

    def __init__(self, sandbox: Sandbox, directory: Path) -> None:
        self.sandbox, self.directory = sandbox, directory
        self._started: list[Running] = []
        self.root = conf.default_filesystem(conf.load(str(sandbox.conf_dir)))
        self.files: FileSystem = filesystem(self.root, str(sandbox.conf_dir))

    def job_file(
        self,
        command: str | list[str],
        *,
        replicas: int = 1,
        gpus: int = 0,
        memory: str = "128MiB",
        role: Mapping[str, Any] | None = None,
        **job: Any,
    ) -> str:
        """Write a job file of one role, `worker`."""
        resources = {"memory": memory, "gpus": gpus}
        roles = {"worker": {"command": command, "replicas": replicas, "resources": resources, **(role or {})}}
        path = self.directory / f"job-{time.time_ns()}.yaml"
        path.write_text(json.dumps({"roles": roles, "timeouts": {"stop": "1s"}, **job}))
        return str(path)

    def start(self, *arguments: str, **environment: str) -> Running:
        running = Running(arguments, {**os.environ, **environment}, self.directory / f"out-{time.time_ns()}")
        self._started.append(running)
        return running

    def end_all(self) -> None:
        """End what still runs, and the jobs it submitted."""
        left, self._started = [one for one in self._started if one.process.poll() is None], []
        for running in left:
            running.process.kill()
            running.process.wait()
            for job in set(re.findall(r"application_\d+_\d+", running.text)):
                self("cancel", job)

    def __call__(self, *arguments: str, **environment: str) -> Done:
        return self.start(*arguments, **environment).done()

    def run(self, command: str | list[str], *options: str, **job: Any) -> Running:
        """Run `howdah run` with a job of one role."""
        return self.start("run", "--on", "yarn", *options, self.job_file(command, **job))

    def status(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json", job).out)
        return found

    def yarn_says(self, job: str) -> str:
        """Return the ResourceManager's diagnostics, as `yarn application -status` shows them."""
        web = next(daemon.web for daemon in self.sandbox.status() if daemon.name == "rm")
        with urllib.request.urlopen(f"http://{web}/ws/v1/cluster/apps/{job}", timeout=60) as answer:
            return str(json.load(answer)["app"]["diagnostics"])

    def dfsadmin(self, *arguments: str) -> None:
        """Run Hadoop's own administration tool for HDFS."""
        self.hadoop_tool("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def yarn(self, *arguments: str) -> None:
        """Run Hadoop's own `yarn application …`."""
        self.hadoop_tool("org.apache.hadoop.yarn.client.cli.ApplicationCLI", *arguments)

    def hadoop_tool(self, main: str, *arguments: str) -> None:
        """Run the class `main`, which must succeed."""
        known = HadoopRecord.load(self.sandbox.run_dir)
        assert known
        java = Java(Path(known.java), known.java_release)
        launcher = Launcher(known.shape.hadoop, java, Path(known.jars), self.sandbox.run_dir)
        command = launcher.tool(main, list(arguments))
        done = subprocess.run(command, env=launcher.environment(), capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]

    def left(self, job: str, limit_s: float = 30.0) -> list[str]:
        """Return the job's processes that live on for longer than `limit_s`, and its files in /tmp that are not
        outputs."""
        deadline = time.monotonic() + limit_s
        while (found := processes(job)) and time.monotonic() < deadline:
            time.sleep(0.1)
        beside = [entry.uri for entry in self.files.children(f"{self.root}/tmp") if job in entry.uri]
        return [*map(command_of, found), *beside]


def processes(job: str, command: str = "") -> list[int]:
    """Return the processes in a job's containers, oldest first: YARN names the container in each one's environment."""
    mark = f"_{job.partition('_')[2]}_".encode()
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    ours = [pid for pid in sorted(found) if mark in read(pid, "environ")]
    return [pid for pid in ours if command in command_of(pid)]


def command_of(pid: int) -> str:
    return read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")


def read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has just ended
        return b""


def eventually(found: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """Wait until `found()` is true, and return its value."""
    deadline = time.monotonic() + limit_s
    while not (value := found()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.1)
    return value
