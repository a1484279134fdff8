"""`python -m howdah.inputs.transfer download|upload`: move files between this machine and any file system.

A helper process beside an executor, which has no libraries (`howdah.wire.helper_main`). A file that exists under its
name is complete: each file is written under another name and then renamed.
"""

# ruff: noqa: PTH112, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from howdah.errors import EngineUnavailable, StagingError
from howdah.inputs.download import ByteCounter, download_verified, verify_unchanged
from howdah.inputs.node_cache import NodeCache
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, Entry, make_directory_like, mode_of_copy
from howdah.storage.io_tuning import keep_freed_memory
from howdah.storage.linked_tree import LeftOut, ignore, walk_linked
from howdah.storage.output_files import OutputFiles
from howdah.storage.retry import retry_until
from howdah.wire.helper_main import REPORT_S, ProgressLines, run_helper_main
from howdah.wire.helper_messages import DownloadReply, DownloadRequest, FileCopy, UploadReply, UploadRequest

# HDFS takes half a second to close a new file, so many are written at once. Reading small files is work for the
# processor: more threads than hide the network's delay are only in its way. A few large files fill the network, and
# each holds some chunks in memory.
WRITERS, READERS = 48, 16
LISTING_BATCH_FILES = 1000
"""The number of files of a directory that one call lists."""
MAX_PARALLEL_LARGE_FILES = 4
LARGE = 2 << 20
TRIES = 5
TIDY_S = 10.0
"""Seconds that the removal of unfinished files may take when a transfer ends early."""
BACK_OFF_S = 0.25
"""The first pause in seconds. It doubles with each try that brought nothing: 7.5 s in all, for a server that starts
again."""

ProgressCallback = Callable[[int, int], None]
"""A function that is called with the number and the bytes of the files moved so far."""
Move = Callable[[FileCopy, ByteCounter], None]


def download(
    copies: Iterable[FileCopy],
    report: ProgressCallback,
    cache: NodeCache | None = None,
    back_off_s: float = BACK_OFF_S,
    stopped: threading.Event | None = None,
) -> tuple[int, int]:
    """Download files; return their number and size. Each file replaces an existing file of its name, because an equal
    size does not prove equal content. A caller that knows which files are here already leaves them out of `copies`.

    When `stopped` is set, or after an error, no further file is begun, and unfinished files are removed.

    Raises:
        StagingError, EngineUnavailable: a file could not be downloaded: `TRIES` tries in a row brought nothing.
    """
    made: set[str] = set()
    known: dict[str, Entry] = {}

    def fetch(copy: FileCopy, count_bytes: ByteCounter) -> None:
        directory = os.path.dirname(copy.path)
        if directory not in made:
            try:
                Path(directory).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StagingError(f"{directory}: {error.strerror}") from error
            made.add(directory)
        before = known.pop(copy.uri, None)  # a second try asks the file system again
        if cache is not None and copy.cache:
            cache.fetch(verify_unchanged(copy, before), copy.path, count_bytes, lambda: _slot(copy.size))
        else:
            with _slot(copy.size):
                download_verified(verify_unchanged(copy, before), copy.path, count_bytes)

    return _Transfer(_prefetched(copies, known), fetch, back_off_s, stopped).run(READERS, report)


def _prefetched(copies: Iterable[FileCopy], known: dict[str, Entry]) -> Iterator[FileCopy]:
    """Yield the same files; put into `known` the entries that one call returns for the next `LISTING_BATCH_FILES`
    files."""
    rest = iter(copies)
    while some := list(itertools.islice(rest, LISTING_BATCH_FILES)):
        for root in dict.fromkeys(uris.root(copy.uri) for copy in some):
            small = [copy.uri for copy in some if 0 <= copy.size < LARGE and uris.root(copy.uri) == root]
            known.update(filesystem(small[0]).prefetch_stats(small) if small else {})
        yield from some


def upload(
    copies: Iterable[FileCopy], report: ProgressCallback, stopped: threading.Event | None = None
) -> tuple[int, int]:
    """Upload files; return their number and size. The directories of their URIs are made. It ends early as `download`
    does."""
    made: set[str] = set()

    def store(copy: FileCopy, count_bytes: ByteCounter) -> None:
        fs = filesystem(copy.uri)
        directory = uris.parent(copy.uri)
        if directory not in made:
            make_directory_like(fs, os.path.dirname(copy.path), directory)
            made.add(directory)
        written = 0

        def check(size: int) -> None:
            nonlocal written
            transfer.check()
            count_bytes(size - written)  # less than nothing where the file system writes the file anew
            written = size

        try:
            with _slot(_size(copy.path)):
                check(fs.put(copy.path, copy.uri, mode_of_copy(copy.path, copy.uri), check))
        except BaseException:
            count_bytes(-written)
            raise

    transfer = _Transfer(iter(copies), store, BACK_OFF_S, stopped)
    return transfer.run(WRITERS, report)


def output_copies(files: OutputFiles, uri: str) -> Iterator[FileCopy]:
    """Yield a FileCopy for each file that a program has made; none when there is no such directory.

    Raises:
        StagingError: a part of the directory cannot be listed.
    """
    if not os.path.lexists(files.directory):
        return
    stored = uris.StoredNames(uri, files.directory)
    try:
        for name in files:
            yield FileCopy(os.path.join(files.directory, name), stored.uri_of(name))
    except OSError as error:
        raise StagingError(f"{error.filename}: {error.strerror}") from error


def list_copies(directory: str, uri: str, left_out: LeftOut = ignore) -> tuple[list[FileCopy], list[str]]:
    """Return a FileCopy for each file below a local `directory`, with links followed, and the URI of each empty
    directory. `left_out` is called with the path of each thing that can't be copied, and the reason.

    Raises:
        StagingError: a part of the directory cannot be listed.
    """
    copies, empty = list[FileCopy](), list[str]()
    stored = uris.StoredNames(uri, directory)
    for path, status in walk_linked(directory, left_out):
        target = uris.normalize(stored.uri_of(os.path.relpath(path, directory)))
        if stat.S_ISDIR(status.st_mode):
            empty.append(target)
        else:
            copies.append(FileCopy(path, target))
    return copies, empty


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


_large_files = threading.BoundedSemaphore(MAX_PARALLEL_LARGE_FILES)


def _slot(size: int) -> contextlib.AbstractContextManager[object]:
    """Return a context in which a file of this size may be moved: `MAX_PARALLEL_LARGE_FILES` large ones at once."""
    return contextlib.nullcontext() if 0 <= size < LARGE else _large_files


class _Transfer:
    """Moves files in several threads; each thread takes the next file when it has moved one."""

    def __init__(
        self, copies: Iterator[FileCopy], move: Move, back_off_s: float, stopped: threading.Event | None
    ) -> None:
        self._copies, self._move, self._back_off_s = copies, move, back_off_s
        self._files = self._bytes = 0
        self._failures: list[BaseException] = []
        self._stopped = stopped or threading.Event()
        self._next_lock, self._count_lock = threading.Lock(), threading.Lock()

    def run(self, threads: int, report: ProgressCallback) -> tuple[int, int]:
        """Move all files; return their number and size. Raises as `download`."""
        running = [threading.Thread(target=self._copy_files, daemon=True, name="transfer") for _ in range(threads)]
        for thread in running:
            thread.start()
        try:
            for thread in running:
                while thread.is_alive() and not self._stopped.is_set():
                    thread.join(REPORT_S)
                    report(self._files, self._bytes)
        finally:
            self._stopped.set()
            until = time.monotonic() + TIDY_S  # a server that does not answer may hold one of them
            for thread in running:
                thread.join(max(0.0, until - time.monotonic()))
        if self._failures:
            raise self._failures[0]
        report(self._files, self._bytes)
        return self._files, self._bytes

    def check(self) -> None:
        """Raise an error if no further file is to be moved."""
        if self._stopped.is_set():
            raise StagingError("stopped: not all files were moved")

    def _copy_files(self) -> None:
        try:
            while not self._stopped.is_set():
                with self._next_lock:
                    copy = next(self._copies, None)
                if copy is None:
                    return
                self._move_with_retries(copy)
                with self._count_lock:
                    self._files += 1
        except BaseException as error:
            self._failures.append(error)
            self._stopped.set()

    def _move_with_retries(self, copy: FileCopy) -> None:
        """Move a file; try again as long as bytes arrive: a file of a terabyte may meet many broken connections."""
        failures = done = furthest = 0

        def count_bytes(count: int) -> None:
            nonlocal done, furthest, failures
            if count > 0:
                self.check()
            with self._count_lock:
                self._bytes += count
            done += count
            if done > furthest:
                furthest, failures = done, 0

        while True:
            try:
                return self._move(copy, count_bytes)
            except (ConnectionBroken, EngineUnavailable):
                failures += 1
                if failures == TRIES or self._stopped.wait(self._back_off_s * 2**failures):
                    raise


def download_files(request: DownloadRequest) -> DownloadReply:
    """Answer a request for a download, through the node's cache if one of the files is to be kept there."""
    keep_freed_memory()
    cache = NodeCache.from_environment(os.environ) if any(copy.cache for copy in request.items) else None
    files, size = download(request.items, ProgressLines(), cache)
    return DownloadReply(files, size, cache.hits if cache else 0)


def upload_directories(request: UploadRequest) -> UploadReply:
    """Answer a request for an upload."""
    keep_freed_memory()
    made = {
        item.uri: OutputFiles(
            item.path,
            item.root,
            inputs=item.inputs,
            since_ns=item.since_ns,
            others=item.others,
            prepared=item.prepared,
        )
        for item in request.items
    }
    empty = [item.path for item in request.items if next(output_copies(made[item.uri], "/"), None) is None]
    report = ProgressLines()

    def upload_all() -> tuple[int, int]:
        for item in request.items:
            # An empty part exists, too: by it the commit sees what has been committed already.
            if os.path.isdir(item.path) and os.path.normpath(item.path) != os.path.normpath(item.root):
                make_directory_like(filesystem(item.uri), item.path, item.uri, is_top=True)
            else:  # a file, or the working directory, whose permission bits are not the program's
                filesystem(item.uri).mkdirs(item.uri)
        moved = upload((copy for uri, files in made.items() for copy in output_copies(files, uri)), report)
        for uri, files in made.items():
            stored = uris.StoredNames(uri, files.directory)
            for name in files.empty:
                make_directory_like(filesystem(uri), os.path.join(files.directory, name), stored.uri_of(name))
        return moved

    files, size = retry_until(upload_all)
    left_out = [line for files in made.values() for line in files.problems(f"{Path(files.directory).name}/")]
    return UploadReply(files, size, empty, left_out)


if __name__ == "__main__":
    run_helper_main({"download": download_files, "upload": upload_directories})
