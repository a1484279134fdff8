"""A small HTTP/1.1 server over asyncio: Content-Length bodies, keep-alive, bounded sizes; nothing else.

Why not a framework: ten thousand executors beat once in two seconds on one core, and the master has 45 MB
(docs/adr/0004 has the figures).
"""

from __future__ import annotations

import asyncio
import contextlib
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

MAX_HEAD = 32 << 10
MAX_BODY = 4 << 20
IDLE_S = 120.0
_REASONS = {
    200: "OK",
    304: "Not Modified",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    500: "Internal Server Error",
    504: "Gateway Timeout",
}


@dataclass(frozen=True)
class Request:
    """`target` is the path with its query as sent; header names are lower case; `peer` is the caller's IP address."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    peer: str

    @property
    def path(self) -> str:
        """The path without its query."""
        return urllib.parse.unquote(self.target.partition("?")[0])

    @property
    def query(self) -> dict[str, str]:
        """The query's last value of each name."""
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2]))


@dataclass(frozen=True)
class Response:
    """An answer; `Content-Length` is added."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """The bytes are not a request we take."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def serve(handler: Handler, host: str, port: int = 0) -> asyncio.Server:
    """Listen; `server.sockets[0].getsockname()` tells the port."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # CancelledError: the master ends; a task that says so is reported by asyncio as a fault.
        ends = (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*ends):
            await _converse(handler, reader, writer)
        with contextlib.suppress(ConnectionError):
            writer.close()

    return await asyncio.start_server(connection, host, port, limit=MAX_HEAD, backlog=1024)


async def _converse(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    peer = str((writer.get_extra_info("peername") or ("",))[0])
    while True:
        try:
            request = await asyncio.wait_for(_read(reader, peer), IDLE_S)
        except BadRequest as error:
            await _write(writer, Response(error.status, f"{error}\n".encode(), "text/plain"), close=True)
            return
        if request is None:
            return
        close = request.headers.get("connection", "").lower() == "close"
        response = await handler(request)
        await _write(writer, response, close, head_only=request.method == "HEAD")
        if close:
            return


async def _read(reader: asyncio.StreamReader, peer: str) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    except asyncio.LimitOverrunError:
        raise BadRequest(413, f"a request's head has at most {MAX_HEAD} bytes") from None
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(400, "not an HTTP/1.1 request line")
    headers = {}
    for line in lines[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise BadRequest(400, "send a Content-Length, not chunks")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise BadRequest(413, f"a body has at most {MAX_BODY} bytes")
    body = await reader.readexactly(int(length))
    return Request(words[0], words[1], headers, body, peer)


async def _write(writer: asyncio.StreamWriter, response: Response, close: bool, head_only: bool = False) -> None:
    lines = [
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    if close:
        lines.append("Connection: close")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (b"" if head_only else response.body))
    await writer.drain()
