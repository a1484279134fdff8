"""Measures some ratios in a few minutes, and compares them with the kept ones: `python -m bench quick [--keep]`.

Each figure is divided by one of a rival or a yardstick that is measured beside it, in turns, so that another machine,
or a busy one, changes both. What comes out worse is measured once more, and all rounds count together.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import os
import platform
import resource
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import comparison, local, yarn_first_line
from bench.comparison import QUIET_SHARE, Kept, Ratio, Verdict, compare, keep_ratios
from bench.heartbeats import SimulatedExecutors
from bench.memory import CONTAINER_KB, idle_job, simulated_master, simulated_size
from bench.processes import ran_s, resident_mb
from bench.report import alternate, ratios, wait_for_quiet
from bench.rivals import torchx
from bench.temp_home import HOWDAH, run, temp_home
from howdah.sandbox import Sandbox

Rounds = dict[str, list[float]]
QUIET_LIMIT_S = 10.0
BARE = [sys.executable, "-c", "pass"]
LOADED = [sys.executable, "-c", "import asyncio, json, ssl; print(flush=True); input()"]
STARTS, LOCAL_JOBS, YARN_JOBS, YARN_WARM_UPS, IDLE_JOBS = 41, 15, 7, 2, 2
INTERPRETERS = 3
"""Interpreters that the yardstick of a local job starts one after the other: a client, a master, an executor."""
CONTAINERS = (2, 2000)
EXECUTORS, WAIT_S, SETTLE_S, WINDOWS, WINDOW_S = 2000, 1, 3.0, 11, 2.5
YARDSTICK_TURNS = 5000

STARTUP, STARTUP_RIVAL = "startup: CPU of --help / python -c pass", "startup: CPU of --help / torchx --help"
LOCAL, LOCAL_RIVAL = "local: job / three interpreters", "local: job / torchx's"
CLIENT, SUBMIT = "yarn: client start to first line / shell's", "yarn: RM submit to first line / shell's"
CONTAINER, HEARTBEAT = "memory: one more container / 20 kB", "heartbeats: CPU of one / yardstick"
MASTER, EXECUTOR = "memory: {} master / idle Python", "memory: {} executor / idle Python"
TIMES = (LOCAL, LOCAL_RIVAL, CLIENT, SUBMIT)
"""The ratios of times: a measurement beside other work does not replace what is kept of them."""


@dataclass(frozen=True)
class Group:
    """Ratios that are measured together."""

    measure: Callable[[Path], Rounds]
    """Measures them, with a HOWDAH_HOME, and returns the rounds by name."""
    names: tuple[str, ...]
    """Their names."""


def main(*, keep: bool) -> int:
    """Measure, print and compare; with `keep`, keep what was measured. Return 1 if something is worse."""
    began, kept, idle = time.monotonic(), comparison.load(), list[float]()
    rounds = _measure(GROUPS, {}, idle)
    verdicts = _compare(kept, rounds)
    worse = {verdict.name for verdict in verdicts if verdict.failed}
    if not keep and (again := [group for group in GROUPS if worse & set(group.names)]):
        print(f"measured once more: {', '.join(sorted(worse))}", flush=True)
        verdicts = _compare(kept, _measure(again, rounds, idle))
    _print(verdicts, rounds)
    print(f"{time.monotonic() - began:.0f} s")
    if min(idle) < QUIET_SHARE:
        print(f"the cores had other work, {1 - min(idle):.0%} of them: ratios of times are rough, and are not kept")
    if keep:
        now = Kept(_ratios(rounds), datetime.date.today().isoformat(), _machine(), min(idle))
        comparison.save(keep_ratios(kept, now, TIMES))
        print(f"kept in {comparison.FILE}")
        return 0
    if kept.ratios and (dict(kept.machine) != _machine() or kept.idle < QUIET_SHARE):
        print(f"kept on {dict(kept.machine)}, {kept.idle:.0%} idle; this is {_machine()}")
    failed = [verdict.name for verdict in verdicts if verdict.failed]
    print(f"worse, to be explained or mended: {'; '.join(failed)}" if failed else "nothing is worse")
    return 1 if failed else 0


def _measure(groups: Iterable[Group], before: Rounds, idle: list[float]) -> Rounds:
    """Add the rounds of these groups to those before, and to `idle` the share of the cores that was idle."""
    for group in groups:
        idle.append(share := wait_for_quiet(QUIET_LIMIT_S))
        print(f"{group.names[0].partition(':')[0]}: {share:.0%} of {os.cpu_count()} cores idle", flush=True)
        with temp_home() as home:
            for name, values in group.measure(home).items():
                before.setdefault(name, []).extend(values)
    return before


def _ratios(rounds: Mapping[str, list[float]]) -> dict[str, Ratio]:
    return {name: Ratio.of(values) for name, values in rounds.items()}


def _compare(kept: Kept, rounds: Rounds) -> list[Verdict]:
    absent = () if STARTUP_RIVAL in rounds else (STARTUP_RIVAL, LOCAL_RIVAL)  # TorchX can't be installed everywhere
    return compare(kept.ratios, _ratios(rounds), absent)


def _print(verdicts: Iterable[Verdict], rounds: Rounds) -> None:
    for verdict in verdicts:
        values = rounds.get(verdict.name, [])
        spread = f"[{min(values):.3f} - {max(values):.3f}]  n={len(values)}" if values else ""
        print(f"  {verdict.kind:8s}{verdict.name:46s} {verdict.text:34s} {spread}")


def _machine() -> dict[str, str | int]:
    return {"cores": os.cpu_count() or 0, "machine": platform.machine(), "python": platform.python_version()}


def _startup(home: Path) -> Rounds:
    """Measure CPU, because these commands wait for nothing, and other work changes their times."""
    commands = {"howdah": [HOWDAH, "--help"], "bare": BARE} | _rival("--help")
    times = _measure_each(commands, STARTS, home, lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]))
    return _against(times, "howdah", {"bare": STARTUP, "torchx": STARTUP_RIVAL})


def _local(home: Path) -> Rounds:
    (home / "job.yaml").write_text(local.JOB)
    chain = ["sh", "-c", "; ".join([f"{sys.executable} -c 'import asyncio, json, ssl'"] * INTERPRETERS)]
    commands = {"howdah": [HOWDAH, "run", str(home / "job.yaml")], "chain": chain}
    commands |= _rival("run", "-s", "local_cwd", "utils.sh", "true")
    times = _measure_each(commands, LOCAL_JOBS, home, time.monotonic)
    return _against(times, "howdah", {"chain": LOCAL, "torchx": LOCAL_RIVAL})


def _rival(*arguments: str) -> dict[str, list[str]]:
    program = torchx()
    return {"torchx": [program, *arguments]} if program else {}


def _measure_each(
    commands: Mapping[str, list[str]], rounds: int, home: Path, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Return by how much `clock` moves on while each command runs, in turns."""

    def spend(command: list[str]) -> float:
        began = clock()
        run(command, {"TMPDIR": str(home)}, cwd=home)  # TorchX makes its log directory there
        return clock() - began

    subjects = {name: partial(spend, command) for name, command in commands.items()}
    return alternate(subjects, rounds, warm_ups=2, quiet_limit_s=0.0)


def _against(times: Mapping[str, list[float]], ours: str, names: Mapping[str, str]) -> Rounds:
    """Return the ratios, round by round, of `ours` and each other subject, under these names."""
    return {name: ratios(times[ours], times[other]) for other, name in names.items() if other in times}


def _yarn(home: Path) -> Rounds:
    """Measure first lines and idle jobs on one sandbox, whose start takes as long as they do."""
    with Sandbox() as sandbox:
        os.environ.update(sandbox.env())
        ours, theirs = yarn_first_line.measure_runs(home, sandbox, YARN_JOBS, YARN_WARM_UPS, quiet_limit_s=0.0)
        sizes = _idle_sizes(home, "yarn", 1)
    return {
        CLIENT: ratios([one.from_client for one in ours], [one.from_client for one in theirs]),
        SUBMIT: ratios([one.from_submit for one in ours], [one.from_submit for one in theirs]),
        **sizes,
    }


def _memory(home: Path) -> Rounds:
    few, many = (simulated_size(home, tasks, window_s=0.0)[0] for tasks in CONTAINERS)
    each_kb = (many - few) * 1e3 / (CONTAINERS[1] - CONTAINERS[0])
    return _idle_sizes(home, "local", IDLE_JOBS) | {CONTAINER: [each_kb / CONTAINER_KB]}


def _idle_sizes(home: Path, engine: str, jobs: int) -> Rounds:
    """Return resident memory over that of a Python that has imported some modules and waits."""
    found: Rounds = {MASTER.format(engine): [], EXECUTOR.format(engine): []}
    for _ in range(jobs):
        with idle_job(home, engine) as (master, executors), _loaded_python() as python:
            assert python.stdout is not None
            python.stdout.readline()
            yardstick = resident_mb(python.pid)
            found[MASTER.format(engine)].append(resident_mb(master) / yardstick)
            found[EXECUTOR.format(engine)].append(max(map(resident_mb, executors)) / yardstick)
            python.communicate("\n")
    return found


def _loaded_python() -> subprocess.Popen[str]:
    return subprocess.Popen(LOADED, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _heartbeats(home: Path) -> Rounds:
    directory, key = home / "heartbeats", secrets.token_bytes(32)
    directory.mkdir()
    with simulated_master(directory, EXECUTORS, key) as (pid, url, _):
        executors = SimulatedExecutors(url, key, EXECUTORS, WAIT_S)
        executors.start()
        executors.run(SETTLE_S)
        found = [_heartbeat_s(executors, pid) / _yardstick_s() for _ in range(WINDOWS)]
        executors.close()
    return {HEARTBEAT: found}


def _heartbeat_s(executors: SimulatedExecutors, pid: int) -> float:
    """Return the master's CPU seconds for a heartbeat."""
    heartbeats, cpu = executors.heartbeats, ran_s(pid)
    executors.run(WINDOW_S)
    return (ran_s(pid) - cpu) / (executors.heartbeats - heartbeats)


def _yardstick_s() -> float:
    """Return the CPU seconds of a turn of pure Python that does what any receiver of a signed message does."""
    message = {"task": "worker:17", "sequence": 4711, "usage": {"memory_mib": 812.5, "cpu": 0.98}, "phase": "running"}
    turns = []
    for _ in range(3):
        began = time.process_time()
        for _ in range(YARDSTICK_TURNS // 3):
            text = json.dumps(message).encode()
            hmac.new(b"k" * 32, text, hashlib.sha256).hexdigest()
            json.loads(text)
        turns.append(time.process_time() - began)
    return statistics.median(turns) * 3 / YARDSTICK_TURNS


GROUPS = (
    Group(_startup, (STARTUP, STARTUP_RIVAL)),
    Group(_local, (LOCAL, LOCAL_RIVAL)),
    Group(_yarn, (CLIENT, SUBMIT, MASTER.format("yarn"), EXECUTOR.format("yarn"))),
    Group(_memory, (MASTER.format("local"), EXECUTOR.format("local"), CONTAINER)),
    Group(_heartbeats, (HEARTBEAT,)),
)
