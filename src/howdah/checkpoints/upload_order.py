"""Defines the order in which the files of checkpoints are stored: if that is interrupted, a file that names or
completes a checkpoint never exists without the rest of it."""

from __future__ import annotations

import posixpath

from howdah.checkpoints.directory_snapshot import Stamp
from howdah.checkpoints.discovery import is_mark
from howdah.checkpoints.file_validation import STATE

NAMING = (STATE, "latest", "last", "best")
"""The files that name a checkpoint. They are fetched with any other, and stored last."""
_COMPLETING = (".metadata", "trainer_state.json")


def upload_order(name: str, stamp: Stamp, rule: str) -> tuple[bool, bool, int, bool, str]:
    """Return the key by which files are sorted, oldest first. Files that are written within some milliseconds may have
    the same time."""
    last = posixpath.basename(name)
    return last in (*NAMING, *_COMPLETING), last.endswith(".index"), stamp.modified_ns, is_mark(name, rule), name
