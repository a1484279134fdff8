"""Lets walks through directories recurse to the depth of the longest path: programs copy directories into
themselves."""

from __future__ import annotations

import sys

_DEEPEST = 10_000
"""The recursion limit: a path has at most 4,096 bytes, and a walk makes a few calls for each part of it."""


def allow_deep_directories() -> None:
    """Raise this process's limit of recursion."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
