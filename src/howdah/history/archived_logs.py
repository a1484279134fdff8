"""What tasks of ended jobs printed: brought once from where their engine keeps it, then read at any offset.

The rule: a stream is kept below a bound of bytes for all together, those used least lately go first; without room on
this machine the caller is told so, and nothing else is harmed. What a node may still have to bring is looked for again.
Nobody waits for ever: a copy that takes long is gone on with, and who asks is told to ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from howdah.api.sources import ApiError
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError
from howdah.history.log_search import SearchProcesses
from howdah.logs.search import LogQuery
from howdah.logs.search_results import SearchResults
from howdah.logs.store import DirectoryLogs, chunk
from howdah.logs.stream_index import BOTH, STREAMS, TIMES
from howdah.spec import TaskId
from howdah.wire.messages import LogChunk

MOST_BYTES, LARGEST = 2 << 30, 1 << 30
KEEP_FREE = 64 << 20
AT_ONCE = 4
"""Copies, and as many searches; others wait for them."""
WAIT_S, BRING_S, SEARCH_S = 50.0, 600.0, 50.0
"""Longest wait of a caller for a copy, longest time of a copy, longest wait for a search: callers wait a minute."""
AGAIN_S, SHARE = 5.0, 10
"""A copy that may lack something is made again after so long, and so many times what it took."""
T = TypeVar("T")
_HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")


class ArchivedLogs:
    """`folder` is where streams are kept meanwhile; it is emptied when the server begins."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bringing: dict[Path, asyncio.Future[None]] = {}
        self._good_until: dict[Path, float] = {}
        self._readers = Counter[Path]()
        self._threads = ThreadPoolExecutor(AT_ONCE, "printed")
        self._searches = SearchProcesses(AT_ONCE)
        self._closed = threading.Event()
        shutil.rmtree(folder, ignore_errors=True)

    async def read(
        self, engine: Engine, job_id: str, task: TaskId, stream: str, attempt: int, offset: int, limit: int
    ) -> LogChunk:
        """Bytes of a stream; a negative `offset` counts from the end.

        Raises:
            Refused: there is none, or no room for it here.
        """
        place = self._folder / job_id / quote(task.slug, safe="")
        self._readers[place] += 1
        try:
            await self._have(engine, job_id, task, place)
            return self._chunk(place, task, stream, attempt, offset, limit)
        except OSError as error:
            reason = error.strerror or error
            raise ApiError(503, f"what {task} printed can't be read here now: {reason}: ask again") from error
        finally:
            self._readers -= Counter([place])  # which forgets those that nobody reads

    async def _have(self, engine: Engine, job_id: str, task: TaskId, place: Path) -> None:
        there = place.is_dir()
        if not there or time.monotonic() >= self._good_until.get(place, 0.0):
            bringing = self._bringing.get(place) or self._begin(engine, job_id, task, place)
            if not there:
                await _wait_for(bringing)

    def _chunk(self, place: Path, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        os.utime(place)
        files = {name: place / f"{attempt}.{name}" for name in (*STREAMS, TIMES)}
        if not any(file.is_file() for name, file in files.items() if stream in (name, BOTH)):
            if self._good_until.get(place, 0.0) < float("inf"):
                raise ApiError(503, f"its node has not brought yet what attempt {attempt} of {task} printed: ask again")
            raise ApiError(404, f"nothing is kept of what attempt {attempt} of {task} printed to {stream}")
        start, size, data = chunk(DirectoryLogs(place, files), stream, offset, limit)
        return LogChunk(0, start, size, data.decode("latin-1"))

    async def search(
        self, engine: Engine, job_id: str, wish: LogQuery, tasks: Sequence[TaskId], attempt: int, stream: str
    ) -> Mapping[str, Any]:
        """Lines in what tasks printed; nothing is kept here.

        Raises:
            Refused: it can't be read.
        """
        began, found = time.monotonic(), SearchResults(wish.limit)
        wanted = {str(task) for task in tasks}
        pieces = functools.partial(engine.logs, job_id, tasks[0] if len(tasks) == 1 else None, "*")
        try:
            found.add(await self._searches.find(pieces, wish, wanted, attempt, stream, SEARCH_S))
        except asyncio.TimeoutError:
            asked = "name fewer tasks, or a simpler pattern"
            raise ApiError(504, f"the search has not ended within {SEARCH_S:.0f} s: {asked}") from None
        except EngineUnavailable as error:
            raise ApiError(503, str(error)) from error
        except HowdahError as error:
            raise ApiError(404, str(error)) from error
        except OSError as error:
            raise ApiError(503, f"the search can't be done now: {error.strerror or error}") from error
        return found.answer(time.monotonic() - began)

    def close(self) -> None:
        """Bring and search nothing more. What waits for an engine ends with its next piece."""
        self._closed.set()
        self._searches.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self, engine: Engine, job_id: str, task: TaskId, place: Path) -> asyncio.Future[None]:
        bringing = self._bringing[place] = asyncio.ensure_future(self._bring(engine, job_id, task, place))

        def ended(_: object) -> None:
            del self._bringing[place]
            if not bringing.cancelled():
                bringing.exception()  # there may be nobody left who wants to know

        bringing.add_done_callback(ended)
        return bringing

    async def _bring(self, engine: Engine, job_id: str, task: TaskId, place: Path) -> None:
        """Copy it; in one step to its place, for others may be reading what was there."""
        began = time.monotonic()
        fresh, old = (place.with_name(f"{place.name}{end}") for end in (".part", ".old"))
        try:
            settled = await self._in_thread(lambda: self._copied(engine, job_id, task, fresh))
            if place.is_dir():
                place.rename(old)
            fresh.rename(place)
        except EngineUnavailable as error:
            raise ApiError(503, str(error)) from error
        except HowdahError as error:
            raise ApiError(404, str(error)) from error
        except OSError as error:
            raise ApiError(503, f"no room here for what {task} printed: {error.strerror or error}") from error
        now = time.monotonic()
        self._good_until[place] = float("inf") if settled else now + max(AGAIN_S, SHARE * (now - began))
        await self._shed(place, old)
        for gone in [each for each in self._good_until if each not in self._bringing and not each.is_dir()]:
            del self._good_until[gone]

    def _in_thread(self, call: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _copied(self, engine: Engine, job_id: str, task: TaskId, fresh: Path) -> bool:
        """Whether that is all there will be: known before, for what comes meanwhile may be missed."""
        try:
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True, mode=0o700)
            settled = engine.logs_complete(job_id)
            self._copy(engine, job_id, task, fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        return settled

    def _copy(self, engine: Engine, job_id: str, task: TaskId, into: Path) -> None:
        files = {}
        until = time.monotonic() + BRING_S
        with contextlib.ExitStack() as stack:
            for heading, piece in engine.logs(job_id, task, "*"):
                if self._closed.is_set():
                    raise EngineUnavailable("the history server is ending")
                if time.monotonic() > until:
                    raise EngineUnavailable(f"what {task} printed could not be brought here within {BRING_S:.0f} s")
                found = _HEADING.fullmatch(heading)
                if not found:
                    continue
                name = f"{found[2]}.{found[3]}"
                if name not in files:
                    files[name] = stack.enter_context((into / name).open("wb"))
                if files[name].tell() < LARGEST:
                    if shutil.disk_usage(into).free < KEEP_FREE:
                        raise OSError(28, "the disk is nearly full")
                    files[name].write(piece)

    async def _shed(self, newest: Path, old: Path) -> None:
        """Which go is decided here, not in a thread: nobody is in the midst of reading, and who waits to is known."""
        sizes = await self._in_thread(lambda: self._sizes(old))
        total, gone = sum(sizes.values()), list[Path]()
        for place, size in sizes.items():
            if total > MOST_BYTES and place != newest and place not in self._readers:
                with contextlib.suppress(OSError):  # somebody else sheds, too
                    gone.append(place.rename(place.with_name(f"{place.name}.old")))
                total -= size
        await self._in_thread(lambda: _remove(gone))

    def _sizes(self, old: Path) -> dict[Path, int]:
        """Of all copies, those used least lately first; `old` is none."""
        shutil.rmtree(old, ignore_errors=True)
        copies = [each for each in self._folder.glob("*/*") if each.suffix not in (".part", ".old")]
        return {place: _size(place) for place in sorted(copies, key=_used_at)}


async def _wait_for(bringing: asyncio.Future[None]) -> None:
    try:
        await asyncio.wait_for(asyncio.shield(bringing), WAIT_S)
    except asyncio.TimeoutError:
        raise ApiError(504, f"it takes more than {WAIT_S:.0f} s to bring this log here: ask again") from None


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _size(place: Path) -> int:
    with contextlib.suppress(OSError):  # somebody else sheds, too
        return sum(file.stat().st_size for file in place.iterdir())
    return 0


def _used_at(place: Path) -> float:
    with contextlib.suppress(OSError):
        return place.stat().st_mtime
    return 0.0
