"""Reads what tasks of a running job printed: present attempts through their executors, earlier attempts from their
files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from howdah.errors import HowdahError, NoLongerThere, NotFound, RequestRefused
from howdah.logs.last_lines import LAST_BYTES, choose_last_lines, last_lines
from howdah.logs.query import LogQuery, LogSearchReply, LogSearchRequest, SearchedStream, SearchResults
from howdah.logs.store import logs_of_attempt
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.master.helper_process import run_helper
from howdah.spec import TaskId, uris
from howdah.spec.attempt import AttemptView
from howdah.spec.codec import encode
from howdah.spec.events import ContainerEnded
from howdah.wire.messages import SEARCH, LogChunk, Phase

if TYPE_CHECKING:
    from howdah.master.server.server import MasterServer

SEARCH_S = 60.0
"""Limit in seconds for the search in the logs of one task."""
LAST_WORDS_S = 3.0
MAX_PARALLEL_REQUESTS = 64
"""How many executors search at the same time: each starts a process."""
MAX_COLLECTED, MIN_PER_TASK = 4000, 20
"""How many matches are collected, however few of them are shown."""


class TaskLogs:
    """Reads and searches the logs. `directory` is the URI of the job's directory."""

    def __init__(self, api: MasterServer, directory: str) -> None:
        self._api, self._directory = api, directory
        self._searching = asyncio.Semaphore(2)
        self._executors_gone = False

    async def read(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        """Return bytes of what an attempt printed (0: the latest).

        Raises:
            RequestRefused: there is no such attempt, its output is gone, or its executor or
                node does not answer.
        """
        if self._is_present(task, attempt):
            return await self._api.log_of(task, stream, offset, limit)
        past = self._attempt(task, attempt)
        if past is None or not past.running:
            return LogChunk(request=0, offset=0, size=0)
        try:
            start, size, data = await asyncio.to_thread(self._read, task, past, stream, offset, limit)
        except OSError as error:
            raise NoLongerThere(f"what attempt {past.attempt} of {task} printed can't be read now: {error}") from None
        return LogChunk(request=0, offset=start, size=size, text=data.decode("latin-1"))

    def _read(self, task: TaskId, past: AttemptView, stream: str, offset: int, limit: int) -> tuple[int, int, bytes]:
        logs = logs_of_attempt(self._directory, task.slug, past.attempt, past.log_url)
        return logs.chunk(stream, offset, limit)

    def missing_last_lines(self, event: ContainerEnded) -> TaskId | None:
        """Return the task whose last output no executor has reported, because the executor died while its node went
        on."""
        id_ = self._api.state.containers.get(event.container_id)
        task = self._api.state.tasks[id_] if id_ is not None else None
        cut_short = task is not None and task.exit is None and task.phase is Phase.RUNNING
        return id_ if cut_short and not event.exit.lines and event.exit.cause != "lost" else None

    async def last_lines(self, task: TaskId) -> tuple[str, ...]:
        """Return the last lines of the task's present attempt, from their file; none when they cannot be read soon."""
        past = self._attempt(task, 0)
        if past is None:
            return ()
        with contextlib.suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(asyncio.to_thread(self._last_lines, task, past), LAST_WORDS_S)
        return ()

    def _last_lines(self, task: TaskId, past: AttemptView) -> tuple[str, ...]:
        lines: dict[str, tuple[str, ...]] = {}
        for stream in STREAMS:
            lines[stream] = ()
            with contextlib.suppress(OSError):
                _, _, data = self._read(task, past, stream, -LAST_BYTES, LAST_BYTES)
                lines[stream] = last_lines(data)
        return choose_last_lines(lines["stderr"], lines["stdout"])

    def stop_asking(self) -> None:
        """Ask no executor from now on: the job has ended, and the containers are released."""
        self._executors_gone = True

    def _is_present(self, task: TaskId, attempt: int) -> bool:
        """Return whether this attempt (0: the latest) has an executor that can be asked."""
        state = self._api.state.tasks.get(task)
        if self._executors_gone or state is None or state.phase is None or state.container is None:
            return False
        return attempt in (0, self._api.log.view.tasks[task].attempt)

    def _attempt(self, task: TaskId, attempt: int) -> AttemptView | None:
        view = self._api.log.view.tasks.get(task)
        if view is None:
            raise NotFound(f"no task {task}; there are {', '.join(map(str, self._api.state.tasks))}", "task")
        found = [past for past in view.attempts if attempt in (0, past.attempt)]
        if attempt and not found:
            raise NotFound(f"{task} had no attempt {attempt}", "attempt")
        return found[-1] if found else None

    async def search(self, query: LogQuery, tasks: Iterable[TaskId], attempt: int, stream: str) -> Mapping[str, Any]:
        """Search the logs of all attempts (0) or one; executors that do not answer in time make the result
        incomplete."""
        async with self._searching:
            began = time.monotonic()
            found = SearchResults(query.limit)
            asked, slots = list(tasks), asyncio.Semaphore(MAX_PARALLEL_REQUESTS)
            query = replace(query, limit=max(MIN_PER_TASK, min(query.limit, MAX_COLLECTED // max(1, len(asked)))))
            request = json.dumps({**encode(query), "limit": query.limit, "stream": stream})
            present = [task for task in asked if self._is_present(task, attempt)]
            past = tuple(self._past_streams(asked, present, attempt, stream))
            searches = [self._search_executor(task, request, slots, found) for task in present]
            if past:
                searches.append(self._search_files(LogSearchRequest(past, query), found))
            await asyncio.gather(*searches)
            return found.answer(time.monotonic() - began)

    async def _search_executor(
        self, task: TaskId, request: str, slots: asyncio.Semaphore, results: SearchResults
    ) -> None:
        async with slots:
            try:
                answer = await self._api.log_of(task, SEARCH, 0, 0, SEARCH_S, request)
                results.add(json.loads(answer.text))
            except (RequestRefused, ValueError) as error:
                results.add_problem(f"{task}: {error}")

    def _past_streams(
        self, asked: Iterable[TaskId], present: list[TaskId], attempt: int, stream: str
    ) -> Iterator[SearchedStream]:
        directory = uris.path(self._directory)
        for task in asked:
            view = self._api.log.view.tasks[task]
            for past in {past.attempt: past for past in view.attempts if past.running}.values():
                if attempt not in (0, past.attempt) or (task in present and past.attempt == view.attempt):
                    continue
                for name in STREAMS if stream == BOTH else (stream,):
                    path = "" if past.log_url else f"{directory}/tasks/{task.slug}/{past.attempt}/{name}"
                    yield SearchedStream(str(task), past.attempt, name, path=path, url=past.log_url)

    async def _search_files(self, request: LogSearchRequest, results: SearchResults) -> None:
        """Search files in a process of its own, because the master must not block."""
        try:
            reply = await run_helper("howdah.logs.search", "search", request, LogSearchReply, SEARCH_S)
            results.add(encode(reply))
        except (HowdahError, OSError, ValueError, asyncio.TimeoutError) as error:
            results.add_problem(f"earlier attempts: {error or 'no answer in time'}")
