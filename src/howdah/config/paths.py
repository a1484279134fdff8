"""The record of a sandbox on this machine; where howdah keeps its files: `howdah.localfiles.own_directories`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from howdah.localfiles.own_directories import state_directory as state_directory  # engines of others import it here


def running_sandbox(record: Path) -> Mapping[str, Any]:
    """Return the content of a sandbox's record if the sandbox runs, of which some daemons may have ended; else {}."""
    try:
        found: dict[str, Any] = json.loads(record.read_text())
        pids = [entry["pid"] for entry in found["pids"].values()]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if any(Path(f"/proc/{pid}").exists() for pid in pids) else {}
