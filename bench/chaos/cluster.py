"""Controls the sandbox into which faults are injected, and runs the `howdah` command on it."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.chaos import full, slow_network
from bench.temp_home import HOWDAH
from howdah.client.clusters import engine_of
from howdah.client.recorded_events import recorded_events
from howdah.hadoop import conf as hadoop_conf
from howdah.sandbox import Sandbox
from howdah.sandbox.hadoop import Launcher
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.install import Java
from howdah.spec.events import Event
from howdah.storage.factory import filesystem

NODES, DATANODES = 3, 2
LIMIT_S = 180.0


class Cluster:
    """Runs three nodes, one ResourceManager, one NameNode and two DataNodes. As root each has a disk of its own.

    `directories` are those on HDFS that a cell writes to.
    """

    def __init__(self) -> None:
        self.sandbox = Sandbox(nodes=NODES, datanodes=DATANODES)
        self.directories = (f"/user/{getpass.getuser()}/.howdah", "/chaos")
        self._disks: list[Path] = []
        self._excludes = False

    def __enter__(self) -> Cluster:
        if os.geteuid() == 0:
            slow_network.prepare_loopback()
        self.sandbox.up()
        if os.geteuid() == 0:
            self._disks = full.small_disks(self.sandbox, NODES)
        conf = str(self.sandbox.conf_dir)
        os.environ["HADOOP_CONF_DIR"] = conf
        self.root = hadoop_conf.default_filesystem(hadoop_conf.load(conf))
        self.files = filesystem(self.root, conf)
        for directory in self.directories:
            self.files.mkdirs(f"{self.root}{directory}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        full.unmount(self._disks)
        self.sandbox.down()

    def start(self, job: Path, log: Path) -> subprocess.Popen[bytes]:
        """Start `howdah run` of a job file, with its output in `log`."""
        with log.open("wb") as out:
            command = [HOWDAH, "run", "--on", "yarn", "--logs", "all", str(job)]
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def howdah(self, *arguments: str) -> str:
        """Return what another `howdah` command prints; it may fail while the cluster does."""
        done = subprocess.run([HOWDAH, *arguments], capture_output=True, text=True, timeout=LIMIT_S)
        return done.stdout + done.stderr

    def status(self, job: str) -> dict[str, Any]:
        """Return the answer of `howdah status --json`, {} while there is none."""
        try:
            found = json.loads(self.howdah("status", "--json", job).partition("\nhowdah:")[0])
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def events(self, job: str) -> list[Event]:
        """Return the events of a job's log on HDFS."""
        (report,) = engine_of(job).describe(job)
        return list(recorded_events(report))

    def strikes(self, job: str) -> str:
        """Return the text of the job's node penalties on HDFS; "" for none."""
        uri = f"{self.root}{self.directories[0]}/strikes/{job}.json"
        return self.files.read_bytes(uri).decode() if self.files.exists(uri) else ""

    def dfsadmin(self, *arguments: str) -> None:
        """Run Hadoop's own administration tool for HDFS."""
        self._tool("org.apache.hadoop.hdfs.tools.DFSAdmin", arguments)

    def yarn(self, *arguments: str) -> None:
        """Run Hadoop's own `yarn application` or `yarn applicationattempt`."""
        self._tool("org.apache.hadoop.yarn.client.cli.ApplicationCLI", arguments)

    def _tool(self, main: str, arguments: Sequence[str]) -> None:
        known = HadoopRecord.load(self.sandbox.run_dir)
        assert known is not None
        java = Java(Path(known.java), known.java_release)
        launcher = Launcher(known.shape.hadoop, java, Path(known.jars), self.sandbox.run_dir)
        command = launcher.tool(main, arguments)
        subprocess.run(command, env=launcher.environment(), check=True, capture_output=True, timeout=LIMIT_S)

    def pid_of(self, daemon: str) -> int:
        """Return the pid of a daemon of the sandbox."""
        known = HadoopRecord.load(self.sandbox.run_dir)
        assert known is not None
        return known.processes[daemon].pid

    def is_up(self, daemon: str) -> bool:
        """Whether a daemon of the sandbox runs."""
        return any(one.up for one in self.sandbox.status() if one.name == daemon)

    def decommission(self, node: str, within_s: int) -> None:
        """Have the ResourceManager exclude a NodeManager, at once or after so long."""
        self._excludes = True
        self.sandbox.decommission(node, within_s)

    def heal(self) -> None:
        """Start all daemons that do not run, and wait until the nodes are ready."""
        if self._excludes:
            self.sandbox.recommission()
            self._excludes = False
        for daemon in self.sandbox.status():
            with contextlib.suppress(KeyError, ProcessLookupError):
                os.kill(self.pid_of(daemon.name), signal.SIGCONT)
            self.sandbox.start(daemon.name)
        self.sandbox.wait_nodes(NODES)


def processes(job: str, words: str) -> list[int]:
    """Return the pids of a job's containers whose command line contains `words`, oldest first."""
    mark, found = f"_{job.partition('_')[2]}_".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and mark in _read(entry / "environ"):
            command = _read(entry / "cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
            if words in command:
                found.append(int(entry.name))
    return sorted(found)


def executors(job: str) -> list[int]:
    """Those of a job's tasks: of the Pythons in a container that look like one the first, which the others outlive."""
    found: dict[str, int] = {}
    for pid in processes(job, "-m howdah.executor"):
        if b"python" in _read(Path(f"/proc/{pid}/cmdline")).partition(b"\0")[0]:
            container = re.search(rb"HOWDAH_CONTAINER=([^\0]*)", _read(Path(f"/proc/{pid}/environ")))
            found.setdefault(container[1].decode() if container else "", pid)
    return sorted(found.values())


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with."""
    pairs = _read(Path(f"/proc/{pid}/environ")).decode("utf-8", "replace").split("\0")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def node_of(pid: int) -> str:
    """Return the node of a process in a container, as `nm2`."""
    match = re.search(rb"/(nm\d+)/", _read(Path(f"/proc/{pid}/environ")))
    return match[1].decode() if match else ""


def until(found: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """Wait until `found()` is true, and return its value.

    Raises:
        TimeoutError: not within the limit.
    """
    deadline = time.monotonic() + limit_s
    while not (value := found()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {limit_s:.0f} s: {what}")
        time.sleep(0.05)
    return value


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""
