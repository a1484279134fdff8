"""Explains failures of system calls on files."""

from __future__ import annotations

from howdah.errors import StagingError


def explain(error: OSError, place: str) -> StagingError:
    """Return the error that explains the failure of a system call on the file `place`."""
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return StagingError(f"{place or error.filename}: {reason}")
