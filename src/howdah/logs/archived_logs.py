"""The logs of ended jobs: copied once from the engine's archive, then read at any offset.

The rule: the copies of all tasks together stay below a bound of bytes, and those used least recently are removed first.
If this machine has no room the request is refused, and nothing else is harmed. A copy that may be incomplete, because a
node has not delivered its logs yet, is made again. No request waits forever: a copy that takes long goes on, and its
request is refused with the advice to ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from howdah.errors import AnswerTimeout, EngineUnavailable, HowdahError, NotFound, NotReady
from howdah.logs.archive import LogArchive, copy_streams
from howdah.logs.archived_search import ArchivedSearches
from howdah.logs.query import LogQuery, SearchResults
from howdah.logs.store import DirectoryLogs
from howdah.logs.stream_index import BOTH, STREAMS, TIMES
from howdah.spec import TaskId
from howdah.wire.messages import LogChunk

MAX_BYTES, MAX_STREAM_BYTES = 2 << 30, 1 << 30
"""The largest size of all copies together, and of the copy of one stream."""
KEEP_FREE = 64 << 20
"""Bytes that stay free on the disk."""
PARALLEL = 4
"""Number of copies at a time, and of searches at a time; others wait."""
WAIT_S, COPY_S, SEARCH_S = 50.0, 600.0, 50.0
"""Longest wait of a request for a copy, longest time of a copy, longest wait for a search: callers wait a minute."""
REFRESH_S, REFRESH_FACTOR = 5.0, 10
"""A copy that may be incomplete is made again after this time, or after this multiple of the time that the copy
took."""
T = TypeVar("T")


class ArchivedLogs:
    """Reads and searches archived logs. `directory` holds the copies; it is emptied first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._copying: dict[Path, asyncio.Future[None]] = {}
        self._valid_until: dict[Path, float] = {}
        self._readers = Counter[Path]()
        self._threads = ThreadPoolExecutor(PARALLEL, "archived-logs")
        self._searches = ArchivedSearches(PARALLEL)
        self._closed = threading.Event()
        shutil.rmtree(directory, ignore_errors=True)

    async def read(
        self,
        archive: LogArchive,
        job_id: str,
        task: TaskId,
        stream: str,
        attempt: int,
        offset: int,
        limit: int,
        directory: str = "",
    ) -> LogChunk:
        """Read bytes of a stream; a negative `offset` counts from the end. `directory` is the job's, which tells it
        from a job of the same id on another cluster.

        Raises:
            NotFound, NotReady, AnswerTimeout: the log does not exist, or cannot be copied to this machine now.
        """
        place = f"{job_id}-{hashlib.sha256(directory.encode()).hexdigest()[:12]}" if directory else job_id
        path = self._directory / place / quote(task.slug, safe="")
        self._readers[path] += 1
        try:
            copied = path.is_dir()
            if not copied or time.monotonic() >= self._valid_until.get(path, 0.0):
                copying = self._copying.get(path) or self._start_copy(archive, job_id, task, path)
                if not copied:
                    await _wait_for_copy(copying)
            return self._read_copy(path, task, stream, attempt, offset, limit)
        except OSError as error:
            reason = error.strerror or error
            raise NotReady(f"what {task} printed can't be read here now: {reason}: try again") from error
        finally:
            self._readers -= Counter([path])  # subtraction drops paths that no request reads

    def _read_copy(self, path: Path, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        os.utime(path)
        files = {name: path / f"{attempt}.{name}" for name in (*STREAMS, TIMES)}
        if not any(file.is_file() for name, file in files.items() if stream in (name, BOTH)):
            if self._valid_until.get(path, 0.0) < float("inf"):
                raise NotReady(f"its node has not brought yet what attempt {attempt} of {task} printed: try again")
            raise NotFound(f"nothing is kept of what attempt {attempt} of {task} printed to {stream}")
        start, size, data = DirectoryLogs(path, files).chunk(stream, offset, limit)
        return LogChunk(request=0, offset=start, size=size, text=data.decode("latin-1"))

    async def search(
        self, archive: LogArchive, job_id: str, query: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str
    ) -> Mapping[str, Any]:
        """Search the logs of these tasks in the archive; no copy is made.

        Raises:
            NotFound, NotReady, AnswerTimeout: the archive cannot be read, or not in time.
        """
        began, results = time.monotonic(), SearchResults(query.limit)
        read = functools.partial(archive.logs, job_id, tasks[0] if len(tasks) == 1 else None, "*")
        names = {str(task) for task in tasks}
        try:
            results.add(await self._searches.search(read, query, names, attempt, stream, SEARCH_S))
        except asyncio.TimeoutError:
            advice = "name fewer tasks, or a simpler pattern"
            raise AnswerTimeout(f"the search has not ended within {SEARCH_S:.0f} s: {advice}") from None
        except EngineUnavailable as error:
            raise NotReady(str(error)) from error
        except HowdahError as error:
            raise NotFound(str(error)) from error
        except OSError as error:
            raise NotReady(f"the search can't be done now: {error.strerror or error}") from error
        return results.answer(time.monotonic() - began)

    def close(self) -> None:
        """End all copies and searches. A thread that waits for the archive ends when the next piece comes."""
        self._closed.set()
        self._searches.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start_copy(self, archive: LogArchive, job_id: str, task: TaskId, path: Path) -> asyncio.Future[None]:
        copying = self._copying[path] = asyncio.ensure_future(self._copy(archive, job_id, task, path))

        def forget(_: object) -> None:
            del self._copying[path]
            if not copying.cancelled():
                copying.exception()  # all its callers may have left, and asyncio complains of an error that is not read

        copying.add_done_callback(forget)
        return copying

    async def _copy(self, archive: LogArchive, job_id: str, task: TaskId, path: Path) -> None:
        """Copy the logs of a task. The copy is put in its place in one step, because other requests may be reading the
        old one."""
        began = time.monotonic()
        fresh, old = (path.with_name(f"{path.name}{end}") for end in (".part", ".old"))
        try:
            complete = await self._in_thread(lambda: self._copy_into(archive, job_id, task, fresh))
            if path.is_dir():
                path.rename(old)
            fresh.rename(path)
        except EngineUnavailable as error:
            raise NotReady(str(error)) from error
        except HowdahError as error:
            raise NotFound(str(error)) from error
        except OSError as error:
            raise NotReady(f"no room here for what {task} printed: {error.strerror or error}") from error
        now = time.monotonic()
        self._valid_until[path] = float("inf") if complete else now + max(REFRESH_S, REFRESH_FACTOR * (now - began))
        await self._remove_oldest(path, old)
        for gone in [each for each in self._valid_until if each not in self._copying and not each.is_dir()]:
            del self._valid_until[gone]

    def _in_thread(self, call: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _copy_into(self, archive: LogArchive, job_id: str, task: TaskId, directory: Path) -> bool:
        """Copy the logs, and return whether the archive was complete. This is asked before the copy, because logs that
        arrive meanwhile may be missed."""
        try:
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True, mode=0o700)
            complete = archive.logs_complete(job_id)
            pieces = self._while_allowed(archive.logs(job_id, task, "*"), task, directory)
            copy_streams(pieces, lambda key: directory / f"{key.attempt}.{key.stream}", MAX_STREAM_BYTES)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return complete

    def _while_allowed(
        self, pieces: Iterable[tuple[str, bytes]], task: TaskId, directory: Path
    ) -> Iterator[tuple[str, bytes]]:
        """Yield `pieces` as long as the copy may go on."""
        until = time.monotonic() + COPY_S
        for piece in pieces:
            if self._closed.is_set():
                raise EngineUnavailable("the history server is ending")
            if time.monotonic() > until:
                raise EngineUnavailable(f"what {task} printed could not be brought here within {COPY_S:.0f} s")
            if shutil.disk_usage(directory).free < KEEP_FREE:
                raise OSError(28, "the disk is nearly full")
            yield piece

    async def _remove_oldest(self, newest: Path, old: Path) -> None:
        """Remove the copies used least recently until all fit. The choice is made on the event loop, not in a thread:
        there no read is in progress, and all waiting readers are known."""
        sizes = await self._in_thread(lambda: self._copy_sizes(old))
        total, gone = sum(sizes.values()), list[Path]()
        for path, size in sizes.items():
            if total > MAX_BYTES and path != newest and path not in self._readers:
                with contextlib.suppress(OSError):  # another call removes copies, too
                    gone.append(path.rename(path.with_name(f"{path.name}.old")))
                total -= size
        await self._in_thread(lambda: _remove(gone))

    def _copy_sizes(self, old: Path) -> dict[Path, int]:
        """Return the size of each copy, the least recently used first; `old`, a copy that was replaced, is removed."""
        shutil.rmtree(old, ignore_errors=True)
        copies = [each for each in self._directory.glob("*/*") if each.suffix not in (".part", ".old")]
        return {path: _size(path) for path in sorted(copies, key=_used_at)}


async def _wait_for_copy(copying: asyncio.Future[None]) -> None:
    try:
        await asyncio.wait_for(asyncio.shield(copying), WAIT_S)
    except asyncio.TimeoutError:
        raise AnswerTimeout(f"it takes more than {WAIT_S:.0f} s to bring this log here: try again") from None


def _remove(directories: Iterable[Path]) -> None:
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):  # another call removes copies, too
        return sum(file.stat().st_size for file in path.iterdir())
    return 0


def _used_at(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
