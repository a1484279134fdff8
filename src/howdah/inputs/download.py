"""Downloads one file, which appears under its name when it is complete.

When the connection breaks, the bytes received so far are kept, and the next try continues behind them. A file that has
changed since it was listed is refused, because other tasks may have read the old one.
"""

# ruff: noqa: PTH101, PTH105, PTH108, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from howdah.errors import EngineUnavailable, StagingError
from howdah.localfiles.file_errors import explain
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Buffer, ConnectionBroken, Entry, mode_of_download
from howdah.storage.io_tuning import reserve_room
from howdah.wire.helper_messages import FileCopy

ByteCounter = Callable[[int], None]
"""A function that is called with the number of bytes received, or with a negative number when bytes are lost."""
WORTH_KEEPING = 8 << 20
"""A partial file of this size is kept even when this process gives up: another process may continue it."""


def verify_unchanged(copy: FileCopy, known: Entry | None = None) -> Entry:
    """Check that a remote file is the listed one, and return its entry; `known` is an entry from a moment ago. If a
    file may have any size, its size is the number of bytes that its writer has flushed.

    Raises:
        StagingError: the file is gone, or not the one that was listed.
    """
    fs = filesystem(copy.uri)
    entry = known or fs.stat(copy.uri)
    if entry is not None and copy.size < 0:
        (entry,) = fs.stat_flushed([entry])
    if entry is None:
        listed = ": it was there when the job was submitted" if copy.size >= 0 else ""
        raise StagingError(f"{copy.uri}: no such file{listed}")
    problem = _describe_change(copy, entry)
    if problem:
        raise StagingError(f"{copy.uri}: has changed since the job was submitted: {problem}")
    return entry


def _describe_change(copy: FileCopy, entry: Entry) -> str:
    if entry.is_dir:
        return "it is a directory now"
    if 0 <= copy.size != entry.size:
        return f"it had {copy.size} bytes, and has {entry.size}"
    if copy.etag and entry.etag and copy.etag != entry.etag:
        return "its content is another"
    if not copy.etag and copy.modified_ms and entry.modified_ms and copy.modified_ms != entry.modified_ms:
        return "it was written again"
    return ""


def download_verified(entry: Entry, path: str, count_bytes: ByteCounter) -> None:
    """Download a file that `verify_unchanged` has checked.

    Raises:
        ConnectionBroken, EngineUnavailable: another call may succeed, and continues where this one ended.
        StagingError: the file is gone or has changed, or there is no room.
    """
    # Another remote file, or another version of it, has another partial file.
    state = f"{path} {entry.uri} {entry.size} {entry.modified_ms} {entry.etag}"
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()
    part = os.path.join(os.path.dirname(path), f".{digest[:16]}.part")
    download_part(entry, part, count_bytes, path)
    try:
        with _explained(path):
            os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def download_part(entry: Entry, part: str, count_bytes: ByteCounter, path: str) -> None:
    """Download the rest of a file to the partial file `part`, which never has wider permissions than the file. Raises
    as `download_verified`; errors name `path`."""
    mode = mode_of_download(entry)
    with _explained(path):
        with contextlib.suppress(FileNotFoundError):  # a process killed before the last step may have left it read-only
            os.chmod(part, stat.S_IMODE(os.stat(part).st_mode) | 0o200)
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode | 0o200)
    size = 0

    def write_pieces(pieces: Sequence[Buffer]) -> None:
        nonlocal size
        with _explained(path):
            length = _write(file, pieces)
        size += length
        count_bytes(length)

    try:
        size = _prepare_part(file, entry, path)
        count_bytes(size)
        if size < entry.size:
            is_large = entry.size >= WORTH_KEEPING
            with _in_thread(write_pieces) if is_large else contextlib.nullcontext(write_pieces) as write:
                filesystem(entry.uri).copy_to(entry, size, write)
        if size != entry.size:
            raise ConnectionBroken(f"{entry.uri}: {size} bytes came of {entry.size}: it is being written, or was cut")
        if uris.split(entry.uri)[0] == "file":  # a copy on the same machine is as its source, whatever the umask
            with _explained(path):
                os.fchmod(file, mode)
    except BaseException as error:
        count_bytes(-size)
        if size < WORTH_KEEPING or not isinstance(error, (ConnectionBroken, EngineUnavailable)):
            with contextlib.suppress(OSError):
                os.unlink(part)
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def _in_thread(write_pieces: Callable[[Sequence[Buffer]], None]) -> Iterator[Callable[[Sequence[Buffer]], None]]:
    """Call `write_pieces` in another thread, while the caller reads the next bytes."""
    with ThreadPoolExecutor(1, "write") as pool:
        before: Future[None] = pool.submit(lambda: None)

        def submit(pieces: Sequence[Buffer]) -> None:
            nonlocal before
            before.result()
            before = pool.submit(write_pieces, pieces)

        yield submit
        before.result()


def _prepare_part(file: int, entry: Entry, path: str) -> int:
    """Return the size of the partial file, and reserve room for the rest."""
    size = os.fstat(file).st_size
    if size > entry.size:
        os.ftruncate(file, 0)
        size = 0
    if entry.size >= WORTH_KEEPING:  # the question costs as much as a small file
        disk = os.fstatvfs(file)
        if disk.f_bavail * disk.f_frsize < entry.size - size:
            raise StagingError(f"{path}: no space left for {entry.size} bytes of {entry.uri}")
        reserve_room(file, entry.size)
    return size


def _write(file: int, pieces: Sequence[Buffer]) -> int:
    wanted = sum(map(len, pieces))
    done = os.writev(file, pieces)
    if done < wanted:  # the disk is nearly full; the next write says so
        rest = memoryview(b"".join(pieces))
        while done < wanted:
            done += os.write(file, rest[done:])
    return wanted


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error, path) from error
