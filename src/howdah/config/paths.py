"""Reads the record of a sandbox on this machine. `howdah.localfiles.own_directories` knows where howdah keeps its
files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from howdah.localfiles.own_directories import state_directory as state_directory  # engines of others import it here
from howdah.localfiles.process_identity import identity_of


def running_sandbox(record: Path) -> Mapping[str, Any]:
    """Return the content of a sandbox's record if the sandbox runs, even if some of its daemons have ended; else {}.
    After a restart of the machine other processes have the process ids of its daemons."""
    try:
        found: dict[str, Any] = json.loads(record.read_text())
        daemons = {int(entry["pid"]): str(entry["started"]) for entry in found["pids"].values()}
        return found if any(started and identity_of(pid) == started for pid, started in daemons.items()) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
