"""Failures of system calls on files, in words."""

from __future__ import annotations

from howdah.errors import StagingError


def explain(error: OSError, place: str) -> StagingError:
    """A system call's failure in words."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return StagingError(f"{place or error.filename}: {reason}")
