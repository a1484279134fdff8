"""Defines the faults: how each is injected into a running job, and how its damage is repaired."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass

from bench.chaos import attempts, full, memory
from bench.chaos.attempts import MASTER
from bench.chaos.cluster import Cluster, environment_of, executors, node_of, processes, until
from bench.chaos.slow_network import TUN, PortsOfProcess, SlowNetwork, ip, local_table_consulted_last

MOMENTS = ("start", "mid", "save", "end")
BACK_AFTER_S, AWAY_S, STOPPED_S, CUT_S, FULL_S, SLOW_S = 4.0, 30.0, 12.0, 40.0, 12.0, 30.0
ONE_WAY_S = 0.1
"""There and back are 200 ms."""
THERE_S = 10.0
"""At the very start, or the end, there may be no such process yet, or none any more."""
EXECUTOR, PROGRAM = "-m howdah.executor", "chaos/program.py"


@dataclass(frozen=True)
class Fault:
    """Describes a fault, and how to inject it."""

    name: str
    inject: Callable[[Cluster, str, subprocess.Popen[bytes]], None]
    """Makes it, on the job of that id whose client is that process."""
    passes: bool = False
    """Nothing starts again, and no retry is there to be used."""
    ends_attempt: bool = False
    """It ends the attempt of the master: no retry is used up, and nothing is held against a node."""


def _signal(words: str, number: int, back_s: float = 0.0) -> Callable[[Cluster, str, subprocess.Popen[bytes]], None]:
    def inject(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
        pids: list[int] = []
        with contextlib.suppress(TimeoutError):
            pids = until(lambda: executors(job) if words == EXECUTOR else processes(job, words), words, THERE_S)
        if not pids:
            return
        _send(pids[-1], number)
        if back_s:
            time.sleep(back_s)
            _send(pids[-1], signal.SIGCONT)

    return inject


def _daemon(name: str, number: int) -> Callable[[Cluster, str, subprocess.Popen[bytes]], None]:
    def inject(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
        victim = name
        if name == "nm":
            running = executors(job)
            victim = node_of(running[-1]) if running else "nm1"
        if number == signal.SIGKILL:
            cluster.sandbox.stop(victim, signal.SIGKILL)
            time.sleep(BACK_AFTER_S)
            cluster.sandbox.start(victim)
        else:
            pid = cluster.pid_of(victim)
            _send(pid, number)
            time.sleep(STOPPED_S)
            _send(pid, signal.SIGCONT)

    return inject


def _client(_: Cluster, __: str, client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.wait()


def _stopped_client(_: Cluster, __: str, client: subprocess.Popen[bytes]) -> None:
    client.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    client.send_signal(signal.SIGCONT)


def _worker_node(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
    """Lose a node with a worker, if possible one without the master."""
    masters = {node_of(pid) for pid in processes(job, MASTER)}
    nodes = [node_of(pid) for pid in until(lambda: executors(job), "an executor")]
    lose_node(cluster, job, next((node for node in reversed(nodes) if node not in masters), nodes[-1]))
    time.sleep(AWAY_S)


def _master_node(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
    lose_node(cluster, job, node_of(until(lambda: processes(job, MASTER), "the master")[-1]))
    time.sleep(AWAY_S)


def lose_node(cluster: Cluster, job: str, node: str) -> None:
    """Kill a node at once: its NodeManager, which reports nothing, and the job's processes, executors first."""
    cluster.sandbox.stop(node, signal.SIGKILL)
    there = [pid for pid in (*executors(job), *processes(job, "")) if node_of(pid) == node]
    for pid in there:
        _send(pid, signal.SIGKILL)


def _cut_manager(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Cut off the NodeManager of the last worker's node; its executor's messages have another address, and pass."""
    _cut(node_of(until(lambda: executors(job), "an executor")[-1]))


def _cut_master(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Cut the master off from all executors, the client and the ResourceManager, with its node's NodeManager."""
    _cut(node_of(until(lambda: processes(job, MASTER), "the master")[-1]))


def _cut(node: str) -> None:
    """Drop all messages to and from a node's address; its processes run on."""
    address = f"127.0.0.1{node[2:]}"
    rules = [("10", "to"), ("11", "from")]
    with local_table_consulted_last():
        for preference, way in rules:
            ip(f"rule add pref {preference} {way} {address} blackhole")
        time.sleep(CUT_S)
        for preference, _way in rules:
            ip(f"rule del pref {preference}")


def _cut_executor(_: Cluster, job: str, __: subprocess.Popen[bytes]) -> None:
    """Cut an executor off from the master alone; all other connections stay."""
    pids = until(lambda: executors(job), "an executor")
    port = urllib.parse.urlsplit(environment_of(pids[-1])["HOWDAH_MASTER"]).port or 0
    with SlowNetwork(f"ipproto tcp dport {port} or ipproto tcp sport {port}", lost=PortsOfProcess(pids[-1])):
        time.sleep(CUT_S)


def _cut_daemon(name: str) -> Callable[[Cluster, str, subprocess.Popen[bytes]], None]:
    def inject(cluster: Cluster, _: str, __: subprocess.Popen[bytes]) -> None:
        _cut_process(cluster.pid_of(name))

    return inject


def _cut_client(_: Cluster, __: str, client: subprocess.Popen[bytes]) -> None:
    _cut_process(client.pid)


def _cut_process(pid: int) -> None:
    """Drop all messages of a process, of its servers and its clients."""
    with SlowNetwork("ipproto tcp", lost=PortsOfProcess(pid)):
        time.sleep(CUT_S)


def _slow(_: Cluster, __: str, ___: subprocess.Popen[bytes]) -> None:
    """Delay every message in the cluster, and between it and the client."""
    with SlowNetwork(delay_s=ONE_WAY_S):
        time.sleep(SLOW_S)


def _full(words: str) -> Callable[[Cluster, str, subprocess.Popen[bytes]], None]:
    def inject(cluster: Cluster, job: str, _: subprocess.Popen[bytes]) -> None:
        pids = executors(job) if words == EXECUTOR else processes(job, words)
        victim = node_of(pids[-1]) if pids else "nm1"
        full.keep_full(cluster.sandbox.run_dir / victim, FULL_S)

    return inject


def _full_server(name: str) -> Callable[[Cluster, str, subprocess.Popen[bytes]], None]:
    """Return a fault that fills a server's disk; the server ends, or refuses work until told of new space."""

    def inject(cluster: Cluster, _: str, __: subprocess.Popen[bytes]) -> None:
        full.keep_full(cluster.sandbox.run_dir / full.SERVERS[name], FULL_S)
        cluster.sandbox.start(name)
        if name == "nn":
            cluster.dfsadmin("-safemode", "leave")

    return inject


def _full_hdfs(cluster: Cluster, _: str, __: subprocess.Popen[bytes]) -> None:
    """Leave no space in HDFS for the event log, checkpoints, snapshots and outputs."""
    cluster.dfsadmin("-setSpaceQuota", "1", *cluster.directories)
    time.sleep(FULL_S)
    cluster.dfsadmin("-clrSpaceQuota", *cluster.directories)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


_SLOW_NETWORK = [
    Fault("cut:executor", _cut_executor),
    Fault("cut:resourcemanager", _cut_daemon("rm")),
    Fault("cut:datanode", _cut_daemon("dn1")),
    Fault("cut:namenode", _cut_daemon("nn")),
    Fault("cut:client", _cut_client, passes=True),
    Fault("slow:network", _slow),
]
_ROOTS = [
    Fault("cut:nodemanager", _cut_manager),
    Fault("cut:master", _cut_master),
    *(_SLOW_NETWORK if TUN.exists() else []),
    Fault("full:disk", _full(EXECUTOR)),
    Fault("full:master", _full(MASTER)),
    Fault("full:resourcemanager", _full_server("rm")),
    Fault("full:datanode", _full_server("dn1")),
    Fault("full:namenode", _full_server("nn")),
]
"""Only root can make these."""
_ATTEMPTS = [
    Fault("term:master", attempts.terminate_master, passes=True, ends_attempt=True),
    Fault("term:mastergroup", attempts.terminate_group, passes=True, ends_attempt=True),
    Fault("fail:attempt", attempts.fail_attempt, passes=True, ends_attempt=True),
    *([Fault("memory:master", attempts.exceed_memory, passes=True, ends_attempt=True)] if memory.POSSIBLE else []),
    Fault("shutdown:masternode", attempts.stop_manager(AWAY_S), ends_attempt=True),
    Fault("restart:masternode", attempts.stop_manager(0.0), ends_attempt=True),
    Fault("forget:masternode", attempts.forget_containers, ends_attempt=True),
    Fault("decommission:masternode", attempts.decommission(0), ends_attempt=True),
    Fault("drain:masternode", attempts.decommission(attempts.DRAIN_S), ends_attempt=True),
]
_KILL, _STOP = signal.SIGKILL, signal.SIGSTOP
_ALL = [
    Fault("kill:user", _signal(PROGRAM, _KILL)),
    Fault("kill:executor", _signal(EXECUTOR, _KILL)),
    Fault("kill:master", _signal(MASTER, _KILL)),
    Fault("kill:nodemanager", _daemon("nm", _KILL)),
    Fault("kill:resourcemanager", _daemon("rm", _KILL)),
    Fault("kill:datanode", _daemon("dn1", _KILL)),
    Fault("kill:namenode", _daemon("nn", _KILL)),
    Fault("kill:client", _client, passes=True),
    Fault("kill:node", _worker_node),
    Fault("kill:masternode", _master_node),
    Fault("stop:user", _signal(PROGRAM, _STOP, STOPPED_S), passes=True),
    Fault("stop:executor", _signal(EXECUTOR, _STOP, STOPPED_S * 3)),
    Fault("stop:master", _signal(MASTER, _STOP, STOPPED_S), passes=True),
    Fault("stop:nodemanager", _daemon("nm", _STOP)),
    Fault("stop:resourcemanager", _daemon("rm", _STOP)),
    Fault("stop:datanode", _daemon("dn1", _STOP)),
    Fault("stop:namenode", _daemon("nn", _STOP)),
    Fault("stop:client", _stopped_client, passes=True),
    Fault("full:hdfs", _full_hdfs),
    *_ATTEMPTS,
    *(_ROOTS if os.geteuid() == 0 else []),
]
FAULTS = {fault.name: fault for fault in _ALL}
