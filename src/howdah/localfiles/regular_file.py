"""Reads files of this machine that people name. It refuses a device, a socket, and a pipe to which no process writes,
because reading from those may never end."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain

_KERNEL = ("/proc", "/sys")
_NAMES = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
PIPE_WAIT_S = 30.0
_CHUNK = 1 << 16
_MAX_SHOWN = 200


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a regular file or a directory at `path`.

    Raises:
        StagingError: there is something else, or the path cannot be examined (its name is too long, for instance).
    """
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        name = os.fspath(path)
        shown = name if len(name) <= _MAX_SHOWN else f"{name[:_MAX_SHOWN]}…"
        if isinstance(error, ValueError):  # no path may contain this byte
            raise StagingError(f"{shown!r}: {error}") from error
        raise explain(error, shown) from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise StagingError(f"{path} is {_NAMES.get(stat.S_IFMT(mode), 'something else')}, must be a file or directory")
    real = os.path.realpath(path)
    if any(real == root or real.startswith(f"{root}/") for root in _KERNEL):
        raise StagingError(f"{path} is the kernel's, and no file that could be copied")
    return True


def opener(path: str, flags: int) -> int:
    """Open a file as the `opener` of `open`, for reads of files that others may have put there; `open` itself refuses a
    directory.

    Raises:
        StagingError: it is a pipe, a device or something else that may never end. OSError: it can't be opened.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return descriptor
    os.close(descriptor)
    raise StagingError(f"{path} is {_NAMES.get(stat.S_IFMT(mode), 'something else')}, must be a file or directory")


def read(path: str | os.PathLike[str], max_bytes: int, wait_s: float = PIPE_WAIT_S) -> bytes:
    """Return the content of a file, or of a pipe when its writers have closed it.

    Raises:
        OSError: it cannot be read, is neither, is longer than `max_bytes` bytes, or nothing has come from the pipe for
            `wait_s`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as error:  # no path may contain this byte
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            what = _NAMES.get(stat.S_IFMT(mode), "something else")
            raise OSError(errno.EINVAL, f"it is {what}, not a file", os.fspath(path))
        return b"".join(_read_pieces(descriptor, max_bytes, wait_s if stat.S_ISFIFO(mode) else 0.0))
    finally:
        os.close(descriptor)


def _read_pieces(descriptor: int, max_bytes: int, wait_s: float) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    length = 0
    while wait_s == 0.0 or poll.poll(wait_s * 1000):
        piece = os.read(descriptor, _CHUNK)
        length += len(piece)
        if length > max_bytes:
            raise OSError(errno.EFBIG, f"it is longer than {max_bytes} bytes")
        if not piece:
            return
        yield piece
    raise TimeoutError(errno.ETIMEDOUT, f"it is a pipe, and no process has written to it for {wait_s:.0f} s")


def is_private(status: os.stat_result) -> bool:
    """Return whether only its owner may read a file: ssh accepts no other key, and libpq no other password file."""
    return not status.st_mode & 0o077


def is_readable(path: str | os.PathLike[str]) -> bool:
    """Return whether this process may open a file that is there."""
    return os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)
