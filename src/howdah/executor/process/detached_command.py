"""Runs a command that outlives this process: it is nobody's child, in a session of its own, and prints nothing."""

from __future__ import annotations

import os
from typing import Mapping, Sequence

from howdah.executor.process.process_tree import adopt_orphans


def run_detached(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start `argv`. This process must adopt orphans, and does so again afterwards.

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
    """Fork again, and let the first child end, so that the second one has no parent; this never returns."""
    try:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.execve(argv[0], list(argv), dict(environment))  # noqa: S606
    finally:
        os._exit(0)
