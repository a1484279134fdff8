"""Measures how soon failures are noticed and repaired on a real cluster, and what the master's decisions cost.

A gang of eight whose program, or one of whose executors, or whose master is killed, or one of whose nodes is lost as a
whole: NodeManager, executors and programs at once, so that nobody tells of it. Beside it, here: decisions a second of
the real `step`, for the heartbeats of a job of a thousand tasks. FAILURES=node measures lost nodes alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.chaos.attempts import MASTER
from bench.chaos.cluster import NODES, Cluster, executors, node_of, processes, until
from bench.chaos.faults import lose_node
from bench.report import Report
from bench.temp_home import temp_home
from howdah.errors import StagingError
from howdah.master.decisions.actions import StatusReceived
from howdah.spec import JobSpec, Role
from howdah.spec.events import Event, GangRestarted, Started, TookOver
from howdah.spec.usage import Usage
from howdah.testing import Gang
from howdah.wire.messages import Phase, Status

GANG, ROUNDS = 8, 3
EXIT_S, LOST_NODE_S, RESTART_S, SPARE_S, TAKEOVER_S, EVENTS = 1.0, 10.0, 5.0, 10.0, 15.0, 20_000
COMMAND = "echo up $HOWDAH_TASK $HOWDAH_EPOCH; while :; do sleep 1; done"


def measure(report: Report) -> None:
    """Measure decisions first, which need no cluster, then failures."""
    if os.environ.get("FAILURES") != "node":
        _without_nodes(report)
    with temp_home() as home, Cluster() as cluster:
        lost = [_node_lost(cluster, home, f"node-{n}") for n in range(ROUNDS)]
    seen = report.figure("a node is lost → decided", [seen for seen, _ in lost])
    report.target("lost node → decision", seen, LOST_NODE_S, " s")
    report.figure(f"decided → all {GANG} run again, its tasks elsewhere", [again for _, again in lost])


def _without_nodes(report: Report) -> None:
    report.target(
        "decisions a second", report.figure("events a second, 1,000 tasks", [_events() for _ in range(ROUNDS)], "/s"),
        EVENTS, "/s", at_least=True,
    )  # fmt: skip
    with temp_home() as home, Cluster() as cluster:
        restarts = [_killed(cluster, home, f"restart-{n}", 0, _program) for n in range(ROUNDS)]
        spares = [_killed(cluster, home, f"spare-{n}", 1, _executor) for n in range(ROUNDS)]
        takeovers = [_taken_over(cluster, home, f"takeover-{n}") for n in range(ROUNDS)]
    seen = report.figure("a program is killed → decided", [seen for seen, _ in restarts])
    report.target("exit → decision", seen, EXIT_S, " s")
    again = report.figure(f"decided → all {GANG} programs run again, in place", [again for _, again in restarts])
    report.target("restart in place", again, RESTART_S, " s")
    report.figure("an executor is killed → decided", [seen for seen, _ in spares])
    spare = report.figure("decided → all run again, one in a spare's container", [again for _, again in spares])
    report.target("replacement by a spare", spare, SPARE_S, " s")
    taken = report.figure("the master is killed → the next one is at work", takeovers)
    report.target("takeover, no program restarted", taken, TAKEOVER_S, " s")


def _events() -> float:
    """Return heartbeats of a running gang with changing usage, as `step` takes them."""
    gang = Gang(JobSpec(roles={"worker": Role("w", replicas=1000)}))
    gang.form()
    heartbeats = [
        StatusReceived(
            gang.now + number / 500,
            Status(
                *(f"worker:{number % 1000}", 1, 1, 10 + number, Phase.RUNNING, "h", 1),
                ports={"main": 4000},
                program_pid=7,
                usage=Usage(memory_mib=100.0 + number % 50, peak_mib=200.0, cpu=0.5),
            ),
        )
        for number in range(40_000)
    ]
    gang.did.clear()
    began = time.process_time()
    for heartbeat in heartbeats:
        gang.feed(heartbeat)
    return len(heartbeats) / (time.process_time() - began)


def _start(cluster: Cluster, home: Path, name: str, spares: int) -> tuple[str, subprocess.Popen[bytes]]:
    role = {"command": COMMAND, "replicas": GANG, "spares": spares, "resources": {"memory": "128MiB"}}
    job, log = home / f"{name}.json", home / f"{name}.log"
    job.write_text(json.dumps({"name": name, "retries": 3, "roles": {"worker": role}, "timeouts": {"stop": "1s"}}))
    client = cluster.start(job, log)
    until(lambda: all(f"up worker:{n} 1" in log.read_text() for n in range(GANG)), "the gang")
    if spares:
        until(lambda: f"worker:{GANG} has a container" in log.read_text(), "the spare")
        time.sleep(2.0)
    found = re.search(r"application_\d+_\d+", log.read_text())
    assert found is not None
    return found[0], client


def _end(cluster: Cluster, job: str, client: subprocess.Popen[bytes]) -> list[Event]:
    cluster.howdah("cancel", job)
    client.wait()
    return cluster.events(job)


def _program(job: str) -> int:
    return processes(job, "while :; do sleep")[-1]


def _executor(job: str) -> int:
    return executors(job)[-2]


def _killed(cluster: Cluster, home: Path, name: str, spares: int, victim: Callable[[str], int]) -> tuple[float, float]:
    """Return the seconds from the kill to the decision, and from there until all run again."""
    job, client = _start(cluster, home, name, spares)
    log, pid, killed_at = home / f"{name}.log", victim(job), time.time()
    os.kill(pid, signal.SIGKILL)
    _up_again(log)
    return _again(_end(cluster, job, client), killed_at)


def _node_lost(cluster: Cluster, home: Path, name: str) -> tuple[float, float]:
    """Return the same times after the loss of a node of some tasks, but not of the master."""
    job, client = _start(cluster, home, name, 0)
    (master,) = processes(job, MASTER)
    node = next(node for node in map(node_of, executors(job)) if node != node_of(master))
    killed_at = time.time()
    lose_node(cluster, job, node)
    _up_again(home / f"{name}.log")
    found = _again(_end(cluster, job, client), killed_at)
    cluster.sandbox.start(node)
    cluster.sandbox.wait_nodes(NODES)
    return found


def _up_again(log: Path) -> None:
    """Return when all run in any later epoch: the loss of a node's tasks is not noticed all at once."""
    again = [re.compile(rf"up worker:{n} ([2-9]|\d\d)") for n in range(GANG)]
    until(lambda: all(each.search(log.read_text()) for each in again), "the gang again")


def _again(events: list[Event], killed_at: float) -> tuple[float, float]:
    decided = next(event.time for event in events if isinstance(event, GangRestarted))
    started = max(event.time for event in events if isinstance(event, Started))
    return decided - killed_at, started - decided


def _started(cluster: Cluster, job: str) -> int:
    try:
        return sum(isinstance(event, Started) for event in cluster.events(job))
    except StagingError:  # there is none yet
        return 0


def _taken_over(cluster: Cluster, home: Path, name: str) -> float:
    job, client = _start(cluster, home, name, 0)
    until(lambda: _started(cluster, job) == GANG, "the event log on HDFS")  # before, the next master begins anew
    (master,), programs = processes(job, "-m howdah.master --engine"), processes(job, "while :; do sleep")
    killed_at = time.time()
    os.kill(master, signal.SIGKILL)
    until(lambda: cluster.status(job).get("notes"), "the next master")
    if processes(job, "while :; do sleep") != programs:
        raise SystemExit(f"{job}: programs were started again")
    events = _end(cluster, job, client)
    return next(event.time for event in events if isinstance(event, TookOver)) - killed_at
