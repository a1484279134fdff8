"""Handlers for what tasks printed, beyond a piece of one stream: searched in all of them, and as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from howdah.api.http_server import Response
from howdah.api.routes import ApiRequest
from howdah.api.sources import ApiError, JobSource
from howdah.logs.query import LogQuery, QueryError, whole_number
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec import TaskId
from howdah.spec.view import JobView

PIECE, MOST_BYTES = 512 << 10, 2 << 30
AT_ONCE = 4
"""Downloads of one program: each has a few pieces in memory."""


async def search(asked: ApiRequest) -> Any:
    """Lines that hold a text, or are of a level."""
    return await find(asked.one, asked.query)


async def find(job: JobSource, query: Mapping[str, str]) -> Any:
    """The same, by the query alone.

    Raises:
        Refused: it makes no sense.
    """
    try:
        wish, attempt = LogQuery.of(query), whole_number(query, "attempt", 0)
    except QueryError as error:
        raise ApiError(400, str(error), error.name) from None
    stream = query.get("stream") or BOTH
    if stream not in (BOTH, *STREAMS):
        raise ApiError(400, f"stream is {stream[:40]!r}, must be stdout, stderr or both", "stream")
    return await job.search(wish, tasks_of(job.view, query.get("task", "")), attempt, stream)


def tasks_of(view: JobView, text: str) -> list[TaskId]:
    """The tasks that `text` names, with commas between: a task, a role, or a span of ranks such as worker:0-7.

    Raises:
        Refused: there is no such task.
    """
    if text in ("", "*"):
        return list(view.tasks)
    found: dict[TaskId, None] = {}
    for word in text.split(","):
        chosen = [task for task in view.tasks if _names(word, task)]
        if not chosen:
            raise ApiError(404, f"the job has no task {word[:80]}", "task")
        found.update(dict.fromkeys(chosen))
    return list(found)


def _names(word: str, task: TaskId) -> bool:
    role, _, ranks = word.partition(":")
    first, _, last = ranks.partition("-")
    if role != task.role or not ranks:
        return word == task.role
    return first.isdigit() and int(first) <= task.index <= int(last if last.isdigit() else first)


class Download:
    """A stream from its beginning, a piece at a time; one of few."""

    under_way = 0

    def __init__(self, job: JobSource, task: TaskId, stream: str, attempt: int) -> None:
        if Download.under_way >= AT_ONCE:
            raise ApiError(503, f"{AT_ONCE} logs are being downloaded, which are the most at once: ask again later")
        Download.under_way += 1
        self._asked = job, task, stream, attempt
        self._offset, self._first = 0, b""

    async def begin(self) -> None:
        """Fetch the first piece.

        Raises:
            Refused: there is none.
        """
        try:
            self._first = await self._piece()
        except BaseException:
            await self.aclose()
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        piece, self._first = self._first, b""
        while piece:
            yield piece
            piece = await self._piece() if self._offset < MOST_BYTES else b""

    async def _piece(self) -> bytes:
        job, task, stream, attempt = self._asked
        chunk = await job.log(task, stream, attempt, self._offset, PIECE)
        self._offset = chunk.offset + len(chunk.text)
        return chunk.text.encode("latin-1")

    async def aclose(self) -> None:
        """Another may begin."""
        Download.under_way -= 1


async def download(asked: ApiRequest) -> Response:
    """All of a stream as a file."""
    from howdah.api.handlers.job import task_of

    task, stream = task_of(asked), asked.query.get("stream") or BOTH
    if stream not in (BOTH, *STREAMS):
        raise ApiError(400, f"stream is {stream[:40]!r}, must be stdout, stderr or both", "stream")
    attempt = asked.number("attempt", 0, least=0)
    pieces = Download(asked.one, task, stream, attempt)
    await pieces.begin()
    shown = f"{task.slug}-{attempt or asked.one.view.tasks[task].attempt}-{stream}.txt"
    headers = {
        "Content-Disposition": f'attachment; filename="{shown}"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
        "Cache-Control": "no-store",
    }
    return Response(200, content_type="text/plain; charset=utf-8", headers=headers, pieces=pieces)
