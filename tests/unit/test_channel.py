"""Tests that an executor rejects answers of another server that got the port of its dead master."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any

import pytest

from howdah.executor.event_loop import EventLoop
from howdah.executor.master_link.channel import Channel
from howdah.wire import auth


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "no HTTP: "),
        ("HTTP/1.1 20\xb2 OK\r\n\r\n".encode("latin-1"), "no HTTP: "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "the answer is not signed"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the connection was closed"),
    ],
)
def test_a_foreign_answer_is_a_failure_like_none(answer: bytes, reason: str) -> None:
    told: list[tuple[str, int]] = []

    def serve() -> None:
        with server.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve)
        serving.start()
        loop, failed = EventLoop(), lambda said, status: told.append((said, status))
        channel = Channel(loop, server.getsockname(), "executor worker:0/1", b"k" * 32, told.append, failed)
        channel.post("/v1/executor", {}, 20.0)
        while not told:
            loop.run_once()
        serving.join(20)
    assert told[0][0].startswith(reason)
    assert told[0][1] == 0
    assert not channel.busy


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", f"no HTTP: a head of more than {16 << 10} bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the answer is not signed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "the answer is not signed"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 99999999999\r\n\r\n", "404 xxxx"),
    ],
)
def test_a_foreign_server_that_sends_without_end_is_left(head: bytes, reason: str) -> None:
    piece, maximum, sent = b"x" * (1 << 20), 64, []

    def serve() -> None:
        with server.accept()[0] as connection, contextlib.suppress(ConnectionError):
            connection.recv(1 << 16)
            connection.sendall(head)
            while len(sent) < maximum:
                connection.sendall(piece)
                sent.append(piece)

    told: list[tuple[str, int]] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve)
        serving.start()
        ask(server.getsockname(), told, told)
        serving.join(60)
    assert told[0][0].startswith(reason)
    assert told[0][1] == 0
    assert len(sent) < maximum, "all of it was read"


def test_what_the_master_has_signed_is_read_whatever_its_size() -> None:
    """An assignment names each input file."""
    message = {"files": ["x" * 100] * 200_000}

    def serve() -> None:
        with server.accept()[0] as connection:
            asked = request_head(connection)
            path, header = asked[0].split()[1], next(line for line in asked if line.startswith(auth.HEADER))
            body = json.dumps(message).encode()
            signature = auth.sign_answer(b"k" * 32, header.partition(": ")[2], path, 200, auth.digest_of(body))
            head = f"HTTP/1.1 200 OK\r\n{auth.HEADER}: {signature}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    answered: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve)
        serving.start()
        ask(server.getsockname(), answered, answered)
        serving.join(60)
    assert answered == [message]


def ask(address: tuple[str, int], answered: list[Any], failed: list[Any]) -> None:
    """Make one exchange; its end is added to one of the lists."""
    loop = EventLoop()
    channel = Channel(
        loop, address, "executor worker:0/1", b"k" * 32, answered.append, lambda *told: failed.append(told)
    )
    channel.post("/v1/executor", {}, 60.0)
    while channel.busy:
        loop.run_once()
    channel.close()


def request_head(connection: socket.socket) -> list[str]:
    received = b""
    while not received.endswith(b"{}"):
        received += connection.recv(1 << 16)
    return received.decode().split("\r\n")
