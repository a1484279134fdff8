"""Tests that no job is lost or runs twice when clients, masters and the supervisor are killed at random."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from local_jobs import HOWDAH, RunningCommand, eventually, processes_in

from howdah.engines.local.engine import LocalEngine
from howdah.spec import State
from howdah.supervisor.masters import SECRETS
from howdah.supervisor.state import MachineState

JOB = """
name: nothing
master: {attempts: 50}
roles:
  worker: {command: [echo, done], resources: {memory: 64MiB, vcores: 1}}
"""
JOBS, AT_ONCE, KILLS = 24, 8, 40


@dataclass
class Client:
    """One `howdah run`."""

    running: RunningCommand
    killed: bool = False

    @property
    def job_id(self) -> str:
        """Return the job that was acknowledged; "" when none was."""
        told = [line.split()[1] for line in self.running.text.splitlines() if line.startswith("submitted ")]
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
        client = Client(RunningCommand(command, environment, self.directory / f"out-{time.time_ns()}"))
        self.clients.append(client)
        client.running.done()

    def kill_one(self, rng: random.Random) -> None:
        """A client, the supervisor or a master."""
        living = [client for client in self.clients if client.running.process.poll() is None]
        kind = rng.choice(("client", "supervisor/__main__.py", "howdah.master", "howdah.master"))
        if kind == "client" and living:
            client = rng.choice(living)
            client.killed = True
            client.running.process.kill()
        elif pids := processes_in(self.home, kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(pids), signal.SIGKILL)


@pytest.fixture
def machine(howdah_home: Path) -> Machine:
    howdah_home.mkdir()
    (howdah_home / "job.yaml").write_text(JOB)
    return Machine(howdah_home)


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
    eventually(
        lambda: all(report.state.ended for report in engine.describe()) and not state.entries() and not state.waiting(),
        "the end of all jobs",
        output=lambda: f"{engine.describe()}\n{state.entries()}",
    )
    reports = {report.id: report for report in engine.describe()}
    failed = [report for report in reports.values() if report.state is not State.SUCCEEDED]
    assert failed == []
    assert {client.job_id for client in machine.clients} - {""} <= set(reports)
    for client in machine.clients:
        if not client.killed:
            assert client.running.process.returncode == 0, client.running.text
    for job_id in reports:
        log = (machine.home / "jobs" / job_id / "events.jsonl").read_text()
        assert (log.count('"kind":"JobFinished"'), log.count('"kind":"Started"')) == (1, 1), log
    assert [path for name in SECRETS for path in (machine.home / "jobs").rglob(name)] == []
