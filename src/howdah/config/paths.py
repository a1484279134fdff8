"""The directory of jobs, the sandbox and the history on this machine; caches: `howdah.storage.content_cache`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def state_directory(environment: Mapping[str, str]) -> Path:
    """Return $HOWDAH_HOME/state, else $XDG_STATE_HOME/howdah, else ~/.local/state/howdah."""
    if environment.get("HOWDAH_HOME"):
        return Path(environment["HOWDAH_HOME"]) / "state"
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get("XDG_STATE_HOME") or home / ".local/state") / "howdah"
