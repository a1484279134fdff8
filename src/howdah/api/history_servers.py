"""The history servers of this user that run on this machine: each leaves its link in a file that it holds locked.

The links hold tokens, so their directory is readable by its user alone. A file that nobody holds is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

FOLDER = "serving"


@contextlib.contextmanager
def announced(folder: Path, link: str) -> Iterator[None]:
    """While inside, `links` finds this link; nothing happens where no file can be written.

    Args:
        folder: the history's folder in the state directory.
        link: the server's address with its token.
    """
    place = folder / FOLDER
    name = f"{socket.gethostname()}-{os.getpid()}"
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished = place / f".{name}"
            file = held.enter_context(os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT, 0o600), "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(link)
            file.flush()
            held.callback((place / name).unlink, missing_ok=True)
            unfinished.rename(place / name)  # it is locked from the moment at which others see it
        yield


def links(folder: Path) -> list[str]:
    """The links of those that run on this machine, the newest first."""
    here = f"{socket.gethostname()}-"
    found = []
    with contextlib.suppress(OSError):
        for path in (folder / FOLDER).iterdir():
            if path.name.startswith(here) and (link := _held_link(path)):
                found.append((path.stat().st_mtime, link))
    return [link for _, link in sorted(found, reverse=True)]


def _held_link(path: Path) -> str:
    """What the file says, "" where its server has ended."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read()
        path.unlink(missing_ok=True)
        return ""
