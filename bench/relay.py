"""Measures the relay: keystrokes, one stream, many streams, and a copy, beside what they would be without it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.processes import resident_mb
from bench.report import Report, alternate, ratios
from bench.temp_home import HOWDAH, run, temp_home
from howdah.client.clusters import engine_of
from howdah.client.port_forward import PortForward
from howdah.client.relay import RelayClient
from howdah.spec import TaskId
from howdah.wire import relay_messages as wire
from howdah.wire.relay_messages import CommandRequest, FrameReader

TASK = TaskId("worker", 0)
ROUNDS, KEYS, STREAMS = 5, 200, 200
STREAM_BYTES, COPY_BYTES, PIECE = 2 << 30, 1 << 30, 1 << 20
KEY_MS, STREAM_MB_S, STREAMS_MB, COPY_RATIO = 20.0, 300.0, 60.0, 0.5
SERVER = """
import os, socket, threading
def serve(one):
    size = int(one.recv(32))
    piece = bytes(1 << 20)
    while size > 0:
        size -= one.send(piece[:size])
    while one.recv(1 << 16):
        pass
with socket.create_server(("127.0.0.1", int(os.environ["HOWDAH_PORT"])), backlog=512) as server:
    print("port", os.environ["HOWDAH_PORT"], flush=True)
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def measure(report: Report) -> None:
    """Measure a job on this machine, whose program sends as many bytes as it is asked for."""
    with temp_home() as home:
        (home / "server.py").write_text(SERVER)
        job = run([HOWDAH, "submit", "--", "python3", "server.py"], cwd=home).output.split()[-1]
        try:
            port = _port_of(job)
            relay = RelayClient(engine_of(job), job)
            _keystrokes(report, relay)
            _one_stream(report, relay, port)
            _many_streams(report, relay, job)
            _copies(report, home, job)
        finally:
            run([HOWDAH, "cancel", job])


def _port_of(job: str) -> int:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        if found := re.search(r"port (\d+)", run([HOWDAH, "logs", job]).output):
            return int(found[1])
        time.sleep(0.2)
    raise SystemExit(f"the program of {job} does not start")


def _keystrokes(report: Report, relay: RelayClient) -> None:
    times = alternate({"relay": lambda: _by_relay(relay), "bare": _by_pty}, ROUNDS)
    ours = report.figure(f"keystroke to echo, median of {KEYS}", times["relay"], "ms")
    theirs = report.figure("the same with a PTY of this process", times["bare"], "ms")
    report.target("keystroke over a bare PTY", ours - theirs, KEY_MS, " ms")


def _by_relay(relay: RelayClient) -> float:
    command = CommandRequest(argv=("cat",), terminal=True)
    connection, early = asyncio.run(relay.open(TASK, command=command))
    connection.setblocking(True)
    frames, found = FrameReader(), []
    list(frames.feed(early))
    with connection:
        time.sleep(0.3)
        for _ in range(KEYS):
            began = time.monotonic()
            connection.sendall(wire.frame(wire.INPUT, b"x"))
            while not any(kind == wire.OUTPUT for kind, _ in frames.feed(connection.recv(4096))):
                pass
            found.append((time.monotonic() - began) * 1000)
    return sorted(found)[KEYS // 2]


def _by_pty() -> float:
    child, file = pty.fork()
    if child == 0:
        os.execvp("cat", ["cat"])  # noqa: S606
    time.sleep(0.3)
    found = []
    for _ in range(KEYS):
        began = time.monotonic()
        os.write(file, b"x")
        os.read(file, 4096)
        found.append((time.monotonic() - began) * 1000)
    os.close(file)
    os.waitpid(child, 0)
    return sorted(found)[KEYS // 2]


def _one_stream(report: Report, relay: RelayClient, port: int) -> None:
    with _forwarded(relay, port) as here:
        rates = alternate({"relay": lambda: _read(here), "straight": lambda: _read(port)}, ROUNDS)
    ours = report.figure(f"one stream of {STREAM_BYTES >> 20} MiB, forwarded", rates["relay"], "MB/s")
    report.figure("the same straight to the port", rates["straight"], "MB/s")
    report.figure("ratio", ratios(rates["relay"], rates["straight"]), "")
    report.target("one stream", ours, STREAM_MB_S, " MB/s", at_least=True)


@contextlib.contextmanager
def _forwarded(relay: RelayClient, port: int) -> Iterator[int]:
    forwarding = PortForward(lambda end: relay.connect_port(TASK, str(port), end))
    try:
        yield forwarding.port
    finally:
        forwarding.close()


def _read(port: int) -> float:
    """Return the MB/s at which a port of this machine sends STREAM_BYTES."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        began, left, room = time.monotonic(), STREAM_BYTES, bytearray(PIECE)
        connection.sendall(b"%d" % STREAM_BYTES)
        while left:
            left -= connection.recv_into(room, min(PIECE, left))
        return STREAM_BYTES / 1e6 / (time.monotonic() - began)


def _many_streams(report: Report, relay: RelayClient, job: str) -> None:
    processes = _processes_of(job)
    before = sum(map(resident_mb, processes))

    async def hold() -> float:
        opened = [await relay.open(TASK, port="main") for _ in range(STREAMS)]
        loop = asyncio.get_running_loop()
        for connection, _ in opened:
            await loop.sock_sendall(connection, b"65536")
        for connection, early in opened:
            left = 65536 - len(early)
            while left:
                left -= len(await loop.sock_recv(connection, left))
        held = sum(map(resident_mb, processes))
        for connection, _ in opened:
            connection.close()
        return held

    report.target(f"{STREAMS} streams, master and relay process", asyncio.run(hold()) - before, STREAMS_MB, " MB")


def _processes_of(job: str) -> list[int]:
    """Return the master and the relay process of the job."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            is_ours = job in words or any(job in value for value in process.environ().values())
            if is_ours and ("howdah.master" in words or "howdah.executor.relay.process" in words):
                found.append(process.pid)
    return found


def _copies(report: Report, home: Path, job: str) -> None:
    source, target = home / "source", home / "target"
    with source.open("wb") as file:
        for _ in range(COPY_BYTES // PIECE):
            file.write(os.urandom(PIECE))
    run([HOWDAH, "cp", str(source), f"{job}:worker:0:source"])

    def copy() -> float:
        began = time.monotonic()
        run([HOWDAH, "cp", f"{job}:worker:0:source", str(target)])
        return COPY_BYTES / 1e6 / (time.monotonic() - began)

    rates = alternate({"cp": copy, "plain": lambda: _plain_copy(source, target)}, 3)
    report.figure(f"howdah cp of {COPY_BYTES >> 20} MiB", rates["cp"], "MB/s")
    report.figure("a plain TCP stream into a file", rates["plain"], "MB/s")
    ratio = report.figure("ratio", ratios(rates["cp"], rates["plain"]), "")
    report.target("copy beside a plain TCP stream", ratio, COPY_RATIO, "", at_least=True)


def _plain_copy(source: Path, target: Path) -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection, source.open("rb") as file:
                connection.sendfile(file)

        sending = threading.Thread(target=send)
        sending.start()
        began, room = time.monotonic(), bytearray(PIECE)
        with socket.create_connection(server.getsockname()) as connection, target.open("wb", buffering=0) as file:
            while size := connection.recv_into(room):
                file.write(memoryview(room)[:size])
        sending.join()
        return COPY_BYTES / 1e6 / (time.monotonic() - began)
