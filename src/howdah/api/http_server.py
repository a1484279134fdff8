"""A small HTTP/1.1 server over asyncio: Content-Length bodies, keep-alive, bounded sizes; nothing else.

Why not a framework, nor asyncio's streams: ten thousand executors beat once in two seconds on one core, and each keeps
two connections open while the master has 45 MB and 20 kB for each (docs/adr/0004 has the figures). Who may send much,
and stay, is decided by a request's head, before its body is taken (docs/adr/0011).
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from howdah.api import connection_limits
from howdah.api.connection_limits import ConnectionLimits, Limits
from howdah.api.request_parser import MAX_HEAD, BadRequest, Caller, Request, parse_head
from howdah.spec.values import dataclass
from howdah.wire.ports import bound

__all__ = ["Caller", "Handler", "Identify", "Limits", "Pieces", "Request", "Response", "serve"]

IDLE_S, SWEEP_S, LINGER_S = 120.0, 1.0, 2.0
DISCARDED_READS = 16
"""What still comes of a request that was refused is taken so many times, then left to the kernel."""
SLICE = 64 << 10
"""An answer is written in slices of so many bytes, each when there is room for it: one that nobody takes is not held
once more in a buffer of its connection."""
BACKLOG, ACCEPTED_AT_ONCE = 1024, 64
"""Connections that may wait for being accepted; and those that one turn of the loop accepts. What they have sent is
read two turns later: few enough for the places that strangers have."""
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
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


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
Identify = Callable[[Request], "Caller | None"]
"""Tells from the head of a request who sends it, None when that is not shown."""


async def serve(
    handler: Handler,
    identify: Identify,
    host: str,
    port: int = 0,
    among: Sequence[int] = (),
    limits: Limits | None = None,
) -> asyncio.Server:
    """Listen at `port`, or at a free one of `among`; `server.sockets[0].getsockname()` tells which.

    Raises:
        OSError: that is not possible; names the ports if none of `among` is free.
    """
    shared = _Shared(handler, identify, ConnectionLimits(limits or Limits()))
    loop = asyncio.get_running_loop()
    if among:
        family, _, _, _, address = (await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM))[0]
        taken = bound(family, str(address[0]), among)
        server = await loop.create_server(lambda: _Connection(shared), sock=taken, backlog=ACCEPTED_AT_ONCE)
    else:
        server = await loop.create_server(lambda: _Connection(shared), host, port, backlog=ACCEPTED_AT_ONCE)
    for listening in server.sockets:
        with socket.socket(fileno=os.dup(listening.fileno())) as same:
            same.listen(BACKLOG)
    return _swept(server, shared)


class _Shared:
    """What all connections of a server have in common."""

    def __init__(self, handler: Handler, identify: Identify, limits: ConnectionLimits) -> None:
        self.handler, self.identify, self.limits = handler, identify, limits
        self.open: set[_Connection] = set()
        self._faults: set[tuple[str, int]] = set()

    def report_fault(self, error: Exception) -> None:
        """Write down a fault of ours, each once: callers could fill the log with it."""
        *_, place = traceback.extract_tb(error.__traceback__)
        if (place.filename, place.lineno or 0) not in self._faults:
            self._faults.add((place.filename, place.lineno or 0))
            traceback.print_exception(error, file=sys.stderr)


def _swept(server: asyncio.Server, shared: _Shared) -> asyncio.Server:
    """Idle connections are closed, strangers sooner."""
    loop = asyncio.get_running_loop()
    turns = 0

    def sweep() -> None:
        """One timer for all, rather than one for each."""
        nonlocal turns
        turns += 1
        shared.limits.sweep(loop.time())
        if turns * SWEEP_S >= IDLE_S / 4:
            turns = 0
            for connection in list(shared.open):
                connection.close_if_idle(loop.time() - IDLE_S)
        if server.is_serving():
            loop.call_later(SWEEP_S, sweep)

    loop.call_later(SWEEP_S, sweep)
    return server


class _Connection(asyncio.Protocol):
    """One caller, answered one request after the other: the next one's bytes wait in the buffer."""

    __slots__ = (
        "_answering",
        "_buffer",
        "_full",
        "_goes_on",
        "_heard_at",
        "_length",
        "_loop",
        "_over",
        "_reads",
        "_request",
        "_room",
        "_scanned",
        "_shared",
        "_transport",
        "deadline",
        "peer",
        "since",
        "stranger",
    )
    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._buffer: bytes | bytearray = b""
        self._request: Request | None = None
        self._length = self._scanned = self._reads = 0
        self._goes_on = True
        self._over = False
        self._answering: asyncio.Task[None] | None = None
        self._full = False
        self._room: asyncio.Future[None] | None = None
        self._heard_at = self.since = self.deadline = 0.0
        self.peer, self.stranger = "", False

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._answering is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()  # asking for it costs a system call
        self._heard_at = self.since = self._loop.time()
        self._shared.open.add(self)
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if isinstance(address, tuple) else ""
        transport.set_write_buffer_limits(connection_limits.WRITE_BUFFER)
        self.deadline = self.since + self._shared.limits.limits.request_s
        self._shared.limits.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.open.discard(self)
        self._shared.limits.remove(self)
        self._buffer, self._over = b"", True
        self._wake()

    def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        self._over = True
        self._transport.abort()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()
        if self._answering is None:
            self._go_on()

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def close_if_idle(self, since: float) -> None:
        """Close when nothing is being answered and nothing was heard after `since` (loop time)."""
        if self._answering is None and self._heard_at < since:
            self.abort()  # to close would be to wait until the last answer is taken

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._reads += 1
        if self._over:
            if self._reads > DISCARDED_READS:
                self._transport.pause_reading()
            return
        if not self._buffer:
            self._buffer = data
        elif isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer) + data
        else:
            self._buffer += data
        self._next()
        if len(self._buffer) > MAX_HEAD and (self._answering is not None or self._full):
            self._transport.pause_reading()  # until what was asked before is answered

    def _next(self) -> None:
        """Begin with the next request, when it is whole and the last answer is on its way."""
        if self._answering is not None or self._full or self._over or not self._buffer:
            return
        try:
            request = self._request or self._read_head()
            if request is None or len(self._buffer) < self._length:
                self._refuse_crumbs()
                return
        except BadRequest as error:
            self._refuse(error)
            return
        if len(self._buffer) == self._length:
            request.body, self._buffer = bytes(self._buffer), b""
        else:
            rest = memoryview(self._buffer)
            request.body, self._buffer = bytes(rest[: self._length]), bytes(rest[self._length :])
        self._request, self._scanned, self._reads = None, 0, 0
        self._answering = self._loop.create_task(self._answer(request))

    def _go_on(self) -> None:
        """Read again, if that was paused, and take the next request."""
        if not self._over and not self._transport.is_closing():
            self._transport.resume_reading()
            self._next()

    def _read_head(self) -> Request | None:
        """The request that begins in the buffer, which then holds its body; None while its head is not whole."""
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n", max(0, self._scanned - 3), MAX_HEAD)
        if end < 0:
            self._scanned = len(buffer)
            if len(buffer) >= MAX_HEAD:
                raise BadRequest(431, f"a request's head has at most {MAX_HEAD} bytes")
            return None
        request, self._length, self._goes_on = parse_head(bytes(buffer[:end]), self.peer)
        try:
            caller = request.caller = self._shared.identify(request)
        except Exception as error:
            self._shared.report_fault(error)
            raise BadRequest(500, "a fault of ours: the log of this server has more") from error
        most = connection_limits.MAX_BODY if caller is None else caller.max_body
        if self._length > most:
            why = "" if caller else " of callers that have not shown who they are"
            raise BadRequest(413, f"a body{why} has at most {most} bytes")
        if caller is not None and self.stranger:
            self._shared.limits.identified(self, signed=bool(caller.name))
        self._buffer = buffer[end + 4 :]
        self._request = request
        return request

    def _refuse_crumbs(self) -> None:
        """A stranger's request may not come in ever so small pieces: reading each costs as much as reading a large one.

        Raises:
            BadRequest: it has.
        """
        if self._reads > connection_limits.MAX_READS and self.stranger:
            raise BadRequest(400, f"a request that comes in more than {connection_limits.MAX_READS} pieces")

    def _refuse(self, error: BadRequest) -> None:
        """Answer, and close when the caller has had time to read it: to close with bytes unread resets the connection,
        and the caller might never see why."""
        self._buffer, self._request, self._over, self._reads = b"", None, True, 0
        if self._transport.is_closing():
            return
        self._send(Response(error.status, f"{error}\n".encode(), "text/plain"), close=True)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        if self.stranger:
            self.deadline = self._loop.time() + LINGER_S
            self._shared.limits.count_refusal(self.peer, str(error))
        else:
            self._loop.call_later(LINGER_S, self.abort)

    async def _answer(self, request: Request) -> None:
        if self.stranger:
            self.deadline = self._heard_at + self._shared.limits.limits.answer_s
        try:
            response = await self._shared.handler(request)
        except Exception as error:  # a bug of ours: the caller is told, and the log has the whole of it
            self._shared.report_fault(error)
            response = Response(500, b"a fault of ours: the log of this server has more\n", "text/plain")
        close, head_only = not self._goes_on, request.method == "HEAD"
        if response.file is not None:
            await self._send_file(response, response.file, close, head_only)
        elif response.pieces is not None:
            await self._send_pieces(response, response.pieces, close, head_only)
        elif len(response.body) > SLICE and not head_only:
            await self._send_slices(response, close)
        else:
            self._send(response, close, head_only)
        if close:
            self._over = True
            self._transport.close()
        self._answering = None
        if self.stranger:
            self.since = self._loop.time()
            self.deadline = self.since + self._shared.limits.limits.request_s
        self._go_on()

    async def _send_file(self, response: Response, path: Path, close: bool, head_only: bool) -> None:
        if self._transport.is_closing():
            return
        try:
            with path.open("rb") as file:
                self._transport.write(_head(response, close, path.stat().st_size))
                if not head_only:
                    await asyncio.wait_for(self._loop.sendfile(self._transport, file), IDLE_S)
        except (OSError, asyncio.TimeoutError):  # half an answer can't be taken back
            self._transport.abort()

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
            if not isinstance(error, (ConnectionError, asyncio.TimeoutError)):
                print(f"an answer is broken off: {error or type(error).__name__}", file=sys.stderr)
        finally:
            await pieces.aclose()

    async def _send_slices(self, response: Response, close: bool) -> None:
        body = memoryview(response.body)
        try:
            self._transport.write(_head(response, close, len(body)))
            for begin in range(0, len(body), SLICE):
                await self._taken()
                self._transport.write(body[begin : begin + SLICE])
        except (ConnectionError, asyncio.TimeoutError):
            self._transport.abort()

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
        if not self._transport.is_closing():
            self._transport.write(_head(response, close, len(response.body)) + (b"" if head_only else response.body))


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
