"""Plays the master of one executor: sends the orders that a test chooses, and keeps the statuses that it receives."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from leftovers import MARK

import howdah
from howdah.executor.process.process_tree import children, kill
from howdah.spec.codec import decode, encode
from howdah.wire import auth, program_protocol
from howdah.wire.credentials import JOB_KEY, SECRET_PREFIX, Credentials
from howdah.wire.launch_messages import executor_command
from howdah.wire.messages import (
    Assignment,
    Goal,
    LogChunk,
    LogRequest,
    Orders,
    Phase,
    PreemptionNotice,
    SnapshotOrder,
    Status,
)

SOURCE = Path(howdah.__file__).resolve().parents[1]
LIMIT_S = 120.0
"""Limit in seconds for anything that an executor does at once: ten times as long as on a busy machine."""
POLL_S = 0.2
"""How long a poll waits for news. An executor does not send everything at once: its usage comes with the next
status."""


def run_mark() -> dict[str, str]:
    """Return the variable that marks the processes that a test file has started, if there is one."""
    return {name: value for name, value in os.environ.items() if name == MARK}


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._connections: set[socket.socket] = set()
        self._serving = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._serving.start()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: executors are killed in the middle of requests here."""

    def close(self) -> None:
        """End all connections and threads."""
        self.shutdown()
        self._serving.join(LIMIT_S)
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class Conductor:
    """Serves POST /v1/executor; `set_orders`, `until` (waits for a status) and `start` drive an executor."""

    def __init__(self, directory: Path, assignment: Assignment, lease_s: float = 30.0) -> None:
        self.directory, self.assignment, self.lease_s = directory, assignment, lease_s
        self.work, self.logs = directory / "work", directory / "logs"
        self.work.mkdir()
        self.logs.mkdir()
        self.key = secrets.token_bytes(32)
        self.refuse, self.stranger, self.refusals = 0, False, 0
        self.world: dict[str, str] = {}
        self.saves: tuple[SnapshotOrder, ...] = ()
        self.files: dict[str, str] = {}
        self.notice: PreemptionNotice | None = None
        self.statuses: list[Status] = []
        self.points: list[list[Any]] = []
        self.metrics_problem = ""
        self.chunks: list[LogChunk] = []
        self.executor: subprocess.Popen[bytes] | None = None
        self.attempt = "worker:1/1"
        self._goal, self._epoch, self._stop_s, self._keep = Goal.JOIN, 1, 5.0, False
        self._requests: tuple[LogRequest, ...] = ()
        self._changed = threading.Condition()
        self._closed, self._lease_given = False, 0.0
        self._before: tuple[str, ...] = ()
        self._server = _Server(self._handler())

    @property
    def principal(self) -> str:
        return auth.executor_principal("worker:1", 1)

    def key_of(self, principal: str) -> bytes:
        """Return the key of the attempt that was launched, or the key derived from it for another attempt."""
        launched = auth.derive(self.key, self.principal)
        return launched if principal == self.principal else auth.derive(launched, principal)

    def start(
        self,
        environment: dict[str, str] | None = None,
        secrets: dict[str, bytes] | None = None,
        before: tuple[str, ...] = (),
    ) -> None:
        """Start the executor; `before` are words in front of its command."""
        held = {JOB_KEY: auth.derive(self.key, self.principal)}
        held.update({SECRET_PREFIX + name: value for name, value in (secrets or {}).items()})
        file = self.directory / "credentials"
        file.write_bytes(Credentials(secrets=held).to_bytes())
        variables = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SOURCE),
            "HOWDAH_MASTER": f"http://127.0.0.1:{self._server.server_port}",
            "HOWDAH_TASK": "worker:1",
            "HOWDAH_ATTEMPT": "1",
            "HOWDAH_CREDENTIALS": str(file),
            "HOWDAH_LOG_DIR": str(self.logs),
            "HOWDAH_WORK_DIR": str(self.work),
            **run_mark(),
            **(environment or {}),
        }
        self._before = before
        with (self.logs / "executor.log").open("wb") as log:
            self.executor = subprocess.Popen(
                [*before, *executor_command(sys.executable)], env=variables, cwd=self.logs, stderr=log
            )

    def set_orders(self, goal: Goal, epoch: int = 0, stop_s: float = 5.0, keep: bool = False) -> None:
        """Set the orders that the executor gets from now on."""
        with self._changed:
            self._goal, self._epoch, self._stop_s, self._keep = goal, epoch or self._epoch, stop_s, keep
            self._changed.notify_all()

    def reassign(self, task: str, attempt: int) -> None:
        """Order the executor to become the executor of another attempt, and forget the statuses of the previous one."""
        with self._changed:
            self.attempt, self._goal = f"{task}/{attempt}", Goal.JOIN
            self.statuses.clear()
            self._changed.notify_all()

    def save(self, *orders: SnapshotOrder) -> None:
        """Order these snapshots from now on."""
        with self._changed:
            self.saves = orders
            self._changed.notify_all()

    def announce(self, notice: PreemptionNotice) -> None:
        """Announce a preemption to the program from now on."""
        with self._changed:
            self.notice = notice
            self._changed.notify_all()

    def until(self, wanted: Callable[[Status], Any], limit: float = LIMIT_S) -> Status:
        """Return the first status, received already or later, that is `wanted`."""
        deadline, seen = time.monotonic() + limit, 0
        with self._changed:
            while True:
                for status in self.statuses[seen:]:
                    if wanted(status):
                        return status
                seen = len(self.statuses)
                left = deadline - time.monotonic()
                assert self._changed.wait(left) or time.monotonic() < deadline, self._not_heard("such a status", limit)

    def _not_heard(self, what: str, limit: float = LIMIT_S) -> str:
        return f"{what} was not heard within {limit} s; last: {self.statuses[-1:]}; log: {self.log()}"

    def phase(self, phase: Phase, epoch: int = 1, limit: float = LIMIT_S) -> Status:
        return self.until(lambda status: status.phase is phase and status.epoch == epoch, limit)

    def run(self, limit: float = LIMIT_S, stop_s: float = 5.0, **world: str) -> Status:
        """Start an executor if there is none, let it join and run, and return the status in which it has ended."""
        self.world = world
        if self.executor is None:
            self.start()
        self.phase(Phase.JOINED)
        self.set_orders(Goal.RUN, stop_s=stop_s)
        return self.phase(Phase.ENDED, limit=limit)

    def ask_log(self, stream: str, offset: int, limit: int, search: str = "") -> LogChunk:
        with self._changed:
            number = len(self.chunks) + 1
            self._requests = (LogRequest(request=number, stream=stream, offset=offset, limit=limit, search=search),)
            self._changed.notify_all()
            self._wait_for_chunk(number)
            return self.chunks[-1]

    def ask_logs(self, *wanted: LogRequest) -> list[LogChunk]:
        """Request several pieces of logs at once, numbered on from the last request."""
        with self._changed:
            self._requests = wanted
            self._changed.notify_all()
            self._wait_for_chunk(wanted[-1].request)
            return self.chunks[-len(wanted) :]

    def _wait_for_chunk(self, number: int) -> None:
        came = self._changed.wait_for(lambda: len(self.chunks) >= number, LIMIT_S)
        assert came, self._not_heard(f"the answer to request {number}")

    def fall_silent(self, lease_s: float, status: int = 500, stranger: bool = False) -> None:
        """Give the executor a lease of `lease_s`, and refuse all its messages from then on."""
        with self._changed:
            self.lease_s = lease_s
            given = self._changed.wait_for(lambda: self._lease_given == lease_s, LIMIT_S)
            assert given, self._not_heard("a status")
            self.refuse, self.stranger = status, stranger

    def leave(self, limit: float = LIMIT_S) -> int:
        """Order the executor to leave, and return its exit status."""
        self.set_orders(Goal.LEAVE)
        return self.exit_status(limit)

    def exit_status(self, limit: float = LIMIT_S) -> int:
        assert self.executor is not None
        return self.executor.wait(limit)

    def output(self, stream: str = "stdout") -> bytes:
        return (self.logs / stream).read_bytes()

    def log(self) -> str:
        return (self.logs / "executor.log").read_text() if self.executor else ""

    def close(self) -> None:
        """End the executor with everything that it has started, and close the connections of the test's master."""
        try:
            self._end_executor()
        finally:
            with self._changed:
                self._closed = True
                self._changed.notify_all()
            self._server.close()

    def _end_executor(self) -> None:
        """End it by SIGTERM: after a SIGKILL of the executor, only the first process of its program ends."""
        if self.executor is None or self.executor.poll() is not None:
            return
        # Words in front of it are a process that ends when the executor has ended.
        executors = (self._before and children(self.executor.pid)) or [self.executor.pid]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in executors:
                kill(pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.executor.wait(LIMIT_S / 2)
                break
        assert self.executor.returncode is not None, "the executor does not end"

    def _is_current(self, status: Status) -> bool:
        return f"{status.task}/{status.attempt}" == self.attempt

    def _orders(self, status: Status) -> Orders:
        if not self._is_current(status):
            return Orders(epoch=0, goal=Goal.REASSIGN, reassign_to=self.attempt)
        return Orders(
            epoch=self._epoch,
            goal=self._goal,
            assignment=self.assignment if status.phase is Phase.HELLO else None,
            environment=self.world if self._goal is Goal.RUN else {},
            files=self.files if self._goal is Goal.RUN else {},
            stop_s=self._stop_s,
            lease_s=self.lease_s,
            log_requests=tuple(one for one in self._requests if one.request > len(self.chunks)),
            snapshots=self.saves,
            notice=self.notice,
            keep=self._keep,
        )

    def _satisfied(self, orders: Orders, status: Status) -> bool:
        phases = {
            Goal.JOIN: (Phase.LOCALISING, Phase.JOINED),
            Goal.RUN: (Phase.RUNNING, Phase.UPLOADING, Phase.ENDED),
            Goal.STOP: (Phase.ENDED,),
            Goal.LEAVE: (),
            Goal.REASSIGN: (),
        }
        known = {save.number for save in status.snapshots} == {order.number for order in orders.snapshots}
        told = status.epoch == orders.epoch and status.phase in phases[orders.goal]
        noticed = orders.notice is None or f"notice{orders.notice.number}" in status.orders_digest
        satisfied = told and not orders.log_requests and known and noticed and status.kept >= orders.keep
        return satisfied and self._is_current(status)

    def _answer(self, status: Status, wait: float) -> Orders:
        deadline = time.monotonic() + min(wait, POLL_S)
        with self._changed:
            if self._is_current(status):
                self.statuses.append(status)
            self.chunks.extend(chunk for chunk in status.chunks if chunk.request > len(self.chunks))
            self._changed.notify_all()
            while self._satisfied(self._orders(status), status) and time.monotonic() < deadline and not self._closed:
                self._changed.wait(deadline - time.monotonic())
            orders = self._orders(status)
            self._lease_given = orders.lease_s
            self._changed.notify_all()
            return orders

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        conductor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                key = conductor.key_of(auth.principal_of(self.headers[auth.HEADER]))
                genuine = auth.verify(key, "request", self.headers[auth.HEADER], self.path, time.time(), body)
                asked = self.headers[auth.HEADER]
                if conductor.refuse or not genuine:
                    conductor.refusals += 1
                    words, status = b"not wanted", conductor.refuse or 403
                    signed = genuine and not conductor.stranger
                    digest = auth.digest_of(words)
                    self._send(status, words, auth.sign_answer(key, asked, self.path, status, digest) if signed else "")
                    return
                if self.path == f"{program_protocol.PATH}metrics":
                    conductor.points += json.loads(body)["points"]
                    answer = json.dumps({"problem": conductor.metrics_problem}).encode()
                    self._send(200, answer, auth.sign_answer(key, asked, self.path, 200, auth.digest_of(answer)))
                    return
                wait = float(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("wait", ["0"])[0])
                orders = conductor._answer(decode(Status, json.loads(body)), wait)
                answer = json.dumps(encode(orders)).encode()
                self._send(200, answer, auth.sign_answer(key, asked, self.path, 200, auth.digest_of(answer)))

            def _send(self, status: int, body: bytes, signature: str) -> None:
                try:
                    self.send_response(status)
                    self.send_header(auth.HEADER, signature)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    self.wfile.flush()
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
