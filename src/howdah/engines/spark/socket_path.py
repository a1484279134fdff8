"""Paths of Unix sockets: the kernel takes 107 bytes, and directories of jobs may be longer."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a short name of `path` for this process, by its open directory.

    Raises:
        OSError: there is no such directory.
    """
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
