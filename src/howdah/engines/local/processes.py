"""Whether a process that was started earlier still lives, and what is left of a container.

A pid alone names nobody for long: with the time it started it does. Everything that runs in a container carries the
container's name in its environment, which it cannot lose by forking.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "HOWDAH_CONTAINER"


def start_of(pid: int) -> int:
    """When a process started, in clock ticks since boot (field 22 of proc(5) stat); 0 when it is gone or a zombie.

    Raises:
        OSError: this process cannot look, because it has too many open files for instance.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def alive(pid: int, start: int) -> bool:
    """Whether the very process that started then is running."""
    return start != 0 and start_of(pid) == start


def marked(prefix: str) -> Iterator[int]:
    """Processes of containers whose name starts with `prefix`.

    Raises:
        OSError: this process cannot look, because it has too many open files for instance.
    """
    wanted = f"{MARK}={prefix}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            variables = b"\0" + (entry / "environ").read_bytes()
            if b"\0" + wanted in variables:
                yield int(entry.name)


def kill_marked(prefix: str, limit: float = 2.0) -> int:
    """KILL them until none is left, at most `limit` seconds; how many were found.

    Raises:
        OSError: this process could not look in all that time.
    """
    deadline, killed = time.monotonic() + limit, set()
    while found := list(marked(prefix)):
        for pid in found:
            killed.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return len(killed)
