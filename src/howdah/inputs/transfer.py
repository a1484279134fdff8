"""`python -m howdah.inputs.transfer download|upload`: moves files between this machine and any filesystem.

A helper process beside an executor, which has no libraries (`howdah.wire.helper_main`). A file that exists under its
name is complete: each file is written under another name and then renamed.
"""

# ruff: noqa: PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from howdah.errors import EngineUnavailable, StagingError
from howdah.inputs.download import Told, download_verified, verify_unchanged
from howdah.inputs.node_cache import NodeCache
from howdah.spec import uris
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import ConnectionBroken, Entry
from howdah.storage.io_tuning import keep_freed_memory
from howdah.storage.output_files import OutputFiles
from howdah.storage.retry import retry_until
from howdah.wire.helper_main import REPORT_S, ProgressLines, run_helper_main
from howdah.wire.helper_messages import DownloadReply, DownloadRequest, FileCopy, UploadReply, UploadRequest

# HDFS takes half a second to close a new file: many at once. Reading small ones is work for the processor, which more
# threads than hide the network's delay only hinder. Large ones fill the network by a few, and each holds some chunks.
WRITERS, READERS = 48, 16
AHEAD = 1000  # files: what one call lists of a directory
LARGE_AT_ONCE = 4
LARGE = 2 << 20
TRIES = 5
BACK_OFF_S = 0.25
"""Doubled with each try that brought nothing: 7.5 s in all, for a server that starts again."""

Report = Callable[[int, int], None]


def download(
    copies: Iterable[FileCopy], report: Report, cache: NodeCache | None = None, back_off_s: float = BACK_OFF_S
) -> tuple[int, int]:
    """Download files; return their number and size. A local file of the right size is not downloaded again.

    Raises:
        StagingError, EngineUnavailable: a file could not be downloaded: `TRIES` tries in a row brought nothing.
    """
    made: set[str] = set()
    known: dict[str, Entry] = {}

    def bring(copy: FileCopy, told: Told) -> None:
        folder = os.path.dirname(copy.path)
        if folder not in made:
            _make(folder)
            made.add(folder)
        before = known.pop(copy.uri, None)  # what was known then is not good enough for a second try
        if copy.size >= 0 and _size(copy.path) == copy.size:
            told(copy.size)
        elif cache is not None and copy.cache:
            cache.fetch(verify_unchanged(copy, before), copy.path, told, lambda: _turn(copy.size))
        else:
            with _turn(copy.size):
                download_verified(verify_unchanged(copy, before), copy.path, told)

    return _all(_foreseen(copies, known), bring, report, READERS, back_off_s)


def _foreseen(copies: Iterable[FileCopy], known: dict[str, Entry]) -> Iterator[FileCopy]:
    """Give the same files; put into `known` what one call can learn of the next `AHEAD` files."""
    rest = iter(copies)
    while some := list(itertools.islice(rest, AHEAD)):
        for root in dict.fromkeys(uris.root(copy.uri) for copy in some):
            small = [copy.uri for copy in some if 0 <= copy.size < LARGE and uris.root(copy.uri) == root]
            known.update(filesystem(small[0]).prefetch_stats(small) if small else {})
        yield from some


def upload(copies: Iterable[FileCopy], report: Report) -> tuple[int, int]:
    """Upload files; return their number and size. The directories of their URIs are made. Raises as `download`."""
    made: set[str] = set()

    def store(copy: FileCopy, told: Told) -> None:
        fs = filesystem(copy.uri)
        folder = uris.parent(copy.uri)
        if folder not in made:
            fs.mkdirs(folder)
            made.add(folder)
        with _turn(_size(copy.path)):
            told(fs.put(copy.path, copy.uri))

    return _all(copies, store, report, WRITERS, BACK_OFF_S)


def made_in(files: OutputFiles, uri: str) -> Iterator[FileCopy]:
    """Give a FileCopy for each file that a program has made; none when there is no such directory.

    Raises:
        StagingError: something in it can't be listed.
    """
    if not os.path.lexists(files.directory):
        return
    try:
        for name in files:
            yield FileCopy(os.path.join(files.directory, name), uris.join(uri, name))
    except OSError as error:
        _cannot_list(error)


def below(directory: str, uri: str) -> Iterator[FileCopy]:
    """Give a FileCopy for each file below `directory`; none when there is no such directory. Links to files are
    followed, links to directories are not.

    Raises:
        StagingError: something in it can't be listed.
    """
    if not os.path.lexists(directory):
        return
    for folder, _, names in os.walk(directory, onerror=_cannot_list):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield FileCopy(
                    path, uris.join(uri, "" if folder == directory else os.path.relpath(folder, directory), name)
                )


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _make(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StagingError(f"{folder}: {error.strerror}") from error


def _cannot_list(error: OSError) -> None:
    raise StagingError(f"{error.filename}: {error.strerror}") from error


_large = threading.BoundedSemaphore(LARGE_AT_ONCE)


def _turn(size: int) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext() if 0 <= size < LARGE else _large


class _Gauge:
    """Counts bytes from several threads."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self.bytes += count


def _all(
    copies: Iterable[FileCopy], move: Callable[[FileCopy, Told], None], report: Report, threads: int, back_off_s: float
) -> tuple[int, int]:
    work = _Work(iter(copies), move, back_off_s)
    running = [threading.Thread(target=work.run, daemon=True, name="transfer") for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        for thread in running:
            while thread.is_alive() and not work.failures:
                thread.join(REPORT_S)
                report(work.files, work.gauge.bytes)
    finally:
        work.stopped.set()
    if work.failures:  # without waiting for the others: one may be held by a server that does not answer
        raise work.failures[0]
    report(work.files, work.gauge.bytes)
    return work.files, work.gauge.bytes


class _Work:
    """The work that several threads share: each takes the next file when it has moved one."""

    def __init__(self, copies: Iterator[FileCopy], move: Callable[[FileCopy, Told], None], back_off_s: float) -> None:
        self.files, self.gauge, self.stopped = 0, _Gauge(), threading.Event()
        self.failures: list[BaseException] = []
        self._copies, self._move, self._back_off_s = copies, move, back_off_s
        self._turn = threading.Lock()

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                with self._turn:
                    copy = next(self._copies, None)
                if copy is None:
                    return
                _persistently(self._move, copy, self.gauge, self.stopped, self._back_off_s)
                with self._turn:
                    self.files += 1
        except BaseException as error:
            self.failures.append(error)
            self.stopped.set()


def _persistently(
    move: Callable[[FileCopy, Told], None], copy: FileCopy, gauge: _Gauge, stopped: threading.Event, back_off_s: float
) -> None:
    """Move a file; try again as long as bytes arrive: a file of a terabyte may meet many broken connections."""
    failures = done = most = 0

    def count_bytes(count: int) -> None:
        nonlocal done, most, failures
        if stopped.is_set() and count > 0:
            raise StagingError("stopped, for another file could not be moved")
        gauge.add(count)
        done += count
        if done > most:
            most, failures = done, 0

    while True:
        try:
            return move(copy, count_bytes)
        except (ConnectionBroken, EngineUnavailable):
            failures += 1
            if failures == TRIES or stopped.wait(back_off_s * 2**failures):
                raise


def download_files(request: DownloadRequest) -> DownloadReply:
    """Answer a request for a download, with the node's cache where one of its files is to be kept there."""
    keep_freed_memory()
    cache = NodeCache.from_environment(os.environ) if any(copy.cache for copy in request.items) else None
    files, size = download(request.items, ProgressLines(), cache)
    return DownloadReply(files, size, cache.hits if cache else 0)


def upload_directories(request: UploadRequest) -> UploadReply:
    """Answer a request for an upload."""
    keep_freed_memory()
    made = {item.uri: OutputFiles(item.path, item.root, inputs=item.inputs) for item in request.items}
    empty = [item.path for item in request.items if next(made_in(made[item.uri], "/"), None) is None]
    report = ProgressLines()

    def upload_all() -> tuple[int, int]:
        for uri in made:
            # Even an empty part exists: by it the commit sees what has been committed already.
            filesystem(uri).mkdirs(uri)
        return upload((copy for uri, files in made.items() for copy in made_in(files, uri)), report)

    files, size = retry_until(upload_all)
    left_out = [line for one in made.values() for line in one.problems(f"{Path(one.directory).name}/")]
    return UploadReply(files, size, empty, left_out)


if __name__ == "__main__":
    run_helper_main({"download": download_files, "upload": upload_directories})
