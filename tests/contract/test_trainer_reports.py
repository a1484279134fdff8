"""Tests that what HuggingFace's Trainer reports to Kubeflow arrives at the executor, and is handed on to the master."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conductor import Conductor
from test_executor import Start, conduct, program

from howdah.executor.diagnostics.trainer_status import TrainerStatus
from howdah.executor.diagnostics.trainer_status_server import TrainerStatusServer
from howdah.executor.event_loop import EventLoop
from howdah.wire.messages import Goal, Phase

__all__ = ["conduct"]

# The request of transformers 5.24 (KubeflowCallback._update_status), with its order of calls.
REPORT = """
import json, os, stat, urllib.request
from datetime import datetime, timezone

def report(progress, metrics=None, left=None):
    status = {"lastUpdatedTime": datetime.now(timezone.utc).isoformat()}
    status["progressPercentage"] = progress
    if left is not None:
        status["estimatedRemainingSeconds"] = left
    if metrics:
        status["metrics"] = [{"name": str(k), "value": str(v)} for k, v in metrics.items()]
    data = json.dumps({"trainerStatus": status}).encode("utf-8")
    token = open(os.environ["KUBEFLOW_TRAINER_SERVER_TOKEN"]).read().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = os.environ["KUBEFLOW_TRAINER_SERVER_URL"]
    request = urllib.request.Request(url, data=data, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.read() == data
        return answer.status
"""
TRAIN = """
report(0, {"total_steps": 200})
report(25, {"loss": 0.5, "learning_rate": 1e-05, "epoch": 0.5, "current_step": 51, "total_steps": 200}, 30)
report(26, {"loss": 0.5, "learning_rate": 1e-05, "epoch": 0.5, "current_step": 53, "total_steps": 200}, 28)
report(50, {"loss": float("nan"), "learning_rate": 1e-05, "epoch": 1.0, "current_step": 101, "total_steps": 200}, 20)
"""
END = 'report(100, {"loss": 0.25, "learning_rate": 1e-05, "epoch": 2.0, "train_runtime": 1.5}, 0)\n'


def without_time(master: Conductor) -> list[tuple[Any, ...]]:
    return [tuple(point[:3]) for point in master.points]


def test_progress_and_metrics_of_the_trainer_arrive(conduct: Start) -> None:
    master = conduct(program(REPORT + TRAIN + END + "print('done')"))
    ended = master.run()
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit.lines
    assert ended.usage.progress == 1.0
    assert without_time(master) == [
        ("loss", 51, 0.5),
        ("learning_rate", 51, 1e-05),
        ("epoch", 51, 0.5),
        ("loss", 101, None),
        ("epoch", 101, 1.0),
        ("loss", 200, 0.25),
        ("learning_rate", 200, 1e-05),
        ("epoch", 200, 2.0),
        ("train_runtime", 200, 1.5),
    ]


def test_progress_is_as_fine_as_the_steps(conduct: Start) -> None:
    assert conduct(program(REPORT + TRAIN)).run().usage.progress == pytest.approx(101 / 200)


def test_variables_name_a_private_token_of_this_start(conduct: Start) -> None:
    look = """
import os, stat
for name in ("KUBEFLOW_TRAINER_SERVER", "KUBEFLOW_TRAINER_STATUS"):
    path = os.environ[f"{name}_TOKEN"]
    print(oct(stat.S_IMODE(os.stat(path).st_mode)), open(path).read(), os.environ[f"{name}_URL"], end=" ")
print(f"{name}_CA_CERT" in os.environ)
"""
    master = conduct(program(look))
    master.run()
    master.set_orders(Goal.RUN, epoch=2)
    master.until(lambda status: status.epoch == 2 and status.phase is Phase.ENDED)
    first, second = (line.split() for line in master.output().decode().splitlines())
    mode, token, url = first[:3]
    assert first == [mode, token, url, mode, token, url, "False"]
    assert (mode, len(token), url.startswith("http://127.0.0.1:")) == ("0o600", 32, True)
    assert (second[1] != token, second[2] == url) == (True, True)


def test_what_the_user_has_set_stays(conduct: Start) -> None:
    show = "import os; print({n: v for n, v in os.environ.items() if 'KUBEFLOW' in n or 'proxy' in n})"
    own = {"KUBEFLOW_TRAINER_SERVER_URL": "https://trainer.example.com/status"}
    master = conduct(program(show), environment={**own, "http_proxy": "http://proxy:80"})
    master.run()
    assert eval(master.output()) == {**own, "http_proxy": "http://proxy:80"}


@pytest.mark.parametrize(
    ("proxies", "exceptions"),
    [
        ({}, {}),
        ({"http_proxy": "http://127.0.0.1:9"}, {"no_proxy": "127.0.0.1"}),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "a,b"}, {"NO_PROXY": "a,b,127.0.0.1"}),
        ({"http_proxy": "http://127.0.0.1:9", "no_proxy": "*"}, {"no_proxy": "*"}),
    ],
)
def test_reports_do_not_go_to_a_proxy(conduct: Start, proxies: dict[str, str], exceptions: dict[str, str]) -> None:
    show = "print({n: v for n, v in os.environ.items() if n.lower() == 'no_proxy'})"
    master = conduct(program(f"{REPORT}{TRAIN}{show}"), environment=proxies)
    ended = master.run()
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit.lines
    assert eval(master.output()) == exceptions


def test_a_master_that_has_no_room_is_quoted_once(conduct: Start) -> None:
    master = conduct(program(REPORT + TRAIN + END))
    master.metrics_problem = "the job has 500 metrics already"
    ended = master.run()
    assert ended.exit is not None
    assert ended.exit.ok, ended.exit.lines
    assert master.output("stderr") == b"[howdah: metrics are lost: the job has 500 metrics already]\n"


class Server:
    """A `TrainerStatusServer` whose event loop runs in a thread; `received` has what it was told."""

    def __init__(self, answers: bool = True) -> None:
        self.received: list[TrainerStatus] = []
        self._answers, self._loop = answers, EventLoop()
        self._server = TrainerStatusServer(self._loop, self._note)
        self.url = self._server.begin()
        self.token = self._server.token
        self._wake, self._waker = socket.socketpair()
        self._over = False
        self._loop.add_fd(self._wake.fileno(), 1, lambda _: setattr(self, "_over", True))
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _note(self, status: TrainerStatus, done: Callable[[], None]) -> None:
        self.received.append(status)
        if self._answers:
            done()

    def _run(self) -> None:
        while not self._over:
            self._loop.run_once()
        self._server.close()

    def end(self) -> None:
        self._waker.send(b"!")
        self._thread.join(20)
        self._wake.close()
        self._waker.close()

    def post(self, body: bytes, path: str = "", **changed: Any) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.token}", **changed.pop("headers", {})}
        request = urllib.request.Request(self.url + path, data=body, headers=headers, **changed)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


def report(**fields: Any) -> bytes:
    return json.dumps({"trainerStatus": fields}).encode()


def test_a_report_is_echoed(server: Server) -> None:
    metrics = [{"name": "loss", "value": "0.15"}, {"name": "note", "value": "high"}]
    body = report(progressPercentage=45, estimatedRemainingSeconds=120, metrics=metrics, lastUpdatedTime="now")
    assert server.post(body) == (200, body)
    assert server.received == [TrainerStatus(progress=0.45, metrics={"loss": 0.15})]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "the body is no JSON"),
        (b"[" * 60000, "the body is no JSON"),
        (b"\xff\xfe", "the body is no JSON"),
        (b"[]", "trainerStatus: must be an object"),
        (b'{"trainerStatus": null}', "trainerStatus: must be an object"),
        (report(progressPercentage=101), "trainerStatus.progressPercentage: must be a number from 0 to 100"),
        (report(progressPercentage=float("nan")), "trainerStatus.progressPercentage: must be a number from 0 to 100"),
        (report(progressPercentage=True), "trainerStatus.progressPercentage: must be a number from 0 to 100"),
        (report(metrics={}), "trainerStatus.metrics: must be a list of at most 1000"),
        (report(metrics=[{}] * 1001), "trainerStatus.metrics: must be a list of at most 1000"),
        (report(metrics=["loss"]), "trainerStatus.metrics: a name must be a text of 1 to 512 bytes"),
        (
            report(metrics=[{"name": "x" * 513, "value": "1"}]),
            "trainerStatus.metrics: a name must be a text of 1 to 512 bytes",
        ),
        (report(metrics=[{"name": "loss", "value": [1]}]), "trainerStatus.metrics: a value must be a text"),
    ],
)
def test_a_malformed_report_is_refused_in_one_line(server: Server, body: bytes, reason: str) -> None:
    status, answer = server.post(body)
    assert (status, json.loads(answer)["message"]) == (400, reason)
    assert json.loads(answer) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": reason,
        "reason": "BadRequest",
        "code": 400,
    }
    assert server.received == []


def test_nobody_else_can_report(server: Server) -> None:
    body = report(progressPercentage=45)
    for header in ("", "Bearer ", "Bearer wrong", server.token, f"Bearer {server.token}x"):
        assert server.post(body, headers={"Authorization": header})[0] == 401
    assert server.post(body, path="/x")[0] == 404
    assert server.post(body, method="PUT")[0] == 405
    assert server.post(b"x" * ((64 << 10) + 1))[0] == 413
    assert server.received == []


def test_a_head_without_end_is_refused(server: Server) -> None:
    host, _, port = server.url.removeprefix("http://").partition("/")[0].partition(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(b"x" * (8 << 10))
        assert connection.recv(64).startswith(b"HTTP/1.1 431 ")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(b"POST /trainer-status HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(64).startswith(b"HTTP/1.1 411 ")


def test_idle_connections_are_few(server: Server) -> None:
    host, _, port = server.url.removeprefix("http://").partition("/")[0].partition(":")
    idle = [socket.create_connection((host, int(port)), 20) for _ in range(9)]
    assert idle[8].recv(1) == b""  # at most 8 at a time
    for connection in idle:
        connection.close()
    while not server.received:  # it may not have noticed yet that they are closed
        with contextlib.suppress(OSError):
            assert server.post(report(progressPercentage=1))[0] == 200


def test_an_answer_does_not_wait_for_a_master_that_is_away() -> None:
    server = Server(answers=False)
    try:
        assert server.post(report(progressPercentage=45))[0] == 200
    finally:
        server.end()
