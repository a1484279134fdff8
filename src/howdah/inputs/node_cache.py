"""Keeps input files on a node, so that a restarted task, or another task on the node, does not fetch them again.

A file is identified by its URI, size, time and entity tag; a file that changes is another file. Content is checked
against its CRC each time it is used, and linked into the working directory, where it stays when the cache drops it.
Only files that no other user could have written are used: the directories belong to this user and are closed to others.

    <root>/<ab>/<key>         the content, read-only; its access time is the last use
    <root>/<ab>/<key>.crc     CRC-32, written last: without it there is no entry
    <root>/locks/<abc>        held while an entry is read or made: of two tasks one fetches, the other waits
"""

# ruff: noqa: PTH101, PTH102, PTH103, PTH105, PTH108, PTH112, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from howdah.inputs.download import ByteCounter, download_part, download_verified
from howdah.localfiles.file_errors import explain
from howdah.localfiles.own_copy import copy_file
from howdah.storage.content_cache import local_directory
from howdah.storage.filesystem import Entry

LIMIT_MIB = 50 << 10
MAX_DISK_USE = 0.85
"""The share of a disk that may be full: YARN takes a disk that is 90 % full out of service."""
KEPT_SHARE = 0.9
"""The share of the limit to which the cache shrinks when it is full."""
ABANDONED_S = 3600.0
_READ = 1 << 20


class NodeCache:
    """Keeps files in `roots`, directories on the node's disks that are made when first used; `limit` bytes in all."""

    def __init__(self, roots: Sequence[str], limit: int) -> None:
        self.roots, self.limit = tuple(filter(_is_private_dir, roots)), limit
        self.hits = 0
        """The number of bytes that were in the cache already."""
        self._lock = threading.Lock()
        self._size: int | None = None
        self._full: set[str] = set()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> NodeCache | None:
        """Return the cache of this node; None if no directory is safe or the limit is 0.

        The cache is in HOWDAH_DATA_CACHE_DIR, else beside the files that YARN keeps for this user, else in howdah's own
        cache, and takes at most HOWDAH_DATA_CACHE_MIB.
        """
        limit = int(environ.get("HOWDAH_DATA_CACHE_MIB") or LIMIT_MIB) << 20
        cache = cls(_root_directories(environ), limit) if limit else None
        return cache if cache and cache.roots else None

    def fetch(
        self, file: Entry, path: str, count_bytes: ByteCounter, slot: Callable[[], AbstractContextManager[object]]
    ) -> None:
        """Put the file at `path`, from the cache or by a download. A download waits for a `slot()`.

        Raises:
            ConnectionBroken, EngineUnavailable, StagingError: as `howdah.inputs.download.download_verified`.
        """
        key = _key(file)
        with self._locked(key):
            for root in self.roots:
                if _link_if_valid(_entry(root, key), file.size, path):
                    with self._lock:
                        self.hits += file.size
                    count_bytes(file.size)
                    return
            root = self._find_root(file, path)
            with slot():
                if root:
                    self._fetch_and_keep(_entry(root, key), file, path, count_bytes)
                else:
                    download_verified(file, path, count_bytes)

    def _fetch_and_keep(self, entry: str, file: Entry, path: str, count_bytes: ByteCounter) -> None:
        part = f"{entry}.part"
        try:
            os.makedirs(os.path.dirname(entry), mode=0o700, exist_ok=True)
            download_part(file, part, count_bytes, entry)
            crc = _crc(part)
            os.chmod(part, 0o400)
            os.utime(part, ns=(time.time_ns(), file.modified_ms * 10**6))
            os.replace(part, entry)
            with open(f"{entry}.crc", "w", encoding="ascii") as note:
                note.write(f"{crc:08x}")
            _hard_link_or_copy(entry, path)
        except OSError as error:
            raise explain(error, entry) from error
        with self._lock:
            self._size = (self._size or 0) + file.size

    def _find_root(self, file: Entry, path: str) -> str:
        """Return a root with room for the file, if possible on the disk of `path`; "" when there is none."""
        if file.size > self.limit or not (file.modified_ms or file.etag):
            return ""
        device = os.stat(os.path.dirname(path)).st_dev
        with self._lock:
            if self._size is None:
                self._size = sum(found.st_size for root in self.roots for _, found in _entries(root))
            if self._size + file.size > self.limit:
                self._size = self._evict(int(self.limit * KEPT_SHARE) - file.size)
        for root in sorted(self.roots, key=lambda root: os.stat(root).st_dev != device):
            disk = shutil.disk_usage(root)
            if disk.used + file.size < MAX_DISK_USE * disk.total:
                return root
            with self._lock:
                if root not in self._full:
                    self._full.add(root)
                    _report_unused(root, f"its disk is more than {MAX_DISK_USE:.0%} full")
        return ""

    def _evict(self, to: int) -> int:
        """Remove the least recently used files until `to` bytes are left; return how many are left."""
        entries = [(found.st_atime_ns, found.st_size, path) for root in self.roots for path, found in _entries(root)]
        left = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if left <= to:
                break
            _remove(path)
            left -= size
        return left

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        directory = os.path.join(self.roots[0], "locks")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        lock = os.open(os.path.join(directory, key[:3]), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The holder fetches a file: only the limit of the whole download bounds this wait.
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _root_directories(environ: Mapping[str, str]) -> list[str]:
    """Return directories for the cache. YARN's directories of a user outlive the user's applications; those of an
    application are below them, in `appcache`."""
    if environ.get("HOWDAH_DATA_CACHE_DIR"):
        return [os.path.join(environ["HOWDAH_DATA_CACHE_DIR"], f"howdah-{os.geteuid()}")]
    of_application = [path for path in environ.get("LOCAL_DIRS", "").split(",") if path]
    users = [path.rpartition("/appcache/")[0] for path in of_application]
    if of_application:
        return sorted(os.path.join(user, "howdah-inputs") for user in users if user and os.path.isdir(user))
    return [str(local_directory() / "inputs")]


def _is_private_dir(root: str) -> bool:
    """Make `root` if it does not exist; return whether it belongs to this user alone."""
    try:
        os.makedirs(os.path.dirname(root), mode=0o700, exist_ok=True)
        above = os.stat(os.path.dirname(root))
        with contextlib.suppress(FileExistsError):
            os.mkdir(root, 0o700)
        found = os.lstat(root)
    except OSError as error:
        return _report_unused(root, error.strerror or str(error))
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        return _report_unused(
            root, f"it is not a directory of this user's alone (owner {found.st_uid}, mode {found.st_mode:o})"
        )
    if above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        return _report_unused(root, "others may put another directory in its place")
    return True


def _report_unused(root: str, why: str) -> bool:
    print(f"inputs are not kept in {root}: {why}", file=sys.stderr, flush=True)
    return False


def _key(file: Entry) -> str:
    state = f"{file.uri} {file.size} {file.modified_ms} {file.etag}"
    return hashlib.sha256(state.encode()).hexdigest()


def _entry(root: str, key: str) -> str:
    return os.path.join(root, key[:2], key)


def _entries(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield a root's files, with partial files that a dead process has left."""
    old = time.time() - ABANDONED_S
    for directory in os.scandir(root):
        if directory.name != "locks" and directory.is_dir(follow_symlinks=False):
            for found in os.scandir(directory.path):
                with contextlib.suppress(OSError):
                    status = found.stat(follow_symlinks=False)
                    if status.st_mtime < old if found.name.endswith(".part") else not found.name.endswith(".crc"):
                        yield found.path, status


def _link_if_valid(entry: str, size: int, path: str) -> bool:
    """Link the entry to `path`; return False when there is none, or when it has changed, which removes it."""
    try:
        with open(f"{entry}.crc", encoding="ascii") as note:
            wanted_crc = int(note.read(), 16)
        found = os.lstat(entry)
        if stat.S_ISREG(found.st_mode) and found.st_size == size and _crc(entry) == wanted_crc:
            os.utime(entry, ns=(time.time_ns(), found.st_mtime_ns))
            _hard_link_or_copy(entry, path)
            return True
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        print(f"{entry} is fetched again: {error}", file=sys.stderr, flush=True)
    _remove(entry)
    return False


def _hard_link_or_copy(entry: str, path: str) -> None:
    """Make a hard link. Make a copy on another disk, and for root, who may write even to read-only files."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    try:
        if not os.access(entry, os.W_OK):
            return os.link(entry, path)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EMLINK, errno.EPERM):
            raise
    for _ in copy_file(entry, path):
        pass


def _remove(entry: str) -> None:
    for path in (f"{entry}.crc", entry):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _crc(path: str) -> int:
    crc = 0
    buffer = memoryview(bytearray(_READ))
    with open(path, "rb", buffering=0) as file:
        while length := file.readinto(buffer):
            crc = zlib.crc32(buffer[:length], crc)
    return crc
