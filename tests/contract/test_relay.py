"""Tests the relay in the master: who may open a stream, and that bytes go both ways as fast as they are read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from test_master_api import KEY, WORKER, Running, end

from howdah.client.master_client import translate_refusals
from howdah.errors import Conflict, HowdahError, NotFound, RequestRefused
from howdah.spec.codec import encode
from howdah.wire import auth, relay_messages
from howdah.wire.connection import WireError
from howdah.wire.messages import Phase, Status
from howdah.wire.relay_connection import open_relay_connection
from howdah.wire.relay_messages import CommandRequest, StreamRefusal, StreamRequest

LIMIT_S = 30.0
OPEN: list[socket.socket] = []
"""What a test has opened; closed at its end."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a master whose worker:0 has an executor that has joined. It takes seconds to end."""
    running = Running(f"file://{tmp_path_factory.mktemp('job')}")
    with running.executor() as executor:
        status = Status(task="worker:0", attempt=1, epoch=0, sequence=1, phase=Phase.HELLO, host="h", pid=1)
        executor.call("POST", "/v1/executor", encode(status))
        yield running
    end(running)


@pytest.fixture(autouse=True)
def _close_streams(running: Running) -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()
    wait_until_closed(running)


def wait_until_closed(running: Running) -> None:
    """Wait until the master has no streams and no relay process."""
    deadline = time.monotonic() + LIMIT_S
    relay = running.master.api.relay
    while relay.streams or relay._controls:
        assert time.monotonic() < deadline, f"{relay.streams} streams, {len(relay._controls)} relay processes"
        time.sleep(0.01)


def opened(running: Running, principal: str, path: str, body: bytes = b"") -> socket.socket:
    """Open a connection that becomes a stream; it blocks. Nothing has come from the other side yet."""
    connection, early = opened_with_early_bytes(running, principal, path, body)
    assert early == b"" or path == relay_messages.CONTROL
    return connection


def opened_with_early_bytes(
    running: Running, principal: str, path: str, body: bytes = b""
) -> tuple[socket.socket, bytes]:
    """Open a connection that becomes a stream; return it with what has come from the other side together with the
    answer."""
    url = urllib.parse.urlsplit(running.url)
    key = auth.derive(KEY, principal)
    opening = open_relay_connection((url.hostname or "", url.port or 0), principal, key, path, body)
    connection, early = asyncio.run(opening)
    connection.settimeout(LIMIT_S)
    OPEN.append(connection)
    return connection, early


def ask(running: Running, **wanted: Any) -> socket.socket:
    """Ask for a stream as a client does."""
    with translate_refusals("job-1"):
        return opened(running, auth.CLIENT, relay_messages.OPEN, stream_request(**wanted))


def stream_request(**wanted: Any) -> bytes:
    request = StreamRequest(**{"id": secrets.token_hex(16), "task": "worker:0", "by": "me", **wanted})
    return json.dumps(encode(request)).encode()


class Helper:
    """Plays the relay process of worker:0: it accepts streams, or refuses them with `problem`."""

    def __init__(self, running: Running, problem: str = "") -> None:
        self.running, self.problem = running, problem
        self.accepted: list[socket.socket] = []
        self.requests: list[dict[str, Any]] = []
        self.came = threading.Semaphore(0)
        self.control = opened(running, WORKER, relay_messages.CONTROL)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError), self.control.makefile("rb") as lines:
            for line in lines:
                self.requests.append(request := json.loads(line))
                if self.problem:
                    refusal = StreamRefusal(stream=request["id"], problem=self.problem)
                    self.control.sendall(json.dumps(encode(refusal)).encode() + b"\n")
                else:
                    path = f"{relay_messages.ACCEPT}?stream={request['id']}"
                    self.accepted.append(opened(self.running, WORKER, path))
                self.came.release()

    def stream(self) -> socket.socket:
        """Return the next stream that was accepted."""
        assert self.came.acquire(timeout=LIMIT_S)
        return self.accepted.pop(0)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.thread.join(LIMIT_S)


@pytest.fixture
def helper(running: Running) -> Iterator[Helper]:
    helper = Helper(running)
    yield helper
    helper.close()


def test_an_executor_is_ordered_to_start_a_relay_process(running: Running) -> None:
    with running.executor() as executor:

        def heartbeat(told: str, wait_s: int) -> dict[str, Any]:
            status = Status(
                task="worker:0", attempt=1, epoch=0, sequence=2, phase=Phase.HELLO, host="h", pid=1, orders_digest=told
            )
            answer: dict[str, Any] = executor.call("POST", f"/v1/executor?wait={wait_s}", encode(status))
            return answer

        assert "relay" not in heartbeat("", 0)
        asking = threading.Thread(target=_ask_in_vain, args=(running,))
        asking.start()
        number = 0
        while not number:
            number = heartbeat("", 1).get("relay", 0)
        assert number > 1_600_000_000_000
        opened(running, WORKER, relay_messages.CONTROL).close()  # it has got what it waits for, and fails it by ending
        asking.join(LIMIT_S)
        assert not asking.is_alive()


def test_bytes_go_both_ways_and_each_side_ends_by_itself(running: Running, helper: Helper) -> None:
    near = ask(running, port="8080")
    far = helper.stream()
    near.sendall(b"question")
    assert far.recv(100) == b"question"
    near.shutdown(socket.SHUT_WR)
    assert far.recv(100) == b""
    far.sendall(b"answer" * 100_000)
    far.close()
    assert b"".join(iter(lambda: near.recv(1 << 16), b"")) == b"answer" * 100_000


def test_what_the_task_says_first_arrives(running: Running, helper: Helper) -> None:
    def greet() -> None:
        helper.stream().sendall(b"SSH-2.0")

    threading.Thread(target=greet, daemon=True).start()
    request = stream_request(command=CommandRequest(argv=("sh",)))
    connection, early = opened_with_early_bytes(running, auth.CLIENT, relay_messages.OPEN, request)
    assert (early or connection.recv(100)) == b"SSH-2.0"
    assert helper.requests[0]["command"] == {"argv": ["sh"]}


def test_no_more_is_read_than_the_other_side_takes(running: Running, helper: Helper) -> None:
    near = ask(running, port="8080")
    far = helper.stream()
    near.settimeout(1.0)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 200 << 20:
            sent += near.send(bytes(1 << 20))
    assert sent < 64 << 20  # the kernel's buffers, and what the master holds
    got = 0
    far.settimeout(LIMIT_S)
    while got < sent:
        got += len(far.recv(1 << 20))


def _ask_in_vain(running: Running) -> None:
    with contextlib.suppress(HowdahError, OSError):
        ask(running, port="1")


def test_a_refusal_of_the_task_reaches_the_client(running: Running) -> None:
    helper = Helper(running, "nothing answers at port 1 of h")
    with pytest.raises(Conflict, match="nothing answers at port 1 of h"):
        ask(running, port="1")
    helper.close()


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"task": "worker:7", "port": "1"}, NotFound, "no task worker:7; there are worker:0"),
        ({"task": "worker", "port": "1"}, RequestRefused, "'worker' is not a task"),
        ({"port": "http"}, NotFound, "has no port 'http': give a number, or one of its names"),
        ({"port": "70000"}, NotFound, "has no port '70000'"),
        ({}, RequestRefused, "exactly one of `port`, `command`, `attach` and `copy`"),
        ({"port": "1", "command": CommandRequest()}, RequestRefused, "exactly one of"),
        ({"id": "short", "port": "1"}, RequestRefused, "the id of a stream has 16 to 64 characters"),
    ],
)
def test_a_wrong_request_is_refused(
    wanted: dict[str, Any], error: type[HowdahError], words: str, running: Running
) -> None:
    with pytest.raises(error, match=words.replace("`", ".")):
        ask(running, **wanted)


def test_an_id_is_used_once(running: Running, helper: Helper) -> None:
    ask(running, id="a" * 16, port="1").close()
    with pytest.raises(RequestRefused, match="is used once"):
        ask(running, id="a" * 16, port="1")


def test_strangers_may_neither_open_nor_accept(running: Running, helper: Helper) -> None:
    status, _ = running.plain("POST", relay_messages.OPEN)
    assert status == 403
    url = urllib.parse.urlsplit(running.url)
    asking = open_relay_connection((url.hostname or "", url.port or 0), auth.CLIENT, b"x" * 32, relay_messages.OPEN)
    with pytest.raises(WireError, match="403"):
        asyncio.run(asking)
    with pytest.raises(WireError, match="404"):
        opened(running, WORKER, relay_messages.OPEN, b"{}")
    with pytest.raises(WireError, match="410"):
        opened(running, WORKER, f"{relay_messages.ACCEPT}?stream=unknown")


def test_a_relay_process_that_ends_fails_what_it_was_to_open(running: Running) -> None:
    control = opened(running, WORKER, relay_messages.CONTROL)

    def end_when_asked() -> None:
        control.recv(1)
        control.close()

    threading.Thread(target=end_when_asked, daemon=True).start()
    with pytest.raises(Conflict, match="its relay process has ended"):
        ask(running, port="1")
