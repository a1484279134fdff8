"""Makes temporary directories that do not remain after their process was killed: the next process that makes one of the
same kind removes those whose lock is free."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_LOCK = ".lock"
_UNLOCKED_S = 60.0
"""A directory without a lock file that is younger than this is just being made."""


class TemporaryDirectory:
    """A directory that only this user can enter, below `parent` (by default the system's temporary directory). `remove`
    deletes it, and so does the end of this object; after this process has ended, the next directory of the same
    `prefix` does."""

    def __init__(self, prefix: str, parent: str | None = None) -> None:
        _remove_abandoned(prefix, Path(parent or tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the directory with its content, unless that was done before."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.remove()


def remove_if_empty(path: Path) -> None:
    """Remove a directory that another process has made, if it contains nothing but its lock.

    Raises:
        OSError: it contains something else, or cannot be removed.
    """
    (path / _LOCK).unlink(missing_ok=True)
    path.rmdir()


def _remove_abandoned(prefix: str, parent: Path) -> None:
    for path in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another user's, or removed meanwhile
            if path.is_symlink() or not path.is_dir() or path.stat().st_uid != os.geteuid():
                continue
            if not (path / _LOCK).exists():
                if time.time() - path.stat().st_mtime > _UNLOCKED_S:
                    shutil.rmtree(path)
                continue
            lock = os.open(path / _LOCK, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)
