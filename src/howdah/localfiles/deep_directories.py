"""Lets walks through directories recurse as deep as a path can be: programs copy directories into themselves."""

from __future__ import annotations

import sys

_DEEPEST = 10_000
"""A path has at most 4,096 bytes, and a walk a few calls for each part of it."""


def allow_deep_directories() -> None:
    """Raise this process's limit of recursion."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _DEEPEST))
