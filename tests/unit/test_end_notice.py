"""Tests how addresses hear of a job's end: what is posted, what is tried again, and that no address is printed."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from howdah.master import end_notice, patient_post
from howdah.spec import JobSpec, Outcome, Role, State
from howdah.spec.validation import find_mistakes

FAILED = Outcome(State.FAILED, "worker:0 on n1: exit code 3")


class Chat(ThreadingHTTPServer):
    """Keeps what is posted; answers with the statuses of `answers`, then with 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.posted: list[tuple[str, Any]] = []
        self.answers: list[int] = []
        self.pause_s = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook/s3cret"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Chat)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posted.append((self.headers["Content-Type"], body))
        time.sleep(self.server.pause_s)
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        assert isinstance(self.server, Chat)
        self.server.posted.append(("GET", self.path))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *words: Any) -> None:
        pass


@pytest.fixture
def chat() -> Iterator[Chat]:
    with Chat() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def tell(*notify: str, limit_s: float = 10.0, **secrets: str) -> None:
    job = JobSpec({"worker": Role("x")}, name="resnet", notify=notify)
    values = {name: value.encode() for name, value in secrets.items()}
    asyncio.run(end_notice.tell_end(job, "local-1", values, FAILED, limit_s))


def test_each_address_is_told_once(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    tell(chat.url, "CHAT", CHAT=f"{chat.url}\n")
    (first, second) = chat.posted
    assert first == second
    assert first[0] == "application/json"
    assert first[1] == {
        **{"text": "resnet (local-1) FAILED: worker:0 on n1: exit code 3", "id": "local-1", "name": "resnet"},
        **{"state": "FAILED", "diagnostics": "worker:0 on n1: exit code 3"},
    }
    assert capsys.readouterr().err == ""


def test_a_job_without_addresses_waits_for_nothing() -> None:
    began = time.monotonic()
    tell()
    assert time.monotonic() - began < 0.5


def test_a_server_in_trouble_is_asked_again(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.answers = [503, 429]
    tell(chat.url)
    assert len(chat.posted) == 3
    assert capsys.readouterr().err == ""


def test_what_was_not_told_is_printed_without_the_address(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.answers = [404]
    with socket.create_server(("127.0.0.1", 0)) as closed:
        gone = f"http://127.0.0.1:{closed.getsockname()[1]}/s3cret"
    tell(chat.url, gone, "CHAT", "TEAM", CHAT="s3cret", TEAM="https://me:s3cret@example.org/hook")
    told = capsys.readouterr().err
    assert "notify.0 was not told of the job's end: HTTP 404\n" in told
    assert "notify.1 was not told of the job's end: ConnectionRefusedError\n" in told
    for number in (2, 3):
        problem = "the secret is no address, https://… without a password"
        assert f"notify.{number} was not told of the job's end: {problem}\n" in told
    assert "s3cret" not in told
    assert len(chat.posted) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_told_at_another_address(chat: Chat, capsys: pytest.CaptureFixture[str], status: int) -> None:
    chat.answers = [status]
    tell(chat.url)
    assert capsys.readouterr().err == f"notify.0 was not told of the job's end: HTTP {status}\n"
    assert [kind for kind, _ in chat.posted] == ["application/json"]


def test_a_slow_chat_gets_the_message_once(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.pause_s = patient_post.CONNECT_S + 0.5
    tell(chat.url)
    assert (len(chat.posted), capsys.readouterr().err) == (1, "")
    chat.pause_s = 1.0
    tell(chat.url, limit_s=0.5)
    time.sleep(0.5)
    assert len(chat.posted) == 2
    assert "notify.0 was not told of the job's end: no answer " in capsys.readouterr().err


def test_a_connection_takes_no_longer_than_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_post, "CONNECT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        others = [socket.socket() for _ in range(3)]
        for each in others:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        began = time.monotonic()
        with pytest.raises(urllib.error.URLError):
            patient_post.post(f"http://127.0.0.1:{full.getsockname()[1]}/", b"{}", 5.0)
        assert time.monotonic() - began < 3.0
        for each in others:
            each.close()


def test_the_end_waits_for_a_silent_address_no_longer_than_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        tell(f"http://127.0.0.1:{silent.getsockname()[1]}/", limit_s=0.3)
        assert time.monotonic() - began < 3.0
    assert "no answer within 0.3 s" in capsys.readouterr().err


def test_what_may_be_notified() -> None:
    def mistakes(*notify: str) -> list[str]:
        job = JobSpec({"worker": Role("x")}, notify=notify, secrets={"CHAT": "env:CHAT"})
        return list(map(str, find_mistakes(job)))

    assert mistakes("https://chat.example.org/hook?a=b", "http://127.0.0.1:8080", "CHAT") == []
    assert mistakes("https://chat.example.org/@me?a=b@c", "http://chat?to=me@example.org") == []
    problem = "must be an address, https://…, or the name of one of the job's secrets"
    assert mistakes("CHAD") == [f"notify.0: {problem}"]
    assert mistakes("CHAT", "me@example.org", "https:///x", "file:///etc/passwd") == [
        f"notify.{number}: {problem}" for number in (1, 2, 3)
    ]
    assert mistakes("https://me:s3cret@example.org/hook", "https://me@example.org") == [
        "notify.0: has a user or password before @, which is not sent: leave it out",
        "notify.1: has a user or password before @, which is not sent: leave it out",
    ]
