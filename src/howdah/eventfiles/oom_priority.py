"""Limits the memory of processes that read files for a program which must survive, and prefers them as OOM victims.

The rule: a container is killed as a whole when all its processes together are too large. So a process that reads beside
a master may use only a part of the container's memory, and exits by itself when it uses more (docs/curves.md).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

CONTAINER_VARIABLE, BUDGET_VARIABLE = "HOWDAH_MEMORY_MIB", "HOWDAH_CURVES_MIB"
"""The container's memory, if there is a container; and the user's limit for event files in memory, if set."""
DEFAULT_MIB, MIN_MIB, MAX_PROCESSES = 384, 16, 8
PREFER_AS_OOM_VICTIM = 500
"""Of 1000: the kernel counts half of the machine's memory on top of the process's (proc(5), oom_score_adj)."""


def memory_budget() -> int:
    """Return how many bytes of event files may be kept: by default a quarter of the container."""
    container = _mib(CONTAINER_VARIABLE)
    default = max(MIN_MIB, container // 4) if container else DEFAULT_MIB
    return (_mib(BUDGET_VARIABLE) or default) << 20


def memory_limit() -> int:
    """Return the bytes at which the event-file service exits: half of the container; 0 for no limit."""
    container, budget_mib = _mib(CONTAINER_VARIABLE), _mib(BUDGET_VARIABLE)
    return max(container // 2, budget_mib + 64 if budget_mib else 0) << 20 if container else 0


def max_processes() -> int:
    """Return how many processes may read at once: one more, of about 40 MB, for each GiB of the container."""
    container = _mib(CONTAINER_VARIABLE)
    return min(MAX_PROCESSES, 1 + container // 1024) if container else MAX_PROCESSES


def resident_bytes() -> int:
    """Return the resident bytes of this process; 0 if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def prefer_as_oom_victim() -> None:
    """Let the kernel kill this process rather than its parent when memory runs out."""
    with contextlib.suppress(OSError):  # another system, or an administrator forbids the change
        file = Path("/proc/self/oom_score_adj")
        if int(file.read_text()) < PREFER_AS_OOM_VICTIM:
            file.write_text(str(PREFER_AS_OOM_VICTIM))


def _mib(variable: str) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else 0
