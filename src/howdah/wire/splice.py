"""Copies bytes between two connections in both directions. It reads from the faster side only what the slower side has
room for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Callable, Optional

BUFFER = 1 << 20
"""The most bytes that wait for a slow side."""
LINGER_S = 20.0
"""Seconds for which the remaining bytes may be sent after the side that sent them is gone."""
KEEPALIVE_IDLE_S, KEEPALIVE_EVERY_S, KEEPALIVE_COUNT = 30, 10, 6
"""Seconds of silence after which the kernel asks the other side, seconds between two such questions, and their number
before the connection is given up."""


class SpliceEnd(asyncio.Protocol):
    """One of the two ends: the bytes that it receives are written to the other end. `ended` is called when it is
    closed.

    Bytes that it receives before `join` are kept, and no more are read.
    """

    def __init__(self, ended: Callable[[], None] = lambda: None) -> None:
        self._ended = ended
        self._transport: Optional[asyncio.Transport] = None
        self._other: Optional[SpliceEnd] = None
        self._early = b""
        self._got_eof = self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(BUFFER)
        keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        if self._other is not None:
            self._other._write(data)
        else:
            self._early += data
            if self._transport is not None:
                self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._got_eof = True
        if self._other is None:
            return True
        is_open = self._other._end_writing()
        if self._other._got_eof:  # both have said all: asyncio closes neither by itself
            self._other._close()
            return False
        return is_open

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._lost = True
        if self._other is not None and self._other._transport is not None:
            if exc is None:
                self._other._close()
                asyncio.get_running_loop().call_later(LINGER_S, self._other.abort)
            else:
                self._other._transport.abort()
        self._ended()

    def pause_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other._transport is not None and not self._other._lost:
            self._other._transport.resume_reading()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._lost:
            self._transport.write(data)

    def _close(self) -> None:
        """Close the connection once all bytes are sent."""
        if self._transport is not None:
            self._transport.close()

    def _end_writing(self) -> bool:
        """Tell this side that no more bytes come; return whether bytes from it are still to be read."""
        if self._transport is None or self._lost or not self._transport.can_write_eof():
            return False
        self._transport.write_eof()
        return True

    def _start_copying_to(self, other: SpliceEnd) -> None:
        self._other = other
        if self._early:
            other._write(self._early)
            self._early = b""
        if self._got_eof:
            other._end_writing()
        if self._lost:
            other._close()
        elif self._transport is not None:
            self._transport.resume_reading()


def join(one: SpliceEnd, other: SpliceEnd) -> None:
    """Copy between the two from now on."""
    one._start_copying_to(other)
    other._start_copying_to(one)
    if one._got_eof and other._got_eof:
        one._close()
        other._close()


def keep_alive(connection: Optional[socket.socket]) -> None:
    """Let the kernel find out when the host on the other side is gone, and send small pieces at once."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with contextlib.suppress(OSError, AttributeError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_EVERY_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_COUNT)
