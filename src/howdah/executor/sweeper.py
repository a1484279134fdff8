"""What an executor that is killed can't do itself: a process that outlives it kills all that its container has left.

It is nobody's child and in a session of its own, so that whoever kills the executor's tree or group misses it; it holds
the end of a pipe and nothing else, and goes when the pipe closes.
"""

from __future__ import annotations

import os
import signal
import time

from howdah.executor.processes import kill

_LIMIT_S = 5.0


def watch(mark: str) -> int:
    """Start it; to be called before this process adopts orphans.

    `mark` is the `NAME=value` that everything in this container has in its environment. Writing to the descriptor that
    is returned sends the process away: all is in order.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.fork() == 0:
                os.close(writer)
                _outlive(reader, mark.encode())
        finally:
            os._exit(0)
    os.close(reader)
    os.waitpid(child, 0)
    return writer


def _outlive(reader: int, mark: bytes) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    if not os.read(reader, 1):
        _sweep(mark)


def _sweep(mark: bytes) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_marked(pid, mark)]
        if not left:
            return
        for pid in left:
            kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _is_marked(pid: int, mark: bytes) -> bool:
    if pid == os.getpid():
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:  # ended, or another user's
        return False
