"""Tests the HTTP server over real sockets: files, answers in pieces, and clients that disconnect."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from howdah.api import http_server
from howdah.api.http_server import Caller, Request, Response
from howdah.errors import NoLongerThere

LARGE = 8 << 20


async def answer(request: Request) -> Response:
    """A file below the directory that is named by the query, or an echo."""
    if request.path == "/echo":
        return Response(200, f"{request.method} {request.peer}".encode() + request.body, "text/plain")
    return Response(200, content_type="text/plain", file=Path(request.query["file"]))


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, target: str
) -> tuple[str, bytes]:
    writer.write(f"{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
    return head, b"" if method == "HEAD" else await reader.readexactly(length)


def anybody(_: Request) -> Caller:
    return Caller("", 1 << 20)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(b"0123456789abcdef" * (LARGE // 16))
    return path


def test_a_file_is_sent_whole_and_the_connection_goes_on(large: Path) -> None:
    async def run() -> None:
        running = await http_server.serve(answer, anybody, "127.0.0.1")
        reader, writer = await asyncio.open_connection(*running.sockets[0].getsockname(), limit=1 << 20)
        for _ in range(2):
            head, body = await ask(reader, writer, "GET", f"/x?file={large}")
            assert body == large.read_bytes()
            head, body = await ask(reader, writer, "HEAD", f"/x?file={large}")
            assert f"Content-Length: {LARGE}" in head
            assert (await ask(reader, writer, "GET", "/echo"))[1] == b"GET 127.0.0.1"
        writer.close()
        running.close()

    asyncio.run(run())


def test_a_caller_that_leaves_in_the_middle_harms_no_other_caller(large: Path, tmp_path: Path) -> None:
    async def run() -> None:
        running = await http_server.serve(answer, anybody, "127.0.0.1")
        address = running.sockets[0].getsockname()
        for _ in range(5):
            reader, writer = await asyncio.open_connection(*address, limit=1 << 16)
            writer.write(f"GET /x?file={large} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            await reader.readexactly(1000)
            writer.transport.abort()
        reader, writer = await asyncio.open_connection(*address)
        assert (await ask(reader, writer, "GET", "/echo"))[1] == b"GET 127.0.0.1"
        writer.write(f"GET /x?file={tmp_path}/none HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        assert await reader.read() == b""  # half an answer can't be taken back: none was begun
        writer.close()
        running.close()

    asyncio.run(run())


class Counted:
    """Pieces of 64 KiB that count those which were taken."""

    def __init__(self, many: int, fails: bool = False) -> None:
        self.many, self.fails = many, fails
        self.taken, self.closed = 0, asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.taken < self.many:
            self.taken += 1
            yield bytes([self.taken % 256]) * (64 << 10)
        if self.fails:
            raise NoLongerThere("it is gone")

    async def aclose(self) -> None:
        assert not self.closed.is_set()
        self.closed.set()


@contextlib.asynccontextmanager
async def sending(pieces: Counted) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A caller that has asked for them, and reads no more than 64 KiB ahead."""

    async def give(request: Request) -> Response:
        return Response(200, b"after", "text/plain", pieces=pieces if request.path == "/pieces" else None)

    running = await http_server.serve(give, anybody, "127.0.0.1")
    reader, writer = await asyncio.open_connection(*running.sockets[0].getsockname(), limit=1 << 16)
    writer.write(b"GET /pieces HTTP/1.1\r\nHost: h\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert b"Content-Length" not in head
    yield reader, writer
    writer.close()
    running.close()


async def chunk_of(reader: asyncio.StreamReader) -> bytes:
    size = int(await reader.readline(), 16)
    return (await reader.readexactly(size + 2))[:-2]


def test_pieces_are_made_as_they_are_taken_and_the_connection_goes_on() -> None:
    async def run() -> None:
        pieces = Counted(1000)
        async with sending(pieces) as (reader, writer):
            first = await chunk_of(reader)
            assert await settled(pieces) < 500  # what the sockets hold, and not all of 64 MB
            bodies = [first]
            while bodies[-1]:
                bodies.append(await chunk_of(reader))
            assert [body[0] for body in bodies[:-1]] == [number % 256 for number in range(1, 1001)]
            await pieces.closed.wait()
            assert (await ask(reader, writer, "GET", "/other"))[1] == b"after"

    asyncio.run(asyncio.wait_for(run(), 120))


async def settled(pieces: Counted) -> int:
    """How many were made when no more are."""
    count = -1
    while count != pieces.taken:
        count = pieces.taken
        await asyncio.sleep(0.1)
    return count


def test_an_error_among_pieces_is_seen_by_who_takes_them(capfd: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        pieces = Counted(2, fails=True)
        async with sending(pieces) as (reader, _):
            assert [len(await chunk_of(reader)) for _ in range(2)] == [64 << 10] * 2
            with pytest.raises((ConnectionError, ValueError)):
                await chunk_of(reader)
            await pieces.closed.wait()

    asyncio.run(asyncio.wait_for(run(), 120))
    assert "broken off: it is gone" in capfd.readouterr().err


def test_who_leaves_while_pieces_come_is_not_waited_for() -> None:
    async def run() -> None:
        pieces = Counted(100_000)
        async with sending(pieces) as (_, writer):
            writer.transport.abort()
            await pieces.closed.wait()
        assert pieces.taken < 100_000

    asyncio.run(asyncio.wait_for(run(), 120))
