"""Measures how late a master's event loop runs while 10,000 simulated executors send it heartbeats.

The executors are simulated, in the core beside the master's: each has a connection, signs what it says, and says
something else each time. The master is the real one; how late its loop comes to its work is told by the loop itself.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import socket
import time
from dataclasses import replace
from typing import IO, Any
from urllib.parse import urlsplit

from bench.memory import simulated_master
from bench.processes import cpu_s
from bench.report import Report
from bench.temp_home import temp_home
from howdah.spec.codec import encode
from howdah.spec.usage import Usage
from howdah.wire import auth
from howdah.wire.messages import Goal, Orders, Phase, Status

EXECUTORS = int(os.environ.get("BENCH_EXECUTORS", "10000"))
AT_ONCE, SETTLE_S, WINDOW_S, UP_LIMIT_S = 500, 5.0, 20.0, 180.0
LATE_MS = 100.0
WAITS = {"once a second": 1, "as real ones, every 2 s": 2}


def measure(report: Report) -> None:
    """Measure one master for each of the two intervals between heartbeats."""
    with temp_home() as home:
        for label, wait_s in WAITS.items():
            directory, key = home / f"heartbeats-{wait_s}", secrets.token_bytes(32)
            directory.mkdir()
            with simulated_master(directory, EXECUTORS, key) as (pid, url, answers):
                executors = SimulatedExecutors(url, key, EXECUTORS, wait_s)
                _observe(report, executors, pid, answers, label)


def _observe(report: Report, executors: SimulatedExecutors, pid: int, answers: IO[str], label: str) -> None:
    executors.start()
    executors.run(SETTLE_S)
    _lateness(pid, answers)
    heartbeats, cpu, began = executors.heartbeats, cpu_s(pid), time.monotonic()
    executors.run(WINDOW_S)
    took, used, heartbeats = time.monotonic() - began, cpu_s(pid) - cpu, executors.heartbeats - heartbeats
    late = _lateness(pid, answers)
    executors.close()
    report.figure(f"{executors.count} executors, {label}: heartbeats a second", [heartbeats / took], "/s")
    report.figure("  a heartbeat of each, in fact, every", [executors.count * took / heartbeats], "s")
    report.figure("  CPU of the master", [100 * used / took], "% of a core")
    report.figure("  CPU of a heartbeat", [used / heartbeats * 1e6], "us")
    report.figure("  its loop is late: half of the time", [late[0]], "ms")
    report.target(f"loop late, 99 of 100 times, {label}", late[1], LATE_MS, " ms")


def _lateness(pid: int, answers: IO[str]) -> list[float]:
    """Return the median and 99th percentile of the loop's delay since the last call, in ms."""
    os.kill(pid, signal.SIGUSR1)
    return [float(word) for word in answers.readline().split()]


class _Executor:
    __slots__ = ("key", "number", "principal", "sequence", "socket", "status", "text")

    def __init__(self, number: int, job_key: bytes, place: tuple[str, int]) -> None:
        self.number, self.sequence = number, 1
        self.socket = socket.create_connection(place)
        self.principal = auth.executor_principal(f"worker:{number}", 1)
        self.key = auth.derive(job_key, self.principal)
        self.status: Status | None = Status(
            task=f"worker:{number}",
            attempt=1,
            epoch=0,
            sequence=1,
            phase=Phase.HELLO,
            host=f"node{number}.example",
            pid=4711,
            python="/usr/bin/python3 (3.11.2)",
        )
        self.text = ""


class SimulatedExecutors:
    """Simulates executors of role `worker`, whose polls wait `wait_s` seconds at the master."""

    def __init__(self, url: str, key: bytes, count: int, wait_s: int) -> None:
        self.count, self.heartbeats, self.running = count, 0, 0
        self._address, self._path = urlsplit(url).netloc, f"/v1/executor?wait={wait_s}"
        self._poll = select.epoll()
        self._key, self._by_socket = key, dict[int, _Executor]()

    def start(self) -> None:
        """Start the executors, some at a time; returns when all run."""
        host, _, port = self._address.partition(":")
        deadline = time.monotonic() + UP_LIMIT_S
        for number in range(self.count):
            executor = _Executor(number, self._key, (host, int(port)))
            self._by_socket[executor.socket.fileno()] = executor
            self._poll.register(executor.socket, select.EPOLLIN)
            self._send(executor)
            if number % AT_ONCE == AT_ONCE - 1:
                self.run(0.5)
        while self.running < self.count:
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.running} of {self.count} executors run after {UP_LIMIT_S:.0f} s")
            self.run(0.5)

    def run(self, seconds: float) -> None:
        """Let the executors send heartbeats for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for number, _ in self._poll.poll(left):
                self._receive(self._by_socket[number])

    def close(self) -> None:
        """Close all executors' connections."""
        for executor in self._by_socket.values():
            executor.socket.close()

    def _receive(self, executor: _Executor) -> None:
        data = executor.socket.recv(1 << 20)
        while not _whole(data):
            more = executor.socket.recv(1 << 20)
            if not more:
                raise SystemExit(f"{executor.principal}: the master has closed the connection")
            data += more
        if not data.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"{executor.principal}: {data!r}")
        self.heartbeats += 1
        executor.sequence += 1
        if executor.status is not None:
            self._obey(executor, json.loads(data.partition(b"\r\n\r\n")[2]))
        self._send(executor)

    def _obey(self, executor: _Executor, answer: dict[str, Any]) -> None:
        """Follow the master's orders until the program runs; from then on only the sequence number changes."""
        status = executor.status
        assert status is not None
        fields = {**encode(status), "told": Orders(epoch=answer["epoch"], goal=Goal(answer["goal"])).digest}
        if status.phase is Phase.HELLO:
            executor.status = replace(status, phase=Phase.JOINED, epoch=answer["epoch"], ports={"main": 40000})
            fields = {**fields, **encode(executor.status)}
        elif answer["goal"] == "run":
            usage = Usage(
                memory_mib=812.5,
                peak_mib=901.2,
                cpu=0.98,
                progress=0.25,
                log_bytes=52_117,
                cpu_s=1042.7,
                read_mib_s=1.25,
                network="node",
            )
            fields.update(phase="running", program_pid=4712, program_python="python3", usage=encode(usage))
            executor.status = None
            self.running += 1
        fields.pop("sequence")
        executor.text = json.dumps(fields, separators=(",", ":"))[:-1] + ',"sequence":'

    def _send(self, executor: _Executor) -> None:
        if executor.text:
            body = f"{executor.text}{executor.sequence}}}".encode()
        else:
            body = json.dumps(encode(executor.status), separators=(",", ":")).encode()
        signature = auth.sign(executor.key, "request", executor.principal, self._path, time.time(), body)
        head = (
            f"POST {self._path} HTTP/1.1\r\nHost: {self._address}\r\n{auth.HEADER}: {signature}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        executor.socket.sendall(head.encode() + body)


def _whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    return len(body) >= int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
