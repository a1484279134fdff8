"""Tests that an executor rejects answers of another server that got the port of its dead master."""

from __future__ import annotations

import socket
import threading

import pytest

from howdah.executor.event_loop import EventLoop
from howdah.executor.master_link.channel import Channel


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
