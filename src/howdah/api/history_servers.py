"""The running history servers of this user on this machine: each writes its link to a file that it keeps locked.

The links hold tokens, so only the user can read their directory. A file that no process has locked is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

DIRECTORY_NAME = "serving"


@contextlib.contextmanager
def announce_link(directory: Path, link: str) -> Iterator[None]:
    """Let `links` find this link inside the context; do nothing where no file can be written.

    `directory` is the history's directory in the state directory, `link` the server's address with its token.
    """
    links_directory = directory / DIRECTORY_NAME
    name = f"{socket.gethostname()}-{os.getpid()}"
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            links_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            unfinished = links_directory / f".{name}"
            file = held.enter_context(os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT, 0o600), "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(link)
            file.flush()
            held.callback((links_directory / name).unlink, missing_ok=True)
            unfinished.rename(links_directory / name)  # locked before others can see it
        yield


def links(directory: Path) -> list[str]:
    """Return the links of the servers that run on this machine, the newest first."""
    prefix = f"{socket.gethostname()}-"
    found = []
    with contextlib.suppress(OSError):
        for path in (directory / DIRECTORY_NAME).iterdir():
            if path.name.startswith(prefix) and (link := _held_link(path)):
                found.append((path.stat().st_mtime, link))
    return [link for _, link in sorted(found, reverse=True)]


def _held_link(path: Path) -> str:
    """Return the link in the file, "" if its server has ended."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read()
        path.unlink(missing_ok=True)
        return ""
