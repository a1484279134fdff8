"""The directory of jobs, the sandbox and the history on this machine; caches: `howdah.storage.content_cache`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from howdah.localfiles.howdah_home import howdah_home


def state_directory(environment: Mapping[str, str]) -> Path:
    """Return $HOWDAH_HOME/state, else $XDG_STATE_HOME/howdah, else ~/.local/state/howdah."""
    if own := howdah_home(environment):
        return own / "state"
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get("XDG_STATE_HOME") or home / ".local/state") / "howdah"


def running_sandbox(record: Path) -> Mapping[str, Any]:
    """Return the content of a sandbox's record if the sandbox runs, of which some daemons may have ended; else {}."""
    try:
        found: dict[str, Any] = json.loads(record.read_text())
        pids = [entry["pid"] for entry in found["pids"].values()]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if any(Path(f"/proc/{pid}").exists() for pid in pids) else {}
