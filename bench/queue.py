"""Measures 1,000 queued jobs on this machine: memory, CPU, their order, and what is lost when all processes die."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

from bench.processes import cpu_s, of_home, proportional_mb
from bench.report import Report
from bench.temp_home import HOWDAH, run, temp_home
from howdah.engines.job_directory import JobDirectory
from howdah.engines.local.engine import LocalEngine
from howdah.spec import JobSpec, Resources, Role, StagedJob, State
from howdah.supervisor.state import MachineState

WAITING, COMMANDS, FIRST, MORE = 1000, 20, 30, 20
LOOK_S = 20.0
MEMORY_MB, CPU_SHARE = 100.0, 0.02
JOB = "name: waits\nretries: 1\nroles: {worker: {command: ['true'], resources: {memory: 64MiB}}}\n"


def measure(report: Report) -> None:
    """Measure the queue with its running job: that one's master, executor and program are counted, too."""
    with temp_home() as home:
        os.environ["HOWDAH_LOCAL_MEMORY_MIB"] = "64"
        (home / "job.yaml").write_text(JOB)
        engine = LocalEngine({})
        try:
            _measure(report, engine, home)
        finally:
            _kill_all(home)


def _measure(report: Report, engine: LocalEngine, home: Path) -> None:
    holder = _submit(engine, "sleep 3600")
    while engine.describe(holder)[0].state is not State.RUNNING:
        time.sleep(0.1)
    alone = sum(map(proportional_mb, of_home(home)))
    times, ids = [], []
    for _ in range(WAITING - COMMANDS):
        since = time.perf_counter()
        ids.append(_submit(engine, "true"))
        times.append(time.perf_counter() - since)
    commands = [run([HOWDAH, "submit", str(home / "job.yaml")]) for _ in range(COMMANDS)]
    ids += [done.output.strip() for done in commands]
    time.sleep(2.0)
    pids = of_home(home)
    before, since = sum(map(cpu_s, pids)), time.perf_counter()
    time.sleep(LOOK_S)
    used = (sum(map(cpu_s, pids)) - before) / (time.perf_counter() - since)
    memory = sum(map(proportional_mb, pids))
    report.figure("submitting a job, in a program that submits many", times)
    report.figure("howdah submit, process start to exit", [done.seconds for done in commands])
    report.figure(f"memory of {len(pids)} processes, one job runs", [alone], "MB")
    report.figure("the same, 1,000 wait", [memory], "MB")
    report.target("memory, 1,000 jobs wait", memory, MEMORY_MB, " MB")
    report.target("CPU, 1,000 jobs wait", report.figure("CPU, share of a core", [used], ""), CPU_SHARE)
    since = time.perf_counter()
    reports = {one.id: one for one in engine.describe()}
    report.figure("all of them described", [time.perf_counter() - since])
    assert [reports[job_id].state for job_id in ids] == [State.PENDING] * WAITING
    engine.cancel(holder)
    while not engine.describe(ids[FIRST])[0].state.ended:
        time.sleep(0.5)
    begun = [JobDirectory(home / "state" / "jobs" / job_id).view().started for job_id in ids[:FIRST]]
    report.target("of the first 30, out of order", sum(a >= b for a, b in itertools.pairwise(begun)), 0)
    _kill_all(home)
    while not engine.describe(ids[FIRST + MORE])[0].state.ended:
        time.sleep(0.5)
    states = {one.id: one.state for one in engine.describe()}
    kept = sum(states.get(job_id) in (State.PENDING, State.RUNNING, State.SUCCEEDED) for job_id in ids)
    report.target("lost when all processes are killed", WAITING - kept, 0)


def _submit(engine: LocalEngine, command: str) -> str:
    job = JobSpec({"worker": Role(command, resources=Resources(64))}, retries=1)
    return engine.submit(engine.plan(StagedJob(job, engine.home)), {})


def _kill_all(home: Path) -> None:
    """Kill all processes at once, so that none notices the end of another."""
    supervisor = Path(MachineState.for_home(str(home / "state")).supervisor_lock)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in [int(supervisor.read_text()), *of_home(home)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
