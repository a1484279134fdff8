"""When the sandbox is usable: asked of the daemons themselves, over their own ports, never by waiting a fixed time."""

from __future__ import annotations

import getpass
import json
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from howdah.errors import EngineUnavailable
from howdah.sandbox.process import Process

READY_LIMIT_S = 120.0
_POLL_S = 0.1
_TAIL_LINES = 5

Watched = Mapping[str, tuple[Process, Path]]


def wait(what: str, ready: Callable[[], bool], watched: Watched, limit_s: float = READY_LIMIT_S) -> None:
    """Return when `ready()`; raise EngineUnavailable when a watched daemon (process, log) ends or time runs out."""
    started = time.monotonic()
    while not ready():
        for name, (process, log) in watched.items():
            if not process.alive():
                raise EngineUnavailable(f"{name} ended while starting; the end of {log}:\n{tail(log)}")
        if time.monotonic() - started > limit_s:
            raise EngineUnavailable(f"{what} is not ready after {limit_s:.0f} s; logs are beside {_logs(watched)}")
        time.sleep(_POLL_S)


def _logs(watched: Watched) -> str:
    return ", ".join(str(log) for _, log in watched.values())


def accepts(address: str) -> bool:
    """Whether something listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def hdfs_is_writable(namenode_web: str) -> bool:
    """Out of safe mode and with a DataNode alive (the NameNode's FSNamesystemState bean)."""
    query = "Hadoop:service=NameNode,name=FSNamesystemState"
    beans = get_json(f"http://{namenode_web}/jmx?qry={query}").get("beans")
    state = beans[0] if beans else {}
    return bool(state.get("FSState") == "Operational" and state.get("NumLiveDataNodes", 0) >= 1)


def open_to_everyone(namenode_web: str) -> None:
    """Give any user a place in HDFS: /tmp and /logs as on every cluster (sticky), and homes under /user."""
    user = getpass.getuser()
    for path in ("/tmp", "/logs", "/user"):  # noqa: S108 - HDFS's, not this machine's
        _webhdfs_put(namenode_web, f"{path}?op=MKDIRS&permission=1777&user.name={user}")
        _webhdfs_put(namenode_web, f"{path}?op=SETPERMISSION&permission=1777&user.name={user}")


def _webhdfs_put(namenode_web: str, call: str) -> None:
    request = urllib.request.Request(f"http://{namenode_web}/webhdfs/v1{call}", method="PUT")
    try:
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
    except OSError as error:
        raise EngineUnavailable(f"WebHDFS at {namenode_web} did not do {call}: {error}") from error


def active_nodes(rm_web: str) -> int:
    """How many NodeManagers the ResourceManager counts as running; -1 when it does not answer."""
    metrics = get_json(f"http://{rm_web}/ws/v1/cluster/metrics").get("clusterMetrics")
    return int(metrics["activeNodes"]) if metrics else -1


def get_json(url: str) -> dict[str, Any]:
    """The object a daemon answers, {} when it gives none yet."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - http:// by every caller
            answer = json.load(response)
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines that say something: Java's stack frames left out."""
    return "\n".join(list(_telling(log))[-lines:]) or "(empty)"


def _telling(log: Path) -> Iterator[str]:
    try:
        text = log.read_text(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("at ", "... ", "SHUTDOWN_MSG", "/***", "***")):
            yield f"  {line[:300]}"
