"""Files of this machine as a FileSystem; standard library only."""

# ruff: noqa: PTH101, PTH104, PTH108, PTH110, PTH112, PTH113, PTH114, PTH116, PTH118, PTH123, PTH207, PTH208

from __future__ import annotations

import contextlib
import errno
import glob
import itertools
import os
import pathlib
import re
import shutil
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO

from howdah.errors import StagingError
from howdah.localfiles import regular_file
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.storage.filesystem import Entry, FileSystem, Sink, open_local
from howdah.storage.linked_tree import LeftOut, walk_linked

_BRACES = re.compile(r"\{([^{}]*)\}")


class LocalFileSystem(FileSystem):
    """Takes `file:///path` or a plain path. Entries have `file:///path`."""

    def stat(self, uri: str) -> Entry | None:
        with _local(uri) as path:
            try:
                return _entry(path, os.stat(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def children(self, directory: str) -> list[Entry]:
        with _local(directory) as path:
            if not os.path.isdir(path):
                return [_entry(path, os.stat(path))]
            names = sorted(os.listdir(path))
            return [entry for name in names if (entry := self.stat(uris.of_local(os.path.join(path, name))))]

    def walk(self, directory: str) -> Iterator[Entry]:
        with _local(directory) as path:
            if not os.path.isdir(path):
                yield _entry(path, os.stat(path))
                return
        for below, _, names in os.walk(path, onerror=_raise_explained):
            for name in names:
                full = os.path.join(below, name)
                with _explained(full), contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    try:
                        found = os.stat(full)
                    except OSError:
                        if os.path.islink(full):  # it leads nowhere for this user, or in a circle
                            continue
                        raise
                    if stat.S_ISREG(found.st_mode):  # sockets and pipes cannot be copied
                        yield _entry(full, found)

    def list_tree(self, directory: str, left_out: LeftOut, skip_unreadable: bool = False) -> Iterator[Entry]:
        path = uris.path(directory)
        return (
            _entry(found, status) for found, status in walk_linked(path, left_out, skip_unreadable) if found != path
        )

    def glob(self, pattern: str) -> list[Entry]:
        paths = _matching_paths(pattern)
        return [entry for path in paths if (entry := self.stat(uris.of_local(path)))]

    def open_read(self, uri: str) -> BinaryIO:
        with _local(uri) as path:
            return open(path, "rb", buffering=1 << 20, opener=regular_file.opener)

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        with _local(uri) as path:
            file = open_local(path, "wb")
            os.fchmod(file.fileno(), mode)  # before the first byte: others can never read a secret
        return file

    def append(self, uri: str, data: bytes) -> None:
        with _local(uri) as path, open(path, "ab", buffering=0) as file:
            left = memoryview(data)
            try:
                while left:
                    left = left[file.write(left) :]
            except OSError:  # a full disk took only the beginning: remove it before a retry
                end = file.tell()
                if os.fstat(file.fileno()).st_size == end:
                    file.truncate(end - (len(data) - len(left)))
                raise

    def mkdirs(self, directory: str, mode: int = 0o755) -> None:
        with _local(directory) as path:
            wanted = pathlib.Path(path)
            missing = list(itertools.takewhile(lambda p: not p.exists(), [wanted, *wanted.parents]))
            for parent in reversed(missing):
                with contextlib.suppress(FileExistsError):
                    parent.mkdir(mode=0o700)
                    parent.chmod(mode)
            if not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, "is a file, not a directory", path)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        source, target = uris.path(old), uris.path(new)
        with _explained(target):
            if not os.path.lexists(source):
                raise StagingError(f"{source}: no such file or directory")
            is_replaceable = os.path.isfile(target) or not os.path.exists(target)  # a link to nothing
            if os.path.lexists(target) and not (overwrite and is_replaceable):
                raise StagingError(f"{target}: exists already")
            if overwrite or os.path.isdir(source) or not _move_file(source, target):
                os.rename(source, target)

    def delete(self, uri: str) -> bool:
        with _local(uri) as path:
            try:
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
            except FileNotFoundError:
                return False
        return True

    def resolve(self, uri: str) -> str:
        return uris.of_local(os.path.realpath(uris.path(uri)))

    def chmod(self, uri: str, mode: int) -> None:
        with _local(uri) as path:
            os.chmod(path, mode)

    def touch(self, uri: str) -> None:
        with _local(uri) as path:
            os.utime(path, ns=(time.time_ns(), os.stat(path).st_mtime_ns))


def dangling_links(pattern: str) -> list[Entry]:
    """Return the links that match and lead nowhere, sorted. `glob` leaves them out, because they have no status to
    list."""
    links = (path for path in _matching_paths(pattern) if os.path.islink(path))
    dangling = (path for path in links if not pathlib.Path(path).exists())
    return [Entry(uris.of_local(path), 0, 0) for path in dangling]


def _matching_paths(pattern: str) -> list[str]:
    parts = expand_braces(uris.path(pattern))
    return sorted({path for part in parts for path in glob.iglob(part, recursive=True)})


def _move_file(source: str, target: str) -> bool:
    """Move a file unless there is one at `target`; no other process may know `source` yet. Return whether this file
    system supports the links that this needs.

    Raises:
        StagingError: there is one.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise StagingError(f"{target}: exists already") from None
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            return False
        raise
    os.unlink(source)
    return True


def _entry(path: str, status: os.stat_result) -> Entry:
    is_dir = stat.S_ISDIR(status.st_mode)
    size = 0 if is_dir else status.st_size
    mode = stat.S_IMODE(status.st_mode)
    times = (status.st_mtime_ns // 10**6, status.st_atime_ns // 10**6)
    return Entry(uris.of_local(path), size, times[0], is_dir, str(status.st_uid), "", mode, times[1])


def expand_braces(pattern: str) -> list[str]:
    """Expand `{a,b}` as Hadoop's globs do."""
    found = _BRACES.search(pattern)
    if not found:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return [part for word in found[1].split(",") for part in expand_braces(before + word + after)]


def _raise_explained(error: OSError) -> None:
    raise explain(error, error.filename or "") from error


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error


@contextlib.contextmanager
def _local(uri: str) -> Iterator[str]:
    """Yield the path of a URI; raise the errors of system calls on it as howdah's own."""
    path = uris.path(uri)
    with _explained(path):
        yield path
