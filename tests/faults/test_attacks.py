"""Tests attacks on a server's port by clients without a key: memory stays small, answers go on, its log stays short.

All comes from the address from which an executor speaks, as behind one NAT.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import secrets
import selectors
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from local_jobs import LIMIT_S, eventually, wait_for_exit

from howdah.spec.codec import encode
from howdah.wire import auth
from howdah.wire.connection import MasterConnection
from howdah.wire.messages import Phase, Status

CALLERS = 700
MOST_GROWTH_MB = 24
"""What all that strangers hold may cost; without limits each attack below takes hundreds."""
MOST_LINES = 3
WORKER = auth.executor_principal("worker:0", 1)


class Server:
    """A real one, in a process of its own."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind, self.key, self.log = kind, secrets.token_bytes(32), directory / "log"
        with self.log.open("wb") as log:
            command = [sys.executable, Path(__file__).with_name("attacked_server.py"), kind, directory]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
        assert self.process.stdin is not None
        with self.process.stdin as stdin:
            print(self.key.hex(), file=stdin)
        try:
            self._connect()
        except BaseException:
            self.stop()
            raise

    def _connect(self) -> None:
        found = eventually(
            lambda: re.search(r"^http://\S+$", self.log.read_text(), re.MULTILINE),
            f"the address of the {self.kind}'s server",
            output=self.log.read_text,
        )
        self.url = str(found[0])
        address = urllib.parse.urlsplit(self.url)
        assert address.hostname is not None
        assert address.port is not None
        self.address = address.hostname, address.port
        self.sequence = 0
        self.ask()
        self.before_mb = self.memory_mb("VmRSS")

    def ask(self, connection: MasterConnection | None = None) -> None:
        """Somebody who may ask is answered."""
        if self.kind == "master":
            self.sequence += 1
            status = Status(
                task="worker:0", attempt=1, epoch=0, sequence=self.sequence, phase=Phase.HELLO, host="127.0.0.1", pid=7
            )
            with contextlib.ExitStack() as stack:
                connection = connection or stack.enter_context(self.executor())
                connection.call("POST", "/v1/executor", encode(status))
        else:
            plain = http.client.HTTPConnection(*self.address, timeout=LIMIT_S)
            plain.request("GET", "/api/v1/jobs", headers={"Howdah-Token": auth.view_token(self.key)})
            assert plain.getresponse().status == 200
            plain.close()

    def executor(self) -> MasterConnection:
        return MasterConnection(self.url, WORKER, auth.derive(self.key, WORKER), timeout=LIMIT_S)

    def memory_mb(self, what: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{what}:")[2].split()[0]) / 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        self.process.kill()
        wait_for_exit(self.process, self.log.read_text)


@pytest.fixture(params=["master", "history"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    made = Server(request.param, tmp_path)
    try:
        yield made
    finally:
        made.stop()


def connections(server: Server, count: int = CALLERS) -> Iterator[socket.socket]:
    for _ in range(count):
        one = socket.create_connection(server.address, timeout=LIMIT_S)
        one.setblocking(False)
        yield one


def pour(callers: list[socket.socket], data: bytes, piece: int = 1 << 16) -> None:
    """Send `data` to each, in turns, until all of it is sent or the other side does not take more for a second."""
    left = dict.fromkeys(callers, 0)
    with selectors.DefaultSelector() as ready:
        for one in callers:
            ready.register(one, selectors.EVENT_WRITE)
        while left and (events := ready.select(1.0)):
            for key, _ in events:
                one = key.fileobj
                assert isinstance(one, socket.socket)
                try:
                    left[one] += one.send(data[left[one] : left[one] + piece])
                    gone = left[one] >= len(data)
                except OSError:
                    gone = True
                if gone:
                    ready.unregister(one)
                    del left[one]


def head(length: int, signature: str = "") -> bytes:
    signed = f"Howdah-Signature: {signature}\r\n" if signature else ""
    return f"POST /v1/executor HTTP/1.1\r\nHost: x\r\n{signed}Content-Length: {length}\r\n\r\n".encode()


def forged() -> str:
    return f"{WORKER};{time.time():.3f};{'0' * 64};{'0' * 64}"


def idle(server: Server, callers: list[socket.socket]) -> None:
    """Nothing is sent."""


def half_heads(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, b"GET / HTTP/1.1\r\nX: " + b"x" * 15_000)


def large_heads(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 20))


def large_bodies(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, head(4 << 20) + bytes((4 << 20) - 1))


def forged_bodies(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, head(4 << 20, forged()) + bytes((4 << 20) - 1))


def slow_bodies(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, head(4000) + bytes(3000))


def single_bytes(server: Server, callers: list[socket.socket]) -> None:
    for one in callers:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pour(callers, b"GET / HTTP/1.1\r\nX: " + b"x" * 1000, 1)


def many_principals(server: Server, callers: list[socket.socket]) -> None:
    """Keys are derived from names that anybody makes up."""
    for one in callers[:20]:
        for number in range(1000):
            name = f"executor worker:{number}{'9' * 12_000}/1"
            data = head(0, f"{name};{time.time():.3f};0;0")
            with contextlib.suppress(OSError):
                one.setblocking(True)
                one.settimeout(LIMIT_S)
                one.sendall(data)
                one.recv(1 << 16)


def pages_nobody_reads(server: Server, callers: list[socket.socket]) -> None:
    pour(callers, b"GET / HTTP/1.1\r\nHost: %b:%d\r\n\r\n" % (server.address[0].encode(), server.address[1]) * 100)


MALFORMED = (
    b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"POST /v1/executor HTTP/1.1\r\nHowdah-Signature: executor worker:0/1;1.0;\xe9;\xe9\r\n\r\n",
    b"POST /v1/executor HTTP/1.1\r\nHowdah-Signature: client;nan;x;x\r\n\r\n",
    b"GET //[ HTTP/1.1\r\nHost: [\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"PUT /api/v1/jobs/job-1/actions/cancel HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4000\r\n\r\n" + b"[" * 4000,
    b"GET /api/v1/jobs/%ff%00/curves/runs?token=%ff HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /assets/%00 HTTP/1.1\r\nHost: HOST\r\n\r\n",
)


def malformed(server: Server, callers: list[socket.socket]) -> None:
    host = "{}:{}".format(*server.address).encode()
    for number, one in enumerate(callers):
        with contextlib.suppress(OSError):
            one.send(MALFORMED[number % len(MALFORMED)].replace(b"HOST", host))


Attack = Callable[[Server, "list[socket.socket]"], None]
ATTACKS: tuple[Attack, ...] = (
    idle,
    half_heads,
    large_heads,
    large_bodies,
    forged_bodies,
    slow_bodies,
    single_bytes,
    many_principals,
    pages_nobody_reads,
    malformed,
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_costs_little_and_who_may_ask_is_answered(server: Server, attack: Attack) -> None:
    over, problems = threading.Event(), list[Exception]()

    def go_on_asking() -> None:
        try:
            with contextlib.ExitStack() as stack:
                kept = stack.enter_context(server.executor()) if server.kind == "master" else None
                while not over.wait(0.02):
                    server.ask(kept)
                    server.ask()  # and over a connection that is opened now
        except Exception as error:
            problems.append(error)

    asking = threading.Thread(target=go_on_asking)
    asking.start()
    callers = list(connections(server))
    try:
        attack(server, callers)
        server.ask()
        descriptors = server.descriptors()
    finally:
        over.set()
        asking.join(LIMIT_S)
        for one in callers:
            one.close()
    assert not asking.is_alive(), "the last question is not answered"
    assert not problems
    assert server.process.poll() is None
    growth_mb = server.memory_mb("VmHWM") - server.before_mb
    assert (growth_mb < MOST_GROWTH_MB, descriptors < CALLERS) == (True, True), (growth_mb, descriptors)
    said = server.log.read_text().replace(f"{server.url}\n", "", 1)
    assert "Traceback" not in said
    assert len(said.splitlines()) <= MOST_LINES, said
