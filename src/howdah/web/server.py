"""A small HTTP/1.1 server over asyncio: Content-Length bodies, keep-alive, bounded sizes; nothing else.

Why not a framework, nor asyncio's streams: ten thousand executors beat once in two seconds on one core, and each keeps
two connections open while the master has 45 MB and 20 kB for each (docs/adr/0004 has the figures). The curves service
is asked in the same way, over a socket in the file system.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import sys
import traceback
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from howdah.spec.values import dataclass
from howdah.wire.ports import bound

MAX_HEAD = 32 << 10
MAX_BODY = 4 << 20
IDLE_S = 120.0
_SHORT = 256
_REASONS = {
    200: "OK",
    304: "Not Modified",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
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
        return _split(self.target)[0]

    @property
    def query(self) -> dict[str, str]:
        """The query's last value of each name."""
        return dict(_split(self.target)[1])


def _split(target: str) -> tuple[str, Mapping[str, str]]:
    return _known(target) if len(target) < _SHORT else _known.__wrapped__(target)


@functools.lru_cache(maxsize=256)
def _known(target: str) -> tuple[str, Mapping[str, str]]:
    """Ten thousand executors ask for the same."""
    path, _, query = target.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query))


class Pieces(Protocol):
    """Bytes that come one after the other."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Called once, when no more are wanted, whether any were asked for or not."""
        ...


@dataclass(frozen=True)
class Response:
    """An answer; its length is added. In place of `body` a `file` is sent from the disk, never held in memory, or
    `pieces`, as they come and as fast as they are taken; an error among them breaks the connection off."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    pieces: Pieces | None = None


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """The bytes are not a request we take."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def serve(handler: Handler, host: str, port: int = 0, among: Sequence[int] = ()) -> asyncio.Server:
    """Listen at `port`, or at a free one of `among`; `server.sockets[0].getsockname()` tells which.

    Raises:
        OSError: that is not possible; names the ports if none of `among` is free.
    """
    open_: set[_Connection] = set()
    loop = asyncio.get_running_loop()
    if among:
        family, _, _, _, address = (await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM))[0]
        taken = bound(family, str(address[0]), among)
        make = loop.create_server(lambda: _Connection(handler, open_), sock=taken, backlog=1024)
    else:
        make = loop.create_server(lambda: _Connection(handler, open_), host, port, backlog=1024)
    return _swept(await make, open_)


async def serve_socket(handler: Handler, path: Path) -> asyncio.Server:
    """Listen at a socket of the file system; whoever can reach it may ask, so keep its directory to yourself."""
    open_: set[_Connection] = set()
    make = asyncio.get_running_loop().create_unix_server(lambda: _Connection(handler, open_), str(path))
    return _swept(await make, open_)


def _swept(server: asyncio.Server, open_: set[_Connection]) -> asyncio.Server:
    """Idle connections are closed."""
    loop = asyncio.get_running_loop()

    def sweep() -> None:
        """One timer for all, rather than one for each."""
        for connection in list(open_):
            connection.close_if_idle(loop.time() - IDLE_S)
        if server.is_serving():
            loop.call_later(IDLE_S / 4, sweep)

    loop.call_later(IDLE_S / 4, sweep)
    return server


class _Connection(asyncio.Protocol):
    """One caller, answered one request after the other: the next one's bytes wait in the buffer."""

    __slots__ = ("_answering", "_buffer", "_full", "_handler", "_heard_at", "_loop", "_open", "_room", "_transport")
    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop

    def __init__(self, handler: Handler, open_: set[_Connection]) -> None:
        self._handler, self._open = handler, open_
        self._buffer = b""
        self._answering: asyncio.Task[None] | None = None
        self._full = False
        self._room: asyncio.Future[None] | None = None
        self._heard_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()  # asking for it costs a system call
        self._heard_at = self._loop.time()
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open.discard(self)
        self._buffer = b""
        self._wake()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()
        self._next()

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def close_if_idle(self, since: float) -> None:
        """Close when nothing is being answered and nothing was heard after `since` (loop time)."""
        if self._answering is None and self._heard_at < since:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._buffer += data
        if len(self._buffer) > MAX_HEAD + MAX_BODY:
            self._transport.abort()
        else:
            self._next()

    def _next(self) -> None:
        """Begin with the next request, when it is whole and the last answer is on its way."""
        if self._answering is not None or self._full or not self._buffer:
            return
        try:
            parsed = _parse(self._buffer, self._peer)
        except BadRequest as error:
            self._buffer = b""
            self._send(Response(error.status, f"{error}\n".encode(), "text/plain"), close=True)
            return
        if parsed is not None:
            request, used = parsed
            self._buffer = self._buffer[used:]
            self._answering = self._loop.create_task(self._answer(request))

    @property
    def _peer(self) -> str:
        address = self._transport.get_extra_info("peername")
        return str(address[0]) if isinstance(address, tuple) else ""

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._handler(request)
        except Exception:  # a bug of ours: the caller is told, and the log has the whole of it
            traceback.print_exc(file=sys.stderr)
            response = Response(500, b"a fault of ours: the log of this server has more\n", "text/plain")
        close = request.headers.get("connection", "").lower() == "close"
        if response.file is not None:
            await self._send_file(response, response.file, close, request.method == "HEAD")
        elif response.pieces is not None:
            await self._send_pieces(response, response.pieces, close, request.method == "HEAD")
        else:
            self._send(response, close, head_only=request.method == "HEAD")
        self._answering = None
        self._next()

    async def _send_file(self, response: Response, path: Path, close: bool, head_only: bool) -> None:
        if self._transport.is_closing():
            return
        try:
            with path.open("rb") as file:
                self._transport.write(_head(response, close, path.stat().st_size))
                if not head_only:
                    await asyncio.get_running_loop().sendfile(self._transport, file)
        except OSError:  # half an answer can't be taken back
            self._transport.abort()
        if close:
            self._transport.close()

    async def _send_pieces(self, response: Response, pieces: Pieces, close: bool, head_only: bool) -> None:
        """In chunks (RFC 9112, 7.1), so that one who gets half of it knows."""
        try:
            self._transport.write(_head(response, close, None))
            if not head_only:
                async for piece in pieces:
                    if piece:
                        self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await self._taken()
                self._transport.write(b"0\r\n\r\n")
        except Exception as error:
            self._transport.abort()
            if not isinstance(error, ConnectionError):
                print(f"an answer is broken off: {error or type(error).__name__}", file=sys.stderr)
        finally:
            await pieces.aclose()
        if close:
            self._transport.close()

    async def _taken(self) -> None:
        """Wait until there is room for more.

        Raises:
            ConnectionError: the caller has left.
            asyncio.TimeoutError: it takes nothing.
        """
        if self._full and not self._transport.is_closing():
            self._room = self._loop.create_future()
            await asyncio.wait_for(self._room, IDLE_S)
        if self._transport.is_closing():
            raise ConnectionError("its caller has left")

    def _send(self, response: Response, close: bool, head_only: bool = False) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(_head(response, close, len(response.body)) + (b"" if head_only else response.body))
        if close:
            self._transport.close()


def _parse(data: bytes, peer: str) -> tuple[Request, int] | None:
    """The first request in `data` and its length; None while it is not whole."""
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD)
    if end < 0:
        if len(data) >= MAX_HEAD:
            raise BadRequest(413, f"a request's head has at most {MAX_HEAD} bytes")
        return None
    first, *lines = data[:end].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(400, "not an HTTP/1.1 request line")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[sys.intern(name.strip().lower())] = value.strip()
    if "transfer-encoding" in headers:
        raise BadRequest(400, "send a Content-Length, not chunks")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise BadRequest(413, f"a body has at most {MAX_BODY} bytes")
    whole = end + 4 + int(length)
    return (Request(words[0], words[1], headers, data[end + 4 : whole], peer), whole) if len(data) >= whole else None


def _head(response: Response, close: bool, length: int | None) -> bytes:
    lines = [
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}",
        f"Content-Type: {response.content_type}",
        "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
