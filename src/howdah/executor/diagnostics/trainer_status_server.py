"""Takes the reports of training libraries that know Kubeflow Trainer: over HTTP, on the loopback of this node.

The reports carry a token that only the program can read, and that is made anew for each of its starts. A few lines of
HTTP/1.1 do instead of http.server, whose import alone would cost more memory than an executor has to spare.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
from typing import Callable, Dict, List, Optional, Tuple

from howdah.executor.diagnostics.trainer_status import TrainerStatus, parse
from howdah.executor.event_loop import READ, WRITE, EventLoop

_PATH = "/trainer-status"
_MAX_HEAD, _MAX_BODY = 8 << 10, 64 << 10
_MAX_REQUESTS = 8
_LIMIT_S = 10.0
"""Seconds after which a request is dropped; the libraries wait 5 seconds for the answer."""
_DELAY_S = 1.0
"""Seconds for which an answer waits for the master to have the report: the program may end right after the answer."""
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Payload Too Large",
    431: "Request Header Fields Too Large",
}

Received = Callable[[TrainerStatus, Callable[[], None]], None]


class ReportRefused(Exception):
    """A request that is answered by an HTTP status of 4xx, with the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class TrainerStatusServer:
    """Calls `received(status, done)` for each report. The report is answered when `done` is called, and soon anyway."""

    def __init__(self, loop: EventLoop, received: Received) -> None:
        self.loop, self.received = loop, received
        self.token = ""
        self._listener: Optional[socket.socket] = None
        self._requests: List[_Request] = []

    def begin(self) -> str:
        """Make the token of a program that is about to start, and return the URL for its reports.

        Raises:
            OSError: it can't listen.
        """
        if self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=_MAX_REQUESTS)
            self._listener.setblocking(False)
            self.loop.add_fd(self._listener.fileno(), READ, self._accept)
        self.token = os.urandom(16).hex()
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}{_PATH}"

    def close(self) -> None:
        """Listen no more, and drop the requests that are not answered."""
        if self._listener is not None:
            self.loop.remove_fd(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for request in list(self._requests):
            request.close()

    def _accept(self, _: int) -> None:
        assert self._listener is not None
        try:
            connection, _address = self._listener.accept()
        except OSError:  # it has gone again
            return
        if len(self._requests) < _MAX_REQUESTS:
            self._requests.append(_Request(self, connection))
        else:
            connection.close()

    def forget(self, request: _Request) -> None:
        """Stop counting a request that is over."""
        self._requests.remove(request)


class _Request:
    """One connection, for one request."""

    def __init__(self, server: TrainerStatusServer, connection: socket.socket) -> None:
        self._server, self._loop, self._socket = server, server.loop, connection
        self._in, self._out = bytearray(), b""
        self._is_read = self._is_closed = False
        connection.setblocking(False)
        self._timer = self._loop.call_later(_LIMIT_S, self.close)
        self._loop.add_fd(connection.fileno(), READ, self._on_ready)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._timer.cancel()
            self._loop.remove_fd(self._socket.fileno())
            self._socket.close()
            self._server.forget(self)

    def _on_ready(self, events: int) -> None:
        try:
            if events & WRITE:
                self._write()
            elif data := self._socket.recv(_MAX_BODY):
                self._in += data
                self._read()
            else:
                self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _read(self) -> None:
        try:
            body = _body_of(bytes(self._in), self._server.token)
            if body is None:
                return
            status = _status_of(body)
        except ReportRefused as refused:
            failure = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
            failure.update(message=refused.reason, reason=_REASONS[refused.status].replace(" ", ""))
            self._answer(refused.status, json.dumps({**failure, "code": refused.status}).encode())
            return
        self._loop.remove_fd(self._socket.fileno())
        self._loop.call_later(_DELAY_S, lambda: self._answer(200, body))
        self._server.received(status, lambda: self._answer(200, body))

    def _answer(self, status: int, body: bytes) -> None:
        if self._is_closed or self._out:
            return
        head = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self._out = head.encode() + body
        self._loop.add_fd(self._socket.fileno(), WRITE, self._on_ready)

    def _write(self) -> None:
        self._out = self._out[self._socket.send(self._out) :]
        if not self._out:
            self.close()


def _body_of(data: bytes, token: str) -> Optional[bytes]:
    """Return the body of the request that begins with `data`; None while a part of it is still to come.

    Raises:
        ReportRefused: it is no report of this program.
    """
    end = data.find(b"\r\n\r\n", 0, _MAX_HEAD)
    if end < 0:
        if len(data) >= _MAX_HEAD:
            raise ReportRefused(431, f"a head of more than {_MAX_HEAD} bytes")
        return None
    method, path, headers = _parse_head(data[:end])
    length = headers.get("content-length", "" if method == "POST" else "0")
    if not (length.isascii() and length.isdigit()):
        raise ReportRefused(411, "Content-Length: must be the number of the body's bytes")
    if len(length) > 9 or int(length) > _MAX_BODY:
        raise ReportRefused(413, f"a body of more than {_MAX_BODY} bytes")
    body = data[end + 4 :]
    if len(body) < int(length):
        return None
    if path != _PATH:
        raise ReportRefused(404, f"nothing is here but {_PATH}")
    if method != "POST":
        raise ReportRefused(405, f"{_PATH}: only POST")
    if not hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {token}".encode()):
        raise ReportRefused(401, "Authorization: must be `Bearer TOKEN`, with the token of this task's program")
    return body[: int(length)]


def _parse_head(head: bytes) -> Tuple[str, str, Dict[str, str]]:
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ReportRefused(400, "no HTTP/1.1")
    pairs = (line.partition(":") for line in rest)
    return words[0], words[1], {name.strip().lower(): value.strip() for name, _, value in pairs}


def _status_of(body: bytes) -> TrainerStatus:
    try:
        return parse(body)
    except ValueError as error:
        raise ReportRefused(400, str(error)) from None
