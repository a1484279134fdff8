"""Tells whether a process that was started earlier still runs, and which processes of a container are left.

A pid is used again after a while; a pid together with its start time is not. Every process of a container has the
container's name in its environment, and so have all processes that it forks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from howdah.localfiles.process_identity import start_of as start_of

MARK = "HOWDAH_CONTAINER"
KILL_LIMIT_S = 2.0


def alive(pid: int, start: int) -> bool:
    """Return whether exactly the process that started at `start` is running."""
    return start != 0 and start_of(pid) == start


def processes_of_containers(prefix: str) -> Iterator[int]:
    """Yield the processes of containers whose name starts with `prefix`.

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


def kill_marked(prefix: str) -> int:
    """KILL the processes of these containers as `kill_all` does; return how many were found.

    Raises:
        OSError: this process could not look in all that time.
    """
    return kill_all(lambda: processes_of_containers(prefix))


def kill_all(find: Callable[[], Iterable[int]]) -> int:
    """KILL the processes that `find` returns until there are none, for at most KILL_LIMIT_S; return how many were
    found."""
    deadline, killed = time.monotonic() + KILL_LIMIT_S, set[int]()
    while found := list(find()):
        killed.update(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    return len(killed)
