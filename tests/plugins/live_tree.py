"""Finds files in a directory that running programs change: `Path.rglob` fails when a directory vanishes meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def find(directory: Path, pattern: str) -> list[Path]:
    """Return the paths below `directory` whose last parts match `pattern`."""
    below = ((parent, name) for parent, directories, files in os.walk(directory) for name in (*directories, *files))
    return [path for path in (Path(parent, name) for parent, name in below) if path.match(pattern)]
