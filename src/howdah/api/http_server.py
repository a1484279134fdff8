"""A small HTTP/1.1 server over asyncio: Content-Length bodies, keep-alive, bounded sizes; nothing else.

It is neither a framework nor asyncio's streams, because ten thousand executors send a heartbeat every two seconds to
one core, and each keeps two connections open while the master has 45 MB and 20 kB for each (docs/adr/0004 has the
figures). The head of a request decides who may send much and stay connected, before the body is read (docs/adr/0011).
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import traceback
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from howdah.api import connection_limits
from howdah.api.connection_limits import ConnectionLimits, Limits
from howdah.api.request_parser import MAX_HEAD, BadRequest, Caller, Request, parse_head
from howdah.spec.values import dataclass
from howdah.wire.ports import bind_socket

__all__ = ["Caller", "Handler", "Identify", "Limits", "Pieces", "Request", "Response", "abort_clients", "serve"]

IDLE_S, SWEEP_S, LINGER_S = 120.0, 1.0, 2.0
"""Seconds without data after which a connection is closed; between two searches for such connections; and for which the
rest of a refused request is read, since a close with unread data would lose the answer on its way."""
DISCARDED_READS = 16
"""Reads of the rest of a refused request that are discarded, before the rest is left to the kernel."""
SLICE = 64 << 10
"""Bytes of one slice of an answer. Each slice is written when there is room for it: an answer that the caller does not
read is not copied into the buffer of the connection."""
BACKLOG, ACCEPTED_AT_ONCE = 1024, 64
"""Connections that may wait to be accepted; and the connections that one turn of the event loop accepts. Their bytes
are read two turns later, so they must be fewer than the strangers that are allowed."""
_REASONS = {status.value: status.phrase for status in HTTPStatus}


class Pieces(Protocol):
    """A body whose pieces are produced while it is sent."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def aclose(self) -> None:
        """Called once when no more pieces are needed, even if none was requested."""


@dataclass(frozen=True)
class Response:
    """An answer, to which the server adds its length. An error while the content is produced aborts the connection."""

    status: int = 200
    body: bytes = b""
    """The content, unless `file` or `pieces` has it."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    """The file that is sent from the disk without being held in memory."""
    pieces: Pieces | None = None
    """The pieces that are sent as fast as the caller reads."""
    digest: str = ""
    """The SHA-256 of `body` in hexadecimal, if it is known; the code that signs the answer needs it."""
    upgrade: Callable[[asyncio.Transport], asyncio.Protocol] | None = None
    """With status 101, makes the protocol that takes over the connection."""


Handler = Callable[[Request], Awaitable[Response]]
Identify = Callable[[Request], "Caller | None"]
"""Returns the caller that the head of a request proves, None for a stranger."""


async def serve(
    handler: Handler,
    identify: Identify,
    host: str,
    port: int = 0,
    among: Sequence[int] = (),
    limits: Limits | None = None,
) -> asyncio.Server:
    """Listen at `port`, or at a free port of `among`; `server.sockets[0].getsockname()` returns which.

    Raises:
        OSError: the server can't listen; the message names the ports if none of `among` is free.
    """
    shared = _Shared(handler, identify, ConnectionLimits(limits or Limits()))
    loop = asyncio.get_running_loop()
    if among:
        family, _, _, _, address = (await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM))[0]
        taken = bind_socket(family, str(address[0]), among)
        server = await loop.create_server(lambda: _Connection(shared), sock=taken, backlog=ACCEPTED_AT_ONCE)
    else:
        server = await loop.create_server(lambda: _Connection(shared), host, port, backlog=ACCEPTED_AT_ONCE)
    for listening in server.sockets:
        with socket.socket(fileno=os.dup(listening.fileno())) as same:
            same.listen(BACKLOG)
    return _start_sweeping(server, shared)


class _Shared:
    """Holds what all connections of a server share."""

    def __init__(self, handler: Handler, identify: Identify, limits: ConnectionLimits) -> None:
        self.handler, self.identify, self.limits = handler, identify, limits
        self.open: set[_Connection] = set()
        self.upgraded: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._faults: set[tuple[str, int]] = set()

    def report_fault(self, error: Exception) -> None:
        """Print the traceback of a bug, each place once, because callers could fill the log with it."""
        *_, frame = traceback.extract_tb(error.__traceback__)
        if (frame.filename, frame.lineno or 0) not in self._faults:
            self._faults.add((frame.filename, frame.lineno or 0))
            traceback.print_exception(error, file=sys.stderr)


_SHARED: weakref.WeakKeyDictionary[asyncio.Server, _Shared] = weakref.WeakKeyDictionary()


def abort_clients(server: asyncio.Server) -> None:
    """Close all connections of a server at once, as CPython 3.13's own method does."""
    for connection in list(_SHARED[server].open):
        connection.abort()
    for transport in list(_SHARED[server].upgraded):
        transport.abort()


def _start_sweeping(server: asyncio.Server, shared: _Shared) -> asyncio.Server:
    """Close idle connections from time to time, those of strangers sooner."""
    loop = asyncio.get_running_loop()
    _SHARED[server] = shared
    turns = 0

    def sweep() -> None:
        """Check all connections: one timer for all costs less than one for each."""
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
    """A connection whose requests are answered one after the other; the bytes of the next request stay in the
    buffer."""

    __slots__ = (
        *("_answering", "_buffer", "_finished", "_keep_alive", "_last_read_at", "_length", "_loop"),
        *("_reads", "_request", "_scanned", "_shared", "_transport", "_writable", "_write_paused"),
        *("deadline", "peer", "since", "stranger"),
    )
    _transport: asyncio.Transport
    _loop: asyncio.AbstractEventLoop

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._buffer: bytes | bytearray = b""
        self._request: Request | None = None
        self._length = self._scanned = self._reads = 0
        self._keep_alive = True
        self._finished = False
        self._answering: asyncio.Task[None] | None = None
        self._write_paused = False
        self._writable: asyncio.Future[None] | None = None
        self._last_read_at = self.since = self.deadline = 0.0
        self.peer, self.stranger = "", False

    @property
    def busy(self) -> bool:
        """Return whether a request is being answered."""
        return self._answering is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()  # kept, because each lookup costs a system call
        self._last_read_at = self.since = self._loop.time()
        self._shared.open.add(self)
        address = transport.get_extra_info("peername")
        self.peer = str(address[0]) if isinstance(address, tuple) else ""
        transport.set_write_buffer_limits(connection_limits.WRITE_BUFFER)
        self.deadline = self.since + self._shared.limits.limits.request_s
        self._shared.limits.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.open.discard(self)
        self._shared.limits.remove(self)
        self._buffer, self._finished = b"", True
        self._wake_writer()

    def abort(self) -> None:
        """Close at once, and drop what is still to be sent."""
        self._finished = True
        self._transport.abort()

    def pause_writing(self) -> None:
        self._write_paused = True

    def resume_writing(self) -> None:
        self._write_paused = False
        self._wake_writer()
        if self._answering is None:
            self._resume()

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

    def close_if_idle(self, since: float) -> None:
        """Close if no request is being answered and nothing was received after `since` (loop time)."""
        if self._answering is None and self._last_read_at < since:
            self.abort()  # close() would wait until the caller has read the last answer

    def data_received(self, data: bytes) -> None:
        self._last_read_at = self._loop.time()
        self._reads += 1
        if self._finished:
            if self._reads > DISCARDED_READS:
                self._transport.pause_reading()
            return
        if not self._buffer:
            self._buffer = data
        elif isinstance(self._buffer, bytes):
            self._buffer = bytearray(self._buffer) + data
        else:
            self._buffer += data
        self._start_next_request()
        if len(self._buffer) > MAX_HEAD and (self._answering is not None or self._write_paused):
            self._transport.pause_reading()  # until the earlier requests are answered

    def _start_next_request(self) -> None:
        """Answer the next request once it is complete and the last answer has been written."""
        if self._answering is not None or self._write_paused or self._finished or not self._buffer:
            return
        try:
            request = self._request or self._read_head()
            if request is None or len(self._buffer) < self._length:
                self._check_piece_count()
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

    def _resume(self) -> None:
        """Read again if reading was paused, and answer the next request."""
        if not self._finished and not self._transport.is_closing():
            self._transport.resume_reading()
            self._start_next_request()

    def _read_head(self) -> Request | None:
        """Return the request that begins in the buffer, and leave its body there; None while its head is incomplete."""
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n", max(0, self._scanned - 3), MAX_HEAD)
        if end < 0:
            self._scanned = len(buffer)
            if len(buffer) >= MAX_HEAD:
                raise BadRequest(431, f"a request's head has at most {MAX_HEAD} bytes")
            return None
        request, self._length, self._keep_alive = parse_head(bytes(buffer[:end]), self.peer)
        try:
            caller = request.caller = self._shared.identify(request)
        except Exception as error:
            self._shared.report_fault(error)
            raise BadRequest(500, "a fault of ours: the log of this server has more") from error
        max_bytes = connection_limits.MAX_BODY if caller is None else caller.max_body
        if self._length > max_bytes:
            why = "" if caller else " of callers that have not shown who they are"
            raise BadRequest(413, f"a body{why} has at most {max_bytes} bytes")
        if caller is not None and self.stranger:
            self._shared.limits.identified(self, signed=bool(caller.name))
        self._buffer = buffer[end + 4 :]
        self._request = request
        return request

    def _check_piece_count(self) -> None:
        """Refuse a stranger's request that comes in very many pieces: reading a small piece costs as much as a large
        one.

        Raises:
            BadRequest: the request came in too many pieces.
        """
        if self._reads > connection_limits.MAX_READS and self.stranger:
            raise BadRequest(400, f"a request that comes in more than {connection_limits.MAX_READS} pieces")

    def _refuse(self, error: BadRequest) -> None:
        """Answer with the error, and close once the caller has had time to read it: closing with unread bytes resets
        the connection, and the caller might never see the reason."""
        self._buffer, self._request, self._finished, self._reads = b"", None, True, 0
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
            self.deadline = self._last_read_at + self._shared.limits.limits.answer_s
        try:
            response = await self._shared.handler(request)
        except Exception as error:  # a bug: the caller gets an error, the log gets the traceback
            self._shared.report_fault(error)
            response = Response(500, b"a fault of ours: the log of this server has more\n", "text/plain")
        close, head_only = not self._keep_alive, request.method == "HEAD"
        if response.upgrade is not None:
            self._hand_over(response, response.upgrade)
            return
        if response.file is not None:
            await self._send_file(response, response.file, close, head_only)
        elif response.pieces is not None:
            await self._send_pieces(response, response.pieces, close, head_only)
        elif len(response.body) > SLICE and not head_only:
            await self._send_slices(response, close)
        else:
            self._send(response, close, head_only)
        if close:
            self._finished = True
            self._transport.close()
        self._answering = None
        if self.stranger:
            self.since = self._loop.time()
            self.deadline = self.since + self._shared.limits.limits.request_s
        self._resume()

    def _hand_over(self, response: Response, upgrade: Callable[[asyncio.Transport], asyncio.Protocol]) -> None:
        """Give the connection to another protocol, together with the bytes received after the request."""
        transport, rest, closed = self._transport, bytes(self._buffer), self._transport.is_closing()
        self._shared.open.discard(self)
        self._shared.limits.remove(self)
        self._finished, self._buffer = True, b""
        if not closed:
            transport.write(_head(response, False, None))
        protocol = upgrade(transport)
        if closed:  # its caller has left meanwhile
            protocol.connection_lost(None)
            return
        self._shared.upgraded.add(transport)
        transport.set_protocol(protocol)
        transport.resume_reading()
        if rest:
            protocol.data_received(rest)

    async def _send_file(self, response: Response, path: Path, close: bool, head_only: bool) -> None:
        if self._transport.is_closing():
            return
        try:
            with path.open("rb") as file:
                self._transport.write(_head(response, close, path.stat().st_size))
                if not head_only:
                    await asyncio.wait_for(self._loop.sendfile(self._transport, file), IDLE_S)
        except (OSError, asyncio.TimeoutError):  # the head has been sent: another answer is not possible
            self._transport.abort()

    async def _send_pieces(self, response: Response, pieces: Pieces, close: bool, head_only: bool) -> None:
        """Send in chunks (RFC 9112, 7.1), so that a caller who gets only a part can tell that it is not complete."""
        try:
            self._transport.write(_head(response, close, None))
            if not head_only:
                async for piece in pieces:
                    if piece:
                        self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await self._drain()
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
                await self._drain()
                self._transport.write(body[begin : begin + SLICE])
        except (ConnectionError, asyncio.TimeoutError):
            self._transport.abort()

    async def _drain(self) -> None:
        """Wait until more can be written.

        Raises:
            ConnectionError: the caller has closed the connection.
            asyncio.TimeoutError: the caller reads nothing.
        """
        if self._write_paused and not self._transport.is_closing():
            self._writable = self._loop.create_future()
            await asyncio.wait_for(self._writable, IDLE_S)
        if self._transport.is_closing():
            raise ConnectionError("its caller has left")

    def _send(self, response: Response, close: bool, head_only: bool = False) -> None:
        if not self._transport.is_closing():
            self._transport.write(_head(response, close, len(response.body)) + (b"" if head_only else response.body))


def _head(response: Response, close: bool, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, '')}"]
    if response.upgrade is None:
        lines.append(f"Content-Type: {response.content_type}")
        lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if close:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
