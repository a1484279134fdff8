"""The HTTP server over real sockets: files from the disk, a socket of the file system, callers that leave."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from howdah.web import server
from howdah.web.server import Request, Response

LARGE = 8 << 20


async def answer(request: Request) -> Response:
    """A file below the folder that is named by the query, or an echo."""
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


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(b"0123456789abcdef" * (LARGE // 16))
    return path


def test_a_file_is_sent_whole_and_the_connection_goes_on(large: Path) -> None:
    async def run() -> None:
        running = await server.serve(answer, "127.0.0.1")
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


def test_a_caller_that_leaves_in_the_middle_harms_nobody(large: Path, tmp_path: Path) -> None:
    async def run() -> None:
        running = await server.serve(answer, "127.0.0.1")
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


def test_a_socket_of_the_file_system(tmp_path: Path) -> None:
    async def run() -> None:
        running = await server.serve_socket(answer, tmp_path / "s")
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        assert (await ask(reader, writer, "GET", "/echo"))[1] == b"GET "
        writer.close()
        running.close()

    asyncio.run(run())
