"""Tests downloading a log as a file: in pieces, a few downloads at once, with clients that disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from howdah.api.handlers import logs
from howdah.api.handlers.logs import MAX_DOWNLOADS, PIECE_BYTES, Download
from howdah.api.http_server import Request, Response
from howdah.api.routes import ApiRequest
from howdah.errors import NotFound, NotReady
from howdah.spec import TaskId
from howdah.spec.view import JobView, TaskView
from howdah.wire.messages import LogChunk

TASK = TaskId("worker", 0)
LOG = "第一行\n".encode() * 200_000


@dataclass
class Job:
    """Of one task, which has printed `log`, if anything."""

    log_: bytes | None = LOG
    reads: int = 0
    view: JobView = field(default_factory=lambda: JobView(tasks={TASK: TaskView(TASK)}))

    async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
        if self.log_ is None:
            raise NotFound("nothing is kept")
        self.reads += 1
        return LogChunk(
            request=0, offset=offset, size=len(self.log_), text=self.log_[offset : offset + limit].decode("latin-1")
        )


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert Download.open_downloads == 0


async def begun(job: Job) -> Response:
    request = Request("GET", "/", {}, b"", "127.0.0.1")
    return await logs.download(ApiRequest(request, None, job, {"task": str(TASK)}, {}))  # type: ignore[arg-type]


async def taken(response: Response) -> bytes:
    assert response.pieces is not None
    found = b"".join([piece async for piece in response.pieces])
    await response.pieces.aclose()
    return found


def test_a_log_is_downloaded_whole_in_pieces() -> None:
    async def run() -> None:
        job = Job()
        response = await begun(job)
        assert job.reads == 1
        assert response.file is None
        assert await taken(response) == LOG
        assert job.reads == -(-len(LOG) // PIECE_BYTES)
        assert await taken(await begun(Job(b""))) == b""

    asyncio.run(run())


def test_what_is_printed_meanwhile_is_not_waited_for() -> None:
    class Printing(Job):
        async def log(self, task: TaskId, stream: str, attempt: int, offset: int, limit: int) -> LogChunk:
            assert self.reads < 50
            chunk = await super().log(task, stream, attempt, offset, limit)
            self.log_ = (self.log_ or b"") + b"more\n"
            return chunk

    async def run() -> None:
        assert await taken(await begun(Printing())) == LOG

    asyncio.run(run())


def test_few_at_once_and_the_next_when_one_has_ended() -> None:
    async def run() -> None:
        responses = [await begun(Job()) for _ in range(MAX_DOWNLOADS)]
        with pytest.raises(NotReady):
            await begun(Job())
        assert responses[0].pieces is not None
        await responses[0].pieces.aclose()  # its caller left before a piece was sent
        responses[0] = await begun(Job())
        for response in responses:
            assert await taken(response) == LOG

    asyncio.run(run())


def test_what_is_not_there_is_refused_with_a_status() -> None:
    async def run() -> None:
        for _ in range(MAX_DOWNLOADS + 1):
            with pytest.raises(NotFound):
                await begun(Job(None))

    asyncio.run(run())
