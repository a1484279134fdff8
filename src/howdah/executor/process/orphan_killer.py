"""What an executor that is killed can't do itself: a process that outlives it kills all that its container has left.

It is nobody's child and in a session of its own, so that whoever kills the executor's tree or group misses it; it holds
the end of a pipe and nothing else, and goes when the pipe closes.
"""

from __future__ import annotations

import os
import signal
import time

from howdah.executor.process.process_tree import adopt_orphans, kill

_LIMIT_S = 5.0


def watch(mark: str) -> int:
    """Start the process; the descriptor is for `dismiss`. This process must have no descendants yet.

    `mark` is the `NAME=value` that everything in this container has in its environment.
    """
    adopt_orphans(False)  # an executor that was another task's before still does, and would take it for a stray
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


def dismiss(writer: int) -> None:
    """Send the process away: nothing is left to clean up."""
    try:
        os.write(writer, b".")
    except BrokenPipeError:  # it was killed
        return


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
        try:
            left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_marked(pid, mark)]
            if not left:
                return
            for pid in left:
                kill(pid, signal.SIGKILL)
        except OSError:  # the machine has too many open files: what was not seen may be there
            pass
        time.sleep(0.01)


def _is_marked(pid: int, mark: bytes) -> bool:
    if pid == os.getpid():
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # ended, or another user's
        return False
