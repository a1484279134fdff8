"""The directories of a task's working directory that existed before its program started."""

# ruff: noqa: PTH112, PTH118, PTH206 - executors do without pathlib

from __future__ import annotations

import functools
import os
from typing import FrozenSet, Tuple

from howdah.spec.values import dataclass


@dataclass(frozen=True)
class PreparedDirectories:
    """The directories that hold the job's files and inputs. Any other directory whose time is new is the program's,
    with all that is in it: when a directory is renamed, its content keeps its times."""

    holders: Tuple[str, ...] = ()
    """The directories that contain one of the job's files or inputs, at some depth."""
    sources: Tuple[Tuple[str, str], ...] = ()
    """Names of directories that are copies, each with the directory elsewhere that it is a copy of."""

    @functools.cached_property
    def _holders(self) -> FrozenSet[str]:
        return frozenset(self.holders)

    def hold(self, name: str) -> bool:
        """Return whether a directory of this name, relative to the working directory, existed before."""
        if name in self._holders:
            return True
        below = ((source, os.path.relpath(name, top)) for top, source in self.sources)
        return any(
            path.split(os.sep)[0] != ".." and os.path.isdir(os.path.join(source, path)) for source, path in below
        )
