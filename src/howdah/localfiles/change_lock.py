"""Lets only one process at a time read a small file and write it anew, so that no change by another process is lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain

WAIT_S = 10.0
"""Longest wait for another process, which has the lock for milliseconds."""
_LOOK_S = 0.01


@contextlib.contextmanager
def changing(path: Path) -> Iterator[None]:
    """Hold the lock of the file at `path`. The lock is a file beside it, which stays, because `path` is replaced by a
    rename. If the file system has no locks, nothing is locked.

    Raises:
        StagingError: it can't be made, or another process does not give it back.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise explain(error, str(lock)) from error
    try:
        until = time.monotonic() + WAIT_S
        while not _takes(file):
            if time.monotonic() >= until:
                raise StagingError(f"{path} is being changed by another process: try again")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(file)


def _takes(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR)
    return True
