"""Opens a connection to the master that becomes a stream of the relay (`howdah.wire.relay_messages`)."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Tuple

from howdah.wire import auth
from howdah.wire.connection import WireError, refusal
from howdah.wire.relay_messages import LIMIT_S, PROTOCOL
from howdah.wire.splice import keep_alive

_MAX_HEAD = 64 << 10
_CONNECT_S = 10.0


async def open_relay_connection(
    address: Tuple[str, int], principal: str, key: bytes, path: str, body: bytes = b""
) -> Tuple[socket.socket, bytes]:
    """Send a signed request to the master. Return the connection after the answer, and the bytes of the stream that
    have been received already. The socket does not block.

    Raises:
        WireError: the master does not answer within LIMIT_S and a little, refuses, or is another job's.
    """
    where = f"{address[0]}:{address[1]}"
    try:
        connection = await asyncio.wait_for(_connect(address), _CONNECT_S)
    except (OSError, asyncio.TimeoutError) as error:
        raise WireError(f"{where}: {error or 'no answer'}") from error
    try:
        return await asyncio.wait_for(_ask(connection, where, principal, key, path, body), LIMIT_S + _CONNECT_S)
    except BaseException as error:
        connection.close()
        if isinstance(error, (OSError, asyncio.TimeoutError, ValueError, IndexError)):
            raise WireError(f"{where}: {error or 'no answer'}") from error
        raise


async def _connect(address: Tuple[str, int]) -> socket.socket:
    loop = asyncio.get_running_loop()
    problem = OSError(f"{address[0]} has no address")
    for family, kind, protocol, _, found in await loop.getaddrinfo(*address, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, found)
        except OSError as error:
            connection.close()
            problem = error
        else:
            keep_alive(connection)
            return connection
    raise problem


async def _ask(
    connection: socket.socket, where: str, principal: str, key: bytes, path: str, body: bytes
) -> Tuple[socket.socket, bytes]:
    loop, asked_at = asyncio.get_running_loop(), time.time()
    signature = auth.sign(key, "request", principal, path, asked_at, body)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {where}\r\n{auth.HEADER}: {signature}\r\nConnection: Upgrade\r\n"
        f"Upgrade: {PROTOCOL}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    await loop.sock_sendall(connection, head.encode() + body)
    found = b""
    while b"\r\n\r\n" not in found:
        data = await loop.sock_recv(connection, 1 << 16)
        if not data or len(found) > _MAX_HEAD:
            raise ConnectionError("the master has closed the connection")
        found += data
    lines, _, rest = found.partition(b"\r\n\r\n")
    first, *others = lines.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in others)}
    status = int(first.split(" ")[1])
    signature = headers.get(auth.HEADER.lower(), "")
    if status == 101:
        if not auth.verify_answer(key, signature, path, asked_at, b"", 101):
            raise WireError(f"{where}: the answer is not signed by this job's master")
        return connection, rest
    size = int(headers.get("content-length", "0"))
    while len(rest) < min(size, _MAX_HEAD):
        data = await loop.sock_recv(connection, 1 << 16)
        if not data:
            break
        rest += data
    signed = auth.verify_answer(key, signature, path, asked_at, rest, status)
    reason = rest.decode("utf-8", "replace").strip() or first
    raise refusal(where, status, reason, signed)
