"""Callbacks by which a long action reports its progress, and those for callers that have no screen."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""`progress(what, done_bytes, total_bytes)`, called from time to time during an upload."""
Notice = Callable[[str], None]
"""`notice(sentence)`, called before a step that takes time."""


def no_progress(*_: object) -> None:
    """Show no progress."""


def no_notice(_: str) -> None:
    """Show no notice."""


on_moved: Notice = no_notice
"""Called with the name of each object that a move within an object store has copied; a helper process replaces it."""
