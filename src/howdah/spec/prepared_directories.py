"""The directories of a task's working directory that were there before its program."""

# ruff: noqa: PTH112, PTH118, PTH206 - executors do without pathlib

from __future__ import annotations

import functools
import os
from typing import FrozenSet, Tuple

from howdah.spec.values import dataclass


@dataclass(frozen=True)
class PreparedDirectories:
    """Names the directories that hold the job's files and inputs. Any other one with a new time is the program's, and
    with it all that is in it: a directory that was renamed keeps the times of what it holds."""

    holders: Tuple[str, ...] = ()
    """Those in which one of the job's files or inputs lies, at some depth."""
    sources: Tuple[Tuple[str, str], ...] = ()
    """Names, and the directories elsewhere of which they are copies."""

    @functools.cached_property
    def _holders(self) -> FrozenSet[str]:
        return frozenset(self.holders)

    def hold(self, name: str) -> bool:
        """Return whether there was a directory of this name, relative to the working directory."""
        if name in self._holders:
            return True
        below = ((source, os.path.relpath(name, top)) for top, source in self.sources)
        return any(
            path.split(os.sep)[0] != ".." and os.path.isdir(os.path.join(source, path)) for source, path in below
        )
