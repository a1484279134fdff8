"""Says in which order the files of checkpoints are stored: whenever that is interrupted, what names a checkpoint or
completes it is not there before the rest of it."""

from __future__ import annotations

import posixpath

from howdah.checkpoints.directory_snapshot import Stamp
from howdah.checkpoints.discovery import is_mark
from howdah.checkpoints.file_validation import STATE

NAMING = (STATE, "latest", "last", "best")
"""The files that name a checkpoint. They are fetched with any other, and stored last."""
_COMPLETING = (".metadata", "trainer_state.json")


def upload_order(name: str, stamp: Stamp, rule: str) -> tuple[bool, bool, int, bool, str]:
    """Return by what files are sorted: oldest first. Several that are written in some milliseconds may have one
    time."""
    last = posixpath.basename(name)
    return last in (*NAMING, *_COMPLETING), last.endswith(".index"), stamp.modified_ns, is_mark(name, rule), name
