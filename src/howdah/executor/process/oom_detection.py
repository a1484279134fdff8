"""Detects kills by the kernel for lack of memory: every control group counts them."""

from __future__ import annotations

import os
from typing import Dict, Optional, Tuple, Union

from howdah.executor.process import process_tree
from howdah.spec.message import message

_ROOT = "/sys/fs/cgroup"
_MIB = 1 << 20
_COUNTERS = (
    *("memory.events", "memory.max", "memory.peak"),
    *("memory.oom_control", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
)


class OomDetector:
    """Reads the control group (version 1 or 2) of a process; without a pid, of this one."""

    def __init__(self, pid: int = 0) -> None:
        self._directory, self._v2 = _directory_of(pid or "self")
        self._kept: Dict[str, str] = {}
        self._kills_before = 0 if pid else self.kills() or 0

    def keep(self) -> None:
        """Keep the counters as they are now, because the group is about to be removed."""
        self._kept = {name: text for name in _COUNTERS for text in [self._read(name)] if text}

    def kills(self) -> Optional[int]:
        """Return the number of kills so far, `oom_kill` of memory.oom_control or memory.events; None without such a
        count."""
        text = self._read("memory.events" if self._v2 else "memory.oom_control")
        for line in text.splitlines():
            word, _, number = line.partition(" ")
            if word == "oom_kill":
                return int(number)
        return None

    def verdict(self, killed: bool) -> Optional[str]:
        """Return a sentence if a process was killed since this object was made, with the limit where there is one.

        A group without a limit may be shared with strangers: then a kill counts only if our program was `killed`.
        """
        if (self.kills() or 0) <= self._kills_before:
            return None
        limit = self._number("memory.max" if self._v2 else "memory.limit_in_bytes")
        used = self._number("memory.peak" if self._v2 else "memory.max_usage_in_bytes") or limit
        if limit is None or used is None or limit >= 1 << 60:
            return "killed by the kernel, which was out of memory" if killed else None
        template = "killed by the kernel: used {used} MiB of {limit} MiB"
        return message(template, used=used // _MIB, limit=limit // _MIB)

    def _number(self, name: str) -> Optional[int]:
        text = self._read(name).strip()
        return int(text) if text.isdigit() else None

    def _read(self, name: str) -> str:
        if name in self._kept:
            return self._kept[name]
        return process_tree.read(os.path.join(self._directory, name)).decode("ascii", "replace")


def least_limit_mib() -> Optional[int]:
    """Return the smallest memory limit of our control group and of its parents; None without a limit."""
    directory, v2 = _directory_of("self")
    limits = []
    while directory.startswith(_ROOT):
        text = process_tree.read(os.path.join(directory, "memory.max" if v2 else "memory.limit_in_bytes")).strip()
        if text.isdigit() and int(text) < 1 << 60:
            limits.append(int(text) // _MIB)
        directory = os.path.dirname(directory)
    return min(limits, default=None)


def available_mib() -> Optional[int]:
    """Return the memory that the node can still give without swapping (proc(5), MemAvailable)."""
    words = process_tree.read("/proc/meminfo").partition(b"MemAvailable:")[2].split()
    return int(words[0]) // 1024 if words else None


def _directory_of(pid: Union[int, str]) -> Tuple[str, bool]:
    """Return the directory of a process's control group, and whether it is of version 2, as its /proc/PID/cgroup
    says."""
    lines = [line.split(":", 2) for line in os.fsdecode(process_tree.read(f"/proc/{pid}/cgroup")).splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return _as_mounted(f"{_ROOT}/memory", path), False
    for _, controllers, path in lines:
        if not controllers:
            return _as_mounted(_ROOT, path), True
    return "", False


def _as_mounted(root: str, path: str) -> str:
    """Return the directory of the group `path` below `root`. In a container without a cgroup namespace `path` is the
    node's path of the group, while the group itself is mounted at `root`."""
    return root + path if os.path.isdir(root + path) else root
