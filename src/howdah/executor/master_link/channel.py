"""`Channel` makes signed exchanges with the master over one kept-alive connection, without blocking, one at a time.

It is a few lines of HTTP/1.1 instead of http.client, whose import alone costs 20 ms and 7 MB of each executor.
"""

from __future__ import annotations

import errno
import json
import socket
from typing import Any, Callable, Dict, Optional, Tuple

from howdah.executor.event_loop import READ, WRITE, EventLoop, Timer
from howdah.wire import auth
from howdah.wire.clock import SignatureClock


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
        self._out, self._in = b"", b""
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
        self._in, self._out = b"", self._request()
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
        data = self._socket.recv(1 << 18)
        self._in += data
        head, separator, body = self._in.partition(b"\r\n\r\n")
        if separator:
            try:
                status, headers, wanted = _parse_head(head)
            except ValueError as error:
                self._retry_or_fail(f"no HTTP: {error}")
                return
            if len(body) >= wanted >= 0 or not data:
                self._complete(status, headers, body)
                return
        if not data:
            self._retry_or_fail("the connection was closed")

    def _retry_or_fail(self, reason: str) -> None:
        """Repeat the request if a kept-alive connection was closed meanwhile (messages are idempotent); else fail."""
        retry = self._reused and not self._in
        self._disconnect()
        self._reused = False
        if retry:
            self._begin()
        else:
            self._fail(reason)

    def _complete(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        header = headers.get(auth.HEADER.lower(), "")
        signed = auth.verify_answer(self.key, header, self._path, self._asked_at, body, status)
        if status != 200:
            self._fail(f"{status} {body.decode('utf-8', 'replace').strip()[:500]}", status if signed else 0)
        elif not signed:
            self._fail("the answer is not signed by this job's master")
        else:
            assert self._socket is not None
            self.loop.remove_fd(self._socket.fileno())
            if headers.get("connection", "").lower() == "close":
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


def _parse_head(head: bytes) -> Tuple[int, Dict[str, str], int]:
    """Parse status, headers and the length of the body, which is -1 where the body ends with the connection."""
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in rest if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    parts = first.split(" ", 2)
    status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
    return status, headers, int(headers.get("content-length", -1))
