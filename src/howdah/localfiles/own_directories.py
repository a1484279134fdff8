"""Knows the directories in which howdah keeps its jobs, their keys and its cache on this machine."""

# ruff: noqa: PTH118 - executors do without pathlib where files are many

from __future__ import annotations

import contextlib
import os
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


def state_directory(environment: Mapping[str, str]) -> Path:
    """Return $HOWDAH_HOME/state, else $XDG_STATE_HOME/howdah, else ~/.local/state/howdah. Raises as `howdah_home`."""
    if own := howdah_home(environment):
        return own / "state"
    home = Path(environment.get("HOME") or Path.home())
    return Path(environment.get("XDG_STATE_HOME") or home / ".local/state") / "howdah"


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return $HOWDAH_HOME/cache, else $XDG_CACHE_HOME/howdah, else ~/.cache/howdah. Raises as `howdah_home`."""
    if own := howdah_home(environment):
        return own / "cache"
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache", "howdah")


def shared_directory(environment: Mapping[str, str], engine: str) -> Path:
    """Return where a batch system's engine keeps its jobs, unless a setting names another place: $HOWDAH_HOME/<engine>,
    else ~/.howdah/<engine>."""
    return (howdah_home(environment) or Path.home() / ".howdah") / engine


def own_directories(root: str, *homes: str) -> tuple[str, ...]:
    """Return the real paths of howdah's own directories on this machine, and of the engines' homes in `homes`. They are
    left out when a directory that contains them is sent. A directory that contains `root` is not returned, because a
    user who names a path in it means that path."""
    environment = os.environ
    kept = [os.path.join(home, name) for home in homes for name in ("jobs", "cache")]
    with contextlib.suppress(RuntimeError):  # in a container nobody may know a home, and nothing is kept there
        shared = (shared_directory(environment, engine) for engine in ("slurm", "spark"))
        kept += map(os.fspath, (state_directory(environment), cache_directory(environment), *shared))
    real = os.path.realpath(root)
    return tuple(own for own in dict.fromkeys(map(os.path.realpath, kept)) if not f"{real}/".startswith(f"{own}/"))


def is_own(real: str, own: tuple[str, ...]) -> bool:
    """Return whether a real path is one of howdah's own directories, or lies in one."""
    return any(real == each or real.startswith(f"{each}/") for each in own)
