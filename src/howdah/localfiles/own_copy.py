"""Copies files that several containers share, so that a task that writes to its copy changes nobody else's.

Some file systems (XFS, Btrfs) share the blocks of a copy until one side is written to. A copy is made under another
name and then renamed, so an existing copy is complete. The functions yield from time to time, so that a caller with a
single thread can do other things meanwhile.
"""

# ruff: noqa: PTH101, PTH103, PTH104, PTH108, PTH113, PTH114, PTH115, PTH118, PTH120, PTH123, PTH202, PTH211

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator

from howdah.localfiles.symlinks import is_interpreter, stays_inside

LARGE = 64 << 20
"""From this size on a file that this user may not write is linked, not copied."""
_FICLONE = 0x40049409  # linux/fs.h
_PIECE, _SMALL = 32 << 20, 256 << 10
_PART = ".howdah-part"


def _ignore(member: str) -> None:
    """Ignore a file that was not copied."""


def copy_tree(source: str, target: str, archive: str, passed_over: Callable[[str], None] = _ignore) -> Iterator[None]:
    """Copy the content of the directory `source` into `target`. Files that exist there stay, and `passed_over` is
    called with the name of each file that exists with other content.

    `archive` is the archive that the directory was unpacked from, for the sentences of errors: some engines unpack
    archives with links that may lead anywhere.

    Raises:
        OSError: no room, a link leads out of `source`, a file is a device, or is no directory where one is wanted.
    """
    os.makedirs(target, exist_ok=True)
    yield from _copy_below(source, target, source, archive, passed_over)


def _copy_below(
    source: str, target: str, root: str, archive: str, passed_over: Callable[[str], None]
) -> Iterator[None]:
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        to, member = os.path.join(target, entry.name), os.path.relpath(entry.path, root)
        if entry.is_dir(follow_symlinks=False):
            if os.path.islink(to):
                raise OSError(f"{archive}: {member!r} lies below a link that another archive has made")
            os.makedirs(to, exist_ok=True)
            yield from _copy_below(entry.path, to, root, archive, passed_over)
        elif os.path.lexists(to):
            if entry.is_file() and not _is_same(entry.path, to):
                passed_over(member)
        elif entry.is_symlink():
            link = os.readlink(entry.path)
            if not is_interpreter(member) and not stays_inside(entry.path, root):
                raise OSError(f"{archive}: {member!r} is a link out of the archive, to {link!r}")
            os.symlink(link, to)
        elif not entry.is_file():
            raise OSError(f"{archive}: {member!r} is a device or a pipe")
        else:
            yield from copy_or_link(entry.path, to)


def _is_same(path: str, other: str) -> bool:
    import filecmp  # most tasks have no such files

    return os.path.isfile(other) and filecmp.cmp(path, other)


def copy_or_link(source: str, target: str) -> Iterator[None]:
    """Make `target` a copy of a file, or a link to a large file that this user may not write."""
    if os.path.getsize(source) >= LARGE and not os.access(source, os.W_OK):
        os.symlink(os.path.realpath(source), target)
    else:
        yield from copy_file(source, target)


def copy_file(source: str, target: str) -> Iterator[None]:
    """Make `target` a copy of a file with its modes and its time, which its owner may write."""
    part = os.path.join(os.path.dirname(target), f"{_PART}-{os.urandom(4).hex()}")
    try:
        with open(source, "rb", buffering=0) as content, open(part, "wb", buffering=0) as sink:
            if not _clone(content.fileno(), sink.fileno()):
                while os.sendfile(sink.fileno(), content.fileno(), None, _PIECE):
                    yield
            _copy_facts(content.fileno(), sink.fileno())
        os.rename(part, target)
    except OSError as error:
        error.filename = error.filename or target  # after a full disk, sendfile's error names no file
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
    yield


def clone_file(source: str, target: str) -> bool:
    """Make `target` a copy that shares its blocks with `source`; return False where the file system cannot."""
    with open(source, "rb", buffering=0) as content, open(target, "xb", buffering=0) as sink:
        if _clone(content.fileno(), sink.fileno()):
            _copy_facts(content.fileno(), sink.fileno())
            return True
    os.unlink(target)
    return False


def _clone(source: int, target: int) -> bool:
    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        return False
    return True


def _copy_facts(source: int, target: int) -> None:
    status = os.fstat(source)
    os.fchmod(target, stat.S_IMODE(status.st_mode) & 0o777 | 0o600)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))  # byte code counts only beside a source of its time


def link_tree(source: str, target: str) -> Iterator[None]:
    """Make new directories for the files in `source`; the files become hard links that this user may not write.

    So files can be added, removed and replaced below `target`, as `pip install` does, while nothing is copied. If hard
    links are impossible, because the files are on another disk or belong to another user, small files are copied,
    because scripts look for other files beside themselves, and large ones are linked.

    Raises:
        OSError: there is no room.
    """
    os.makedirs(target, exist_ok=True)
    for entry in os.scandir(source):
        to = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            yield from link_tree(entry.path, to)
        elif os.path.lexists(to):
            continue
        elif entry.is_symlink():
            os.symlink(os.readlink(entry.path), to)
        else:
            try:
                if entry.stat().st_mode & 0o222:  # unpacked by another version of howdah
                    os.chmod(entry.path, stat.S_IMODE(entry.stat().st_mode) & 0o555)
                os.link(entry.path, to)
            except OSError:
                if os.access(entry.path, os.W_OK) or entry.stat().st_size < _SMALL:
                    yield from copy_file(entry.path, to)
                else:
                    os.symlink(os.path.realpath(entry.path), to)
    yield
