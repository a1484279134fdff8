"""Starts a process that outlives a killed executor, and then kills everything that is left of its container.

It is a double-forked process in its own session, so killing the executor's process tree or group does not kill it. It
holds the reading end of a pipe and nothing else, and acts when the pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from howdah.executor.process.process_tree import adopt_orphans, kill

_MAX_KILLING_S = 5.0


def watch(mark: str) -> int:
    """Start the process, and return the descriptor for `dismiss`. This process must have no descendants yet.

    `mark` is a `NAME=value` in the environment of every process in this container.
    """
    adopt_orphans(False)  # a reassigned executor still adopts orphans, and would kill it as one
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.fork() == 0:
                os.close(writer)
                _wait_for_end(reader, mark.encode())
        finally:
            os._exit(0)
    os.close(reader)
    os.waitpid(child, 0)
    return writer


def dismiss(writer: int) -> None:
    """End the process, because nothing is left to clean up. 0 means that there is none."""
    with contextlib.suppress(BrokenPipeError):  # the process was killed
        if writer:
            os.write(writer, b".")


def _wait_for_end(reader: int, mark: bytes) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    if not os.read(reader, 1):
        _kill_marked(mark)


def _kill_marked(mark: bytes) -> None:
    deadline = time.monotonic() + _MAX_KILLING_S
    while time.monotonic() < deadline:
        try:
            left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_marked(pid, mark)]
            if not left:
                return
            for pid in left:
                kill(pid, signal.SIGKILL)
        except OSError:  # the machine has too many open files: some processes may not have been seen
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
