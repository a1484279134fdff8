"""Detects kills by the kernel for lack of memory: every control group counts them."""

from __future__ import annotations

import os
from typing import Optional, Tuple

from howdah.executor.process import process_tree
from howdah.spec.message import message

_ROOT = "/sys/fs/cgroup"
_MIB = 1 << 20


class OomDetector:
    """Reads the control group (version 1 or 2) of this process."""

    def __init__(self) -> None:
        self._directory, self._v2 = _own_directory()
        self._kills_before = self.kills() or 0

    def kills(self) -> Optional[int]:
        """Return `oom_kill` of memory.oom_control or memory.events: kills so far; None without such a count."""
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
        return process_tree.read(os.path.join(self._directory, name)).decode("ascii", "replace")


def least_limit_mib() -> Optional[int]:
    """Return the smallest memory limit of our control group and of its parents; None without a limit."""
    directory, v2 = _own_directory()
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


def _own_directory() -> Tuple[str, bool]:
    """Find the directory of our control group, and whether it is version 2, in /proc/self/cgroup (cgroups(7))."""
    lines = [line.split(":", 2) for line in os.fsdecode(process_tree.read("/proc/self/cgroup")).splitlines()]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            return f"{_ROOT}/memory{path}", False
    for _, controllers, path in lines:
        if not controllers:
            return f"{_ROOT}{path}", True
    return "", False
