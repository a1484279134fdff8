"""Counts the bytes that went over the network in the network namespace of a process.

Linux counts by interface, not by process. The numbers are a task's own only in a namespace of its own, as a container
of Docker or runc has by default. Otherwise they are those of the whole node, and `whose` says so.
"""

from __future__ import annotations

import os
from typing import Mapping, Tuple

from howdah.executor.process import process_tree
from howdah.wire.launch_messages import OWN_NETWORK

TASK, NODE = "task", "node"
_MIB = 1 << 20


class NetworkUsage:
    """Counts in the namespace of process `pid`; `own` says that only this task is in the executor's namespace."""

    def __init__(self, pid: int, own: bool = False) -> None:
        self._path = f"/proc/{pid}/net/dev"
        # A bridge or bond repeats what its parts count.
        self._devices = {name for name in _interfaces() if os.path.exists(f"/sys/class/net/{name}/device")}
        self.whose = TASK if own or _namespace(str(pid)) != _namespace("self") else NODE

    def totals(self) -> Tuple[float, float]:
        """Return MiB received and sent since the namespace was made, by all interfaces but the loopback."""
        received = sent = 0
        for line in process_tree.read(self._path).decode("ascii", "replace").splitlines()[2:]:
            name, _, figures = line.partition(":")
            words = figures.split()
            if self._counts(name.strip()) and len(words) >= 9:
                received, sent = received + int(words[0]), sent + int(words[8])
        return received / _MIB, sent / _MIB

    def _counts(self, name: str) -> bool:
        return name != "lo" and (name in self._devices or not self._devices or self.whose == TASK)


def is_own(environment: Mapping[str, str]) -> bool:
    """Return whether the engine gave this container a network of its own.

    The engine says by a variable that it may have; then every interface is one end of a pair, whose other end has
    another number.
    """
    if not environment.get(OWN_NETWORK):
        return False
    links = [_interface_indices(name) for name in _interfaces() if name != "lo"]
    return bool(links) and all(index != other for index, other in links)


def _interfaces() -> Tuple[str, ...]:
    try:
        return tuple(os.listdir("/sys/class/net"))
    except OSError:
        return ()


def _interface_indices(name: str) -> Tuple[int, int]:
    index, other = (process_tree.read(f"/sys/class/net/{name}/{what}").strip() for what in ("ifindex", "iflink"))
    return (int(index), int(other)) if index.isdigit() and other.isdigit() else (0, 0)


def _namespace(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""
