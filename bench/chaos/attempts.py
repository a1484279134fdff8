"""Ends the master's container, and with it one attempt of the master: the job goes on under the next attempt."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bench.chaos import memory
from bench.chaos.cluster import Cluster, node_of, processes, until

MASTER = "-m howdah.master --engine"
TOO_MUCH = 1 << 30
"""More than twice what the container of a master has: the NodeManager ends it at its next look."""
DRAIN_S = 5
Inject = Callable[[Cluster, str, "subprocess.Popen[bytes]"], None]
"""It has the job's id, and the client that submitted it."""


def terminate_master(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the master alone."""
    _signal(os.kill, job)


def terminate_group(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the master and its helpers, as NodeManagers do."""
    _signal(lambda pid, number: os.killpg(os.getpgid(pid), number), job)


def _signal(send: Callable[[int, int], None], job: str) -> None:
    with contextlib.suppress(ProcessLookupError):
        send(_master(job), signal.SIGTERM)


def fail_attempt(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
    """Run `yarn applicationattempt -fail`."""
    _master(job)
    cluster.yarn("applicationattempt", "-fail", f"appattempt_{job.partition('_')[2]}_000001")


def exceed_memory(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Make the master use more memory than its container has, until the NodeManager has ended it."""
    pid = _master(job)
    with contextlib.suppress(ProcessLookupError):
        memory.inflate(pid, TOO_MUCH)
    until(lambda: not Path(f"/proc/{pid}").exists(), "the end of a master that uses too much memory")


def stop_manager(away_s: float) -> Inject:
    """Return a fault that ends the NodeManager of the master's node by SIGTERM and restarts it `away_s` later."""

    def inject(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
        node = node_of(_master(job))
        cluster.sandbox.stop(node)
        time.sleep(away_s)
        cluster.sandbox.start(node)

    return inject


def forget_containers(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
    """The NodeManager of the master's node is killed. It keeps no state: once back it removes the files of containers
    that still run, the master's among them."""
    node = node_of(_master(job))
    cluster.sandbox.stop(node, signal.SIGKILL)
    cluster.sandbox.start(node)


def decommission(within_s: int) -> Inject:
    """Return a fault that excludes the master's node, at once or within so many seconds."""

    def inject(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
        node = node_of(_master(job))
        cluster.decommission(node, within_s)
        until(lambda: not cluster.is_up(node), f"the end of {node}, which is decommissioned")

    return inject


def _master(job: str) -> int:
    return int(until(lambda: processes(job, MASTER), "the master")[-1])
