"""Finds out when the sandbox is usable: it asks the daemons over their own ports, and never waits for a fixed time."""

from __future__ import annotations

import getpass
import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from howdah.errors import EngineUnavailable
from howdah.sandbox.process import Process

READY_LIMIT_S = 300.0
_POLL_S = 0.1
_TAIL_LINES = 5
_ERROR = re.compile(r"\b(ERROR|FATAL)\b|^Error|^Exception in thread")

Watched = Mapping[str, tuple[Process, Path]]


def wait(what: str, ready: Callable[[], bool], watched: Watched) -> None:
    """Return when `ready()` is true.

    Raises:
        EngineUnavailable: a watched daemon (process, log) ended, or time is up.
    """
    started = time.monotonic()
    while not ready():
        for name, (process, log) in watched.items():
            if not process.alive():
                raise EngineUnavailable(f"{name} ended while starting; the end of {log}:\n{tail(log)}")
        if time.monotonic() - started > READY_LIMIT_S:
            logs = ", ".join(str(log) for _, log in watched.values())
            raise EngineUnavailable(f"{what} is not ready after {READY_LIMIT_S:.0f} s; logs are beside {logs}")
        time.sleep(_POLL_S)


def accepts_connections(address: str) -> bool:
    """Return whether a process listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def hdfs_is_writable(namenode_web: str, data_nodes: int = 1) -> bool:
    """Return whether HDFS is out of safe mode and has this many living DataNodes."""
    state = read_bean(namenode_web, "Hadoop:service=NameNode,name=FSNamesystemState")
    return bool(state.get("FSState") == "Operational" and state.get("NumLiveDataNodes", 0) >= data_nodes)


def active_nodes(rm_web: str, begun: Mapping[str, float]) -> int:
    """Return the number of NodeManagers that the ResourceManager counts as running; -1 if it does not answer. A
    NodeManager that it has not heard since `begun` (epoch seconds, by address) was killed there, and does not count."""
    # The REST API of Hadoop 3.3 and 3.4, run from the shaded jars, leaves out the outermost name in its JSON; the bean
    # ClusterMetrics may be ten seconds old.
    managers = read_bean(rm_web, "Hadoop:service=ResourceManager,name=RMNMInfo").get("LiveNodeManagers")
    if not managers:
        return -1
    running = [node for node in json.loads(managers) if node["State"] == "RUNNING"]
    return sum(node["LastHealthUpdate"] >= begun.get(node["NodeId"], 0.0) * 1000 for node in running)


def is_active(rm_web: str) -> bool:
    """Return whether this ResourceManager is the active one; the others are on standby."""
    return read_bean(rm_web, "Hadoop:service=ResourceManager,name=RMInfo").get("State") == "active"


def serves_names(namenode_web: str) -> bool:
    """Return whether this NameNode is the active one; the others are on standby."""
    return read_bean(namenode_web, "Hadoop:service=NameNode,name=NameNodeStatus").get("State") == "active"


_OPEN = ("MKDIRS", "SETPERMISSION")
SERVES = {"ResourceManager": is_active, "NameNode": serves_names}


def open_to_everyone(namenode_web: str) -> bool:
    """Let all users write to HDFS: /tmp and /logs as on every cluster (sticky), and homes under /user. Return whether
    the NameNode has answered in time. On a busy machine it may not, and can be asked again.

    Raises:
        EngineUnavailable: it refuses.
    """
    user = getpass.getuser()
    paths = ("/tmp", "/logs", "/user")  # noqa: S108 - HDFS's, not this machine's
    calls = [f"{path}?op={call}&permission=1777&user.name={user}" for path in paths for call in _OPEN]
    return all(_put_by_webhdfs(namenode_web, call) for call in calls)


def _put_by_webhdfs(namenode_web: str, call: str) -> bool:
    request = urllib.request.Request(f"http://{namenode_web}/webhdfs/v1{call}", method="PUT")
    try:
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
    except urllib.error.HTTPError as error:
        raise EngineUnavailable(f"WebHDFS at {namenode_web} did not do {call}: {error}") from error
    except OSError:
        return False
    return True


def read_bean(web: str, name: str) -> dict[str, Any]:
    """Return one of a daemon's management beans; {} if the daemon does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://{web}/jmx?qry={name}", timeout=10) as response:
            beans = json.load(response)["beans"]
    except (OSError, ValueError, KeyError):
        return {}
    return beans[0] if beans else {}


def tail(log: Path) -> str:
    """Return the last error in a daemon's log with its cause, or else the last lines."""
    try:
        lines = [line.rstrip()[:300] for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    errors = [line for line in lines if _ERROR.search(line) and "RECEIVED SIGNAL" not in line]
    causes = [line for line in lines if line.startswith("Caused by:")]
    shown = [*errors[-1:], *causes[-1:]] or lines[-_TAIL_LINES:] or ["(empty)"]
    return "\n".join(f"  {line}" for line in shown)
