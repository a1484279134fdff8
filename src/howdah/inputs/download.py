"""Downloads one file, which appears under its name when it is complete.

The bytes that have come stay when the connection breaks, so that the next try continues behind them. A file that has
changed since it was listed is refused, because other tasks may have read the old one.
"""

# ruff: noqa: PTH105, PTH108, PTH118, PTH120

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from howdah.errors import EngineUnavailable, StagingError
from howdah.localfiles.file_errors import explain
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Buffer, ConnectionBroken, Entry
from howdah.storage.io_tuning import reserve_room
from howdah.wire.helper_messages import FileCopy

Told = Callable[[int], None]
WORTH_KEEPING = 8 << 20
"""A partial file of this size is kept even when this process gives up: another process may continue it."""


def verify_unchanged(copy: FileCopy, known: Entry | None = None) -> Entry:
    """Check that a remote file is the one that was listed, and return its entry; `known` is one from a moment ago. The
    size of a file that may have any is what its writer has flushed.

    Raises:
        StagingError: the file is gone, or not the one that was listed.
    """
    fs = filesystem(copy.uri)
    there = known or fs.stat(copy.uri)
    if there is not None and copy.size < 0:
        (there,) = fs.stat_flushed([there])
    if there is None:
        listed = ": it was there when the job was submitted" if copy.size >= 0 else ""
        raise StagingError(f"{copy.uri}: no such file{listed}")
    problem = _changed(copy, there)
    if problem:
        raise StagingError(f"{copy.uri}: has changed since the job was submitted: {problem}")
    return there


def _changed(copy: FileCopy, there: Entry) -> str:
    if there.is_dir:
        return "it is a directory now"
    if 0 <= copy.size != there.size:
        return f"it had {copy.size} bytes, and has {there.size}"
    if copy.etag and there.etag and copy.etag != there.etag:
        return "its content is another"
    if not copy.etag and copy.modified_ms and there.modified_ms and copy.modified_ms != there.modified_ms:
        return "it was written again"
    return ""


def fetch(copy: FileCopy, told: Told) -> None:
    """Download a file to `copy.path`. `told` is called with the bytes that have come, or a negative count when they are
    lost.

    Raises:
        ConnectionBroken, EngineUnavailable: another call may succeed, and continues where this one ended.
        StagingError: the file is gone or has changed, or there is no room.
    """
    download_verified(verify_unchanged(copy), copy.path, told)


def download_verified(there: Entry, path: str, told: Told) -> None:
    """Download a file whose entry is known. Raises as `fetch`."""
    part = part_of(path, there)
    download_part(there, part, told, path)
    with _explained(path):
        os.replace(part, path)


def part_of(path: str, there: Entry) -> str:
    """Return the partial file for `path`; another remote file, or another version of it, has another one."""
    state = f"{path} {there.uri} {there.size} {there.modified_ms} {there.etag}"
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()
    return os.path.join(os.path.dirname(path), f".{digest[:16]}.part")


def download_part(there: Entry, part: str, told: Told, place: str) -> None:
    """Download the rest of a file to the partial file `part`. Raises as `fetch`, naming `place`."""
    with _explained(place):
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    size = 0

    def write_pieces(pieces: Sequence[Buffer]) -> None:
        nonlocal size
        with _explained(place):
            length = _write(file, pieces)
        size += length
        told(length)

    try:
        size = _begun(file, there, place)
        told(size)
        if size < there.size:
            with (
                _behind(write_pieces) if there.size >= WORTH_KEEPING else contextlib.nullcontext(write_pieces) as write
            ):
                filesystem(there.uri).copy_to(there, size, write)
        if size != there.size:
            raise ConnectionBroken(f"{there.uri}: {size} bytes came of {there.size}: it is being written, or was cut")
    except BaseException as error:
        told(-size)
        if size < WORTH_KEEPING or not isinstance(error, (ConnectionBroken, EngineUnavailable)):
            with contextlib.suppress(OSError):
                os.unlink(part)
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def _behind(write_pieces: Callable[[Sequence[Buffer]], None]) -> Iterator[Callable[[Sequence[Buffer]], None]]:
    """Call `write_pieces` in another thread, while the caller reads the next bytes."""
    with ThreadPoolExecutor(1, "write") as pool:
        before: Future[None] = pool.submit(lambda: None)

        def hand_over(pieces: Sequence[Buffer]) -> None:
            nonlocal before
            before.result()
            before = pool.submit(write_pieces, pieces)

        yield hand_over
        before.result()


def _begun(file: int, there: Entry, place: str) -> int:
    """Return the size of the partial file, if there is room for the rest."""
    size = os.fstat(file).st_size
    if size > there.size:
        os.ftruncate(file, 0)
        size = 0
    if there.size >= WORTH_KEEPING:  # asking costs as much as a small file
        disk = os.fstatvfs(file)
        if disk.f_bavail * disk.f_frsize < there.size - size:
            raise StagingError(f"{place}: no space left for {there.size} bytes of {there.uri}")
        reserve_room(file, there.size)
    return size


def _write(file: int, pieces: Sequence[Buffer]) -> int:
    wanted = sum(map(len, pieces))
    done = os.writev(file, pieces)
    if done < wanted:  # the disk is nearly full, and says so now
        rest = memoryview(b"".join(pieces))
        while done < wanted:
            done += os.write(file, rest[done:])
    return wanted


@contextlib.contextmanager
def _explained(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise explain(error, place) from error
