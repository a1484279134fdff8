"""The directory that HOWDAH_HOME names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from howdah.errors import SpecError


def howdah_home(environment: Mapping[str, str]) -> Path | None:
    """Return the directory that HOWDAH_HOME names, None where it names none; `~` is the user's home.

    Raises:
        SpecError: it is relative: each directory would have jobs and settings of its own.
    """
    given = environment.get("HOWDAH_HOME", "")
    if not given:
        return None
    path = Path(given)
    with contextlib.suppress(RuntimeError):  # no user has this name
        path = path.expanduser()
    if not path.is_absolute():
        raise SpecError.at("HOWDAH_HOME", f"is {given!r}, must be an absolute path")
    return path
