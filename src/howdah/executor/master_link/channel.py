"""`Channel` makes signed exchanges with the master over one kept-alive connection, without blocking, one at a time.

It is a few lines of HTTP/1.1 instead of http.client, whose import alone costs 20 ms and 7 MB of each executor. An
answer's head shows whether the master has signed it. If not, some other program has the master's port, and no more than
a few KiB of what it sends are kept: an executor has a few MiB of memory beside its program's.
"""

from __future__ import annotations

import errno
import json
import socket
from typing import Any, Callable, NamedTuple, Optional, Tuple

from howdah.executor.event_loop import READ, WRITE, EventLoop, Timer
from howdah.wire import auth
from howdah.wire.clock import SignatureClock

_RECEIVE_BYTES = 1 << 18
_MAX_HEAD = 16 << 10
_MAX_UNSIGNED_BODY = 4 << 10


class _Head(NamedTuple):
    """The relevant parts of an answer's head."""

    status: int
    signature: str
    length: int
    """Bytes of the body; -1 where it ends with the connection."""
    closes: bool
    """The master closes the connection after this answer."""


class Channel:
    """`post` starts an exchange; then `answered(message)` is called, or `failed(reason, status)`, exactly once.

    `status` is the master's HTTP status, 0 when it could not be reached or its answer is not signed by it: another
    job's master may have its port by now.
    """

    def __init__(
        self,
        loop: EventLoop,
        address: Tuple[str, int],
        principal: str,
        key: bytes,
        answered: Callable[[Any], None],
        failed: Callable[[str, int], None],
    ) -> None:
        self.loop, self.address, self.principal, self.key = loop, address, principal, key
        self.answered, self.failed = answered, failed
        self.busy = False
        self._clock, self._asked_at = SignatureClock(), 0.0
        self._socket: Optional[socket.socket] = None
        self._path, self._body = "", b""
        self._out, self._in = b"", bytearray()
        self._scanned, self._maximum = 0, 0
        self._head: Optional[_Head] = None
        self._reused = False
        self._timer: Optional[Timer] = None

    def post(self, path: str, message: Any, timeout: float) -> None:
        """Send `message` as JSON to `path` (with its query). Not to be called while `busy`."""
        self.busy = True
        self._path, self._body = path, json.dumps(message, separators=(",", ":")).encode()
        self._timer = self.loop.call_later(timeout, lambda: self._fail(f"no answer within {timeout:.0f} s"))
        self._reused = self._socket is not None
        self._begin()

    def close(self) -> None:
        """Drop the connection; an exchange under way is never answered."""
        self._disconnect()
        self._finish()

    def _begin(self) -> None:
        self._in, self._out = bytearray(), self._request()
        self._scanned, self._head = 0, None
        try:
            if self._socket is None:
                self._socket = self._connect()
        except OSError as error:
            self._fail(str(error))
            return
        self.loop.add_fd(self._socket.fileno(), WRITE, self._on_ready)

    def _connect(self) -> socket.socket:
        family, kind, protocol, _, address = socket.getaddrinfo(*self.address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = connection.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            connection.close()
            raise OSError(code, errno.errorcode.get(code, "connect"))
        return connection

    def _request(self) -> bytes:
        self._asked_at = self._clock.time()
        signature = auth.sign(self.key, "request", self.principal, self._path, self._asked_at, self._body)
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self.address[0]}:{self.address[1]}\r\n"
            f"{auth.HEADER}: {signature}\r\nContent-Type: application/json\r\nContent-Length: {len(self._body)}\r\n\r\n"
        )
        return head.encode() + self._body

    def _on_ready(self, events: int) -> None:
        try:
            if events & WRITE:
                self._write()
            else:
                self._read()
        except BlockingIOError:
            return
        except OSError as error:
            self._retry_or_fail(str(error))

    def _write(self) -> None:
        assert self._socket is not None
        self._out = self._out[self._socket.send(self._out) :]
        if not self._out:
            self.loop.add_fd(self._socket.fileno(), READ, self._on_ready)

    def _read(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(_RECEIVE_BYTES)
        self._in += data
        try:
            if self._head is None:
                self._head = self._take_head()
        except ValueError as error:
            self._retry_or_fail(f"no HTTP: {error}")
            return
        size = len(self._in)
        if self._head is not None and (size >= self._head.length >= 0 or size > self._maximum or not data):
            self._complete(self._head, bytes(self._in))
        elif not data:
            self._retry_or_fail("the connection was closed")

    def _take_head(self) -> Optional[_Head]:
        """Take the head from the received bytes; return None if its end has not come yet.

        Raises:
            ValueError: it is no head of an answer.
        """
        end = self._in.find(b"\r\n\r\n", max(0, self._scanned - 3), _MAX_HEAD)
        self._scanned = len(self._in)
        if end < 0:
            if self._scanned >= _MAX_HEAD:
                raise ValueError(f"a head of more than {_MAX_HEAD} bytes")
            return None
        head = _parse_head(bytes(self._in[:end]))
        del self._in[: end + 4]
        signed = auth.verify_answer_head(self.key, head.signature, self._path, self._asked_at, head.status)
        self._maximum = max(head.length, _MAX_UNSIGNED_BODY) if signed else _MAX_UNSIGNED_BODY
        return head

    def _retry_or_fail(self, reason: str) -> None:
        """Repeat the request if a kept-alive connection was closed meanwhile (messages are idempotent); else fail."""
        retry = self._reused and not self._in and self._head is None
        self._disconnect()
        self._reused = False
        if retry:
            self._begin()
        else:
            self._fail(reason)

    def _complete(self, head: _Head, body: bytes) -> None:
        signed = auth.verify_answer(self.key, head.signature, self._path, self._asked_at, body, head.status)
        if head.status != 200:
            reason = body.decode("utf-8", "replace").strip()[:500]
            reason = reason if signed else auth.shorten_unsigned(reason)
            self._fail(f"{head.status} {reason}", head.status if signed else 0)
        elif not signed:
            self._fail("the answer is not signed by this job's master")
        else:
            assert self._socket is not None
            self.loop.remove_fd(self._socket.fileno())
            if head.closes:
                self._disconnect()
            self._finish()
            self.answered(json.loads(body))

    def _fail(self, reason: str, status: int = 0) -> None:
        self._disconnect()
        self._finish()
        self.failed(reason, status)

    def _finish(self) -> None:
        self.busy = False
        if self._timer is not None:
            self._timer.cancel()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self.loop.remove_fd(self._socket.fileno())
            self._socket.close()
            self._socket = None


def _parse_head(head: bytes) -> _Head:
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in rest if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    parts = first.split(" ", 2)
    status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
    length, closes = int(headers.get("content-length", -1)), headers.get("connection", "").lower() == "close"
    return _Head(status, headers.get(auth.HEADER.lower(), ""), length, closes)
