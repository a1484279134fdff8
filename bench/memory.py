"""Measures memory of master and executor, idle and per container, and the master's CPU for a heartbeat."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.processes import cpu_s, of_job, proportional_mb, resident_mb
from bench.report import Report
from bench.simulated_executors import Gang
from bench.temp_home import HOWDAH, run, temp_home
from howdah.sandbox import Sandbox

MASTER_MB, EXECUTOR_MB, CONTAINER_KB = 45.0, 20.0, 20.0
TASKS = (2, 1000, 5000)
SETTLE_S, WINDOW_S, LIMIT_S = 5.0, 10.0, 60.0
REPLICAS = 2
JOB = f"""name: idle
roles:
  worker:
    replicas: {REPLICAS}
    command: sleep 300
    resources: {{ memory: 256MiB, vcores: 1 }}
"""


def measure(report: Report) -> None:
    """Measure idle processes on both engines, then simulated gangs."""
    with temp_home() as home:
        _idle(report, home, "local")
        with Sandbox() as sandbox:
            os.environ.update(sandbox.env())
            _idle(report, home, "yarn")
        sizes = [simulated_size(home, tasks) for tasks in TASKS]
    for tasks, (resident, beat_us) in zip(TASKS, sizes, strict=True):
        report.figure(f"master with {tasks} simulated containers: resident", [resident], "MB")
        if tasks > TASKS[0]:  # /proc counts in hundredths of a second: too coarse for a few heartbeats
            report.figure(f"master with {tasks} simulated containers: CPU of a heartbeat", [beat_us], "us")
    slope = (sizes[-1][0] - sizes[0][0]) * 1e3 / (TASKS[-1] - TASKS[0])
    report.target("master, for one more container", slope, CONTAINER_KB, " kB")


def _idle(report: Report, home: Path, engine: str) -> None:
    with idle_job(home, engine) as (master, executors):
        resident = report.figure(f"{engine}: master of 2 tasks, resident", [resident_mb(master)], "MB")
        report.figure(f"{engine}: master of 2 tasks, proportional", [proportional_mb(master)], "MB")
        sizes_mb = [resident_mb(pid) for pid in executors]
        report.figure(f"{engine}: executors, and what looks after them, resident", sizes_mb, "MB")
        whole = sum(map(proportional_mb, executors)) / REPLICAS
        report.figure(f"{engine}: all of howdah in a container, proportional", [whole], "MB")
    report.target(f"{engine}: master idle", resident, MASTER_MB, " MB")
    report.target(f"{engine}: largest executor", max(sizes_mb), EXECUTOR_MB, " MB")


@contextlib.contextmanager
def idle_job(home: Path, engine: str) -> Iterator[tuple[int, list[int]]]:
    """Run a job whose two programs sleep; give the pids of its master and of its executors, once they have settled."""
    (home / "idle.yaml").write_text(JOB)
    done = run([HOWDAH, "submit", "--on", engine, str(home / "idle.yaml")])
    id_ = done.find(r"^(application_\d+_\d+|local-\S+)")
    try:
        executors = _settled(id_)
        (master,) = of_job("howdah.master", id_)
        yield master, executors
    finally:
        run([HOWDAH, "cancel", id_])


def _settled(id_: str) -> list[int]:
    """Return the executors, once both programs have run for a while."""
    deadline = time.monotonic() + LIMIT_S
    while "RUNNING" not in run([HOWDAH, "status", "--json", id_]).output or len(_executors(id_)) < REPLICAS:
        if time.monotonic() > deadline:
            raise SystemExit(f"{id_} does not run after {LIMIT_S:.0f} s")
        time.sleep(0.2)
    time.sleep(SETTLE_S)
    return _executors(id_)


def _executors(id_: str) -> list[int]:
    return of_job("howdah.executor", id_)


def simulated_size(home: Path, tasks: int, window_s: float = WINDOW_S) -> tuple[float, float]:
    """Return resident MB, and microseconds of CPU for a heartbeat, of a master with this many simulated executors."""
    directory, key = home / f"simulated-{tasks}", secrets.token_bytes(32)
    directory.mkdir()
    with simulated_master(directory, tasks, key) as (pid, url, _):
        return asyncio.run(_observe(Gang(url, key, tasks), pid, window_s))


@contextlib.contextmanager
def simulated_master(directory: Path, tasks: int, key: bytes) -> Iterator[tuple[int, str, IO[str]]]:
    """Run a simulated master; give its pid, the address of its API, and its output."""
    command = [sys.executable, "-m", "bench.simulated_master", str(tasks), str(directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            print(key.hex(), file=process.stdin, flush=True)
            yield process.pid, process.stdout.readline().strip(), process.stdout
        finally:
            process.kill()


async def _observe(gang: Gang, pid: int, window_s: float) -> tuple[float, float]:
    began = time.monotonic()
    await gang.start()
    print(f"  {gang.count} simulated executors run after {time.monotonic() - began:.1f} s", flush=True)
    await asyncio.sleep(SETTLE_S)
    heartbeats, cpu = gang.heartbeats, cpu_s(pid)
    await asyncio.sleep(window_s)
    used = (cpu_s(pid) - cpu) / max(1, gang.heartbeats - heartbeats)
    resident = resident_mb(pid)
    await gang.stop()
    return resident, used * 1e6
