"""Keeps files by their content: `<home>/cache/<aa>/<sha256>-<name>`. A file with such a name is always complete.

The modification time of a cached file never changes, because YARN refuses to localise a file that is newer than at
submission. Its access time, which `Cache.place` sets, says when it was last needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from howdah.errors import StagingError
from howdah.localfiles.file_errors import explain
from howdah.localfiles.own_directories import cache_directory
from howdah.spec import uris
from howdah.spec.staged import StagedFile
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import CHUNK, open_local
from howdah.storage.progress import Progress, no_progress

MAX_PARALLEL_UPLOADS = 16
_UNUSED_DAYS, _MIN_UNUSED_DAYS = 30.0, 1.0
_HASH_BYTES = 1 << 20
_MAX_KEPT_BYTES = 120  # a file system takes 255 bytes, the hash has 64
_WORTH_REMEMBERING = 4 << 20
_DIRECTORY = re.compile("[0-9a-f]{2}|unpacked")
_NAMED = re.compile(r"([0-9a-f]{64})-")
_ENTRY = re.compile(r"\.?[0-9a-f]{64}-")
"""The beginnings of the names of files, of directories that were unpacked from them, and of unfinished ones."""


def local_directory() -> Path:
    """Return the directory of howdah's cache on this machine."""
    return cache_directory(os.environ)


def max_unused_s(settings: Mapping[str, str]) -> float:
    """Return the setting `cache_days` in seconds. It is at least a day, because a submission in progress has placed
    files that no job names yet."""
    return max(float(settings.get("cache_days") or _UNUSED_DAYS), _MIN_UNUSED_DAYS) * 86400


def location(home: str, sha256: str, name: str) -> str:
    """Return the URI of the file with this content. It ends as `name` does, because programs that unpack archives go by
    the ending."""
    kept = os.fsencode(posixpath.basename(name))[-_MAX_KEPT_BYTES:].decode("utf-8", "ignore")
    return uris.join(home, "cache", sha256[:2], f"{sha256}-{kept}")


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the hash of a file's content. The hash of a large file is remembered below this machine's cache, by the
    file's size and time.

    Raises:
        StagingError: it cannot be read.
    """
    try:
        status = Path(path).stat()
    except OSError as error:
        raise explain(error, os.fspath(path)) from error
    if status.st_size < _WORTH_REMEMBERING:
        return _hash(path)
    note = _note_of(status)
    with contextlib.suppress(OSError):
        return note.read_text()
    digest = _hash(path)
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = note.with_name(f"{note.name}.{os.getpid()}")
        fresh.write_text(digest)
        fresh.replace(note)
    return digest


def _note_of(status: os.stat_result) -> Path:
    """Return the path at which the hash of a file with this size and these times is remembered."""
    name = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return local_directory() / "hashes" / hashlib.sha256(name.encode()).hexdigest()


def _is_own(path: str) -> bool:
    """Return whether howdah has made this file, even if a directory of the cache is a link to another disk. Such a file
    never changes, so it need not be named by its content."""
    own = local_directory()
    return any(Path(place(path)).is_relative_to(place(own)) for place in (os.path.abspath, os.path.realpath))


def _hash(path: str | os.PathLike[str]) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(_HASH_BYTES))
    try:
        with Path(path).open("rb", buffering=0) as file:
            while length := file.readinto(buffer):
                digest.update(buffer[:length])
    except OSError as error:
        raise explain(error, os.fspath(path)) from error
    return digest.hexdigest()


class Cache:
    """The cache below `home`. `progress(what, done, total)` is called with bytes, from several threads."""

    def __init__(self, home: str, conf_dir: str = "", progress: Progress = no_progress) -> None:
        self.home, self._conf_dir, self._progress = home, conf_dir, progress

    def place_all(self, files: Iterable[StagedFile]) -> tuple[StagedFile, ...]:
        """Place several files at once, because closing a new file takes half a second on HDFS."""
        from concurrent.futures import ThreadPoolExecutor  # not worth its import for a job without files

        with ThreadPoolExecutor(MAX_PARALLEL_UPLOADS) as pool:
            return tuple(pool.map(self.place, files))

    def place(self, file: StagedFile) -> StagedFile:
        """Upload the file unless it is there; return it with its size and time there.

        Raises:
            StagingError: there is no such file, no permission or no room. No partial file is left behind.
        """
        fs = filesystem(file.uri, self._conf_dir)
        there = fs.stat(file.uri)
        if file.source and (there is None or there.size != Path(file.source).stat().st_size):
            self.upload(file.source, file.uri, replace=there is not None)
            there = fs.stat(file.uri)
        elif file.source:
            with contextlib.suppress(StagingError):  # a file of another user, which may still be readable
                fs.touch(file.uri)
        if there is None:
            raise StagingError(f"{file.uri}: no such file (for {file.name})")
        return replace(file, size=there.size, modified_ms=there.modified_ms)

    def upload(self, source: str, uri: str, replace: bool = False) -> None:
        """Copy a file of this machine to `uri`, below directories that only this user may enter.

        If two submitters bring the same file at once, the first one's stays, because YARN knows its modification time.

        Raises:
            StagingError: as `place`, or the file is no longer the one whose content has given `uri` its name: later
                jobs would take it for that.
        """
        named = _NAMED.match(uris.name(uri))
        expected = named[1] if named and not _is_own(source) else ""
        fs = filesystem(uri, self._conf_dir)
        fs.mkdirs(uris.parent(uri), 0o700)
        mode = 0o555 if os.access(source, os.X_OK) else 0o444  # containers share it
        with open_local(source) as content, fs.writing(uri, mode, replace) as sink:
            total, done, digest = os.fstat(content.fileno()).st_size, 0, hashlib.sha256()
            while data := content.read(CHUNK):
                if expected:
                    digest.update(data)
                sink.write(data)
                done += len(data)
                self._progress(source, done, total)
            if expected and digest.hexdigest() != expected:
                # Writing through a memory map may change the file, but none of its times.
                _note_of(os.fstat(content.fileno())).unlink(missing_ok=True)
                raise StagingError(f"{source}: has changed while the job was submitted: submit it again")

    def clean(
        self,
        max_age_s: float,
        oldest_job: Callable[[], float],
        now: float | None = None,
        limit_s: float = 2.0,
    ) -> int:
        """Remove entries that were unused for `max_age_s`; return their number. It works for at most `limit_s`, and
        starts at another part of the cache each minute, so that later calls go on. The home may be a directory in which
        others keep a `cache`, too, so files without the name of an entry stay.

        Entries that were used less than `max_age_s` before the submission of the oldest unfinished job stay, because
        jobs that wait, and tasks that start again, still need their files. `oldest_job` returns the time of that
        submission in epoch seconds, `inf` if there is no such job; it is called once, if there is something to remove.
        """
        now = time.time() if now is None else now
        until, removed = time.monotonic() + limit_s, 0
        oldest: float | None = None
        fs, root = filesystem(self.home, self._conf_dir), uris.join(self.home, "cache")
        found = fs.children(root) if fs.exists(root) else []
        directories = [entry.uri for entry in found if entry.is_dir and _DIRECTORY.fullmatch(uris.name(entry.uri))]
        start = int(now / 60) % max(1, len(directories))
        for directory in directories[start:] + directories[:start]:
            if time.monotonic() > until:
                break
            for entry in fs.children(directory):
                used = max(entry.modified_ms, entry.accessed_ms) / 1000
                if not _ENTRY.match(uris.name(entry.uri)) or used >= now - max_age_s:
                    continue
                oldest = oldest_job() if oldest is None else oldest
                if used < oldest - max_age_s:
                    removed += fs.delete(entry.uri)
        return removed
