"""Tests that no job is lost or runs twice when clients, masters and the supervisor are killed at random."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from howdah.engines.local.engine import LocalEngine
from howdah.spec import State
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import MachineState

HOWDAH = str(Path(sys.executable).with_name("howdah"))
JOB = """
name: nothing
master: {attempts: 50}
roles:
  worker: {command: [echo, done], resources: {memory: 64MiB, vcores: 1}}
"""
JOBS, AT_ONCE, KILLS, LIMIT_S = 24, 8, 40, 240.0


@dataclass
class Client:
    """One `howdah run`."""

    process: subprocess.Popen[str]
    killed: bool = False
    output: str = ""

    @property
    def job_id(self) -> str:
        """Return the job that was acknowledged; "" when none was."""
        told = [line.split()[1] for line in self.output.splitlines() if line.startswith("submitted ")]
        return told[0] if told else ""


@dataclass
class Machine:
    """Clients in a home of their own."""

    directory: Path
    clients: list[Client] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.directory / "state"

    def run(self) -> None:
        """To the end of the client."""
        command = [HOWDAH, "run", "--logs", "none", str(self.directory / "job.yaml")]
        environment = {**os.environ, "HOWDAH_HOME": str(self.directory), "HOWDAH_LOCAL_VCORES": "4"}
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        client = Client(process)
        self.clients.append(client)
        client.output, _ = process.communicate(timeout=LIMIT_S)

    def processes(self, program: str) -> list[int]:
        """Those of this home that run a program of howdah."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdigit() else ""
                if program in command and f"{self.home}/" in command:
                    found.append(int(entry.name))
        return found

    def kill_one(self, rng: random.Random) -> None:
        """A client, the supervisor or a master."""
        living = [client for client in self.clients if client.process.poll() is None]
        kind = rng.choice(("client", "supervisor/__main__.py", "howdah.master", "howdah.master"))
        if kind == "client" and living:
            client = rng.choice(living)
            client.killed = True
            client.process.kill()
        elif pids := self.processes(kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(pids), signal.SIGKILL)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "job.yaml").write_text(JOB)
    machine = Machine(tmp_path)
    yield machine
    for program in ("supervisor/__main__.py", "howdah.master"):
        for pid in machine.processes(program):
            os.kill(pid, signal.SIGKILL)


def test_nothing_is_lost(machine: Machine) -> None:
    rng, done = random.Random(13), threading.Event()

    def kill_now_and_then() -> None:
        for _ in range(KILLS):
            if done.wait(rng.uniform(0.1, 0.8)):
                return
            machine.kill_one(rng)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for running in [pool.submit(machine.run) for _ in range(JOBS)]:
                running.result()
    finally:
        done.set()
        killer.join()

    engine, state = LocalEngine({"local_home": str(machine.home)}), MachineState.for_home(str(machine.home))
    deadline = time.monotonic() + LIMIT_S
    while not all(report.state.ended for report in engine.describe()) or state.entries() or state.waiting():
        assert time.monotonic() < deadline, (engine.describe(), state.entries())
        time.sleep(0.1)
    reports = {report.id: report for report in engine.describe()}
    failed = [report for report in reports.values() if report.state is not State.SUCCEEDED]
    assert failed == []
    assert {client.job_id for client in machine.clients} - {""} <= set(reports)
    for client in machine.clients:
        if not client.killed:
            assert client.process.returncode == 0, client.output
    for job_id in reports:
        log = (machine.home / "jobs" / job_id / "events.jsonl").read_text()
        assert (log.count('"kind":"JobFinished"'), log.count('"kind":"Started"')) == (1, 1), log
    assert [path for name in SECRETS for path in (machine.home / "jobs").rglob(name)] == []
