"""Runs a command that outlives this process: it is detached, in a session of its own, and prints nothing."""

from __future__ import annotations

import os
from typing import Mapping, Sequence

from howdah.executor.process.process_tree import adopt_orphans


def run_detached(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start `argv`. This process must be one that adopts orphans; it stops that for the start, and adopts orphans again
    afterwards.

    Raises:
        OSError: the system has no room for a process.
    """
    adopt_orphans(False)
    try:
        child = os.fork()
        if child == 0:
            _exec_grandchild(argv, environment)
        os.waitpid(child, 0)
    finally:
        adopt_orphans()


def _exec_grandchild(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Fork again, and end the first child, so that the second one has no parent. This function never returns."""
    try:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.execve(argv[0], list(argv), dict(environment))  # noqa: S606
    finally:
        os._exit(0)
