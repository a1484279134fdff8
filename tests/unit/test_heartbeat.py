"""Tests when an executor asks its master for orders. The master answers over a real socket; time is passed in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Any

import pytest

from howdah.executor.event_loop import EventLoop
from howdah.executor.identity import Identity
from howdah.executor.master_link.heartbeat import Heartbeat
from howdah.spec.codec import encode
from howdah.wire import auth
from howdah.wire.messages import Goal, LogRequest, Orders, Phase, PreemptionNotice, Status

KEY = b"k" * 32
JOIN, RUN = Orders(epoch=1, goal=Goal.JOIN), Orders(epoch=1, goal=Goal.RUN)
STATUS = Status(task="worker:0", attempt=1, epoch=1, sequence=0, phase=Phase.JOINED, host="127.0.0.1", pid=7)


def notice(within_s: float) -> Orders:
    told = PreemptionNotice(number=1, kind="preemption", within_s=within_s, text="soon")
    return Orders(epoch=1, goal=Goal.RUN, notice=told)


class Link:
    """A heartbeat whose clock stands still unless `pass_time` is called, with a master that answers each poll when
    the test says so."""

    def __init__(self, answers: SimpleQueue[Orders], port: int) -> None:
        self.now, self._answers = 1000.0, answers
        self.polls, self.obeyed = 0, 0
        identity = Identity("worker:0", 1, ("127.0.0.1", port), KEY)
        self.loop = EventLoop(lambda: self.now)
        self.heartbeat = Heartbeat(self.loop, identity, self._status, self._obey, self._lost)
        self.heartbeat.start()

    def _status(self) -> Status:
        self.polls += 1  # each message has a status, and all messages here are polls
        return STATUS

    def _obey(self, _: Orders) -> None:
        self.obeyed += 1

    def _lost(self, code: int, reason: str) -> None:
        raise AssertionError(reason)

    def answer(self, orders: Orders) -> None:
        """Answer the poll that waits, and make all calls that are due then."""
        self._answers.put(orders)
        obeyed = self.obeyed
        while self.obeyed == obeyed:
            self.loop.run_once()
        self.make_calls()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.make_calls()

    def make_calls(self) -> None:
        self.loop.call_later(0.0, lambda: None)  # so that it waits for nothing
        self.loop.run_once()


@pytest.fixture
def link() -> Iterator[Link]:
    answers: SimpleQueue[Orders | None] = SimpleQueue()

    class Master(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            orders = answers.get()
            if orders is None:
                self.close_connection = True
                return
            body = json.dumps(encode(orders)).encode()
            self.send_response(200)
            self.send_header(
                auth.HEADER, auth.sign_answer(KEY, self.headers[auth.HEADER], self.path, 200, auth.digest_of(body))
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Master) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        link = Link(answers, server.server_port)  # type: ignore[arg-type]
        yield link
        link.heartbeat.close()
        answers.put(None)
        server.shutdown()
        serving.join(60)


def test_the_same_orders_are_asked_for_again_after_a_pause(link: Link) -> None:
    assert link.polls == 1
    link.answer(JOIN)
    assert link.polls == 2, "the first orders are news"
    for number in range(3, 8):
        link.answer(JOIN)
        link.pass_time(0.049)
        assert link.polls == number - 1
        link.pass_time(0.002)
        assert link.polls == number


@pytest.mark.parametrize(
    "changed",
    [
        lambda: RUN,
        lambda: Orders(epoch=2, goal=Goal.JOIN),
        lambda: Orders(epoch=1, goal=Goal.JOIN, log_requests=(LogRequest(request=1, stream="x", offset=0, limit=1),)),
    ],
)
def test_orders_that_have_changed_are_obeyed_and_the_next_asked_for_at_once(
    link: Link, changed: Callable[[], Orders]
) -> None:
    link.answer(JOIN)
    link.answer(JOIN)
    link.pass_time(0.06)
    link.answer(changed())
    assert (link.obeyed, link.polls) == (3, 4)


def test_a_poll_that_has_waited_at_the_master_is_followed_at_once(link: Link) -> None:
    link.answer(JOIN)
    link.now += 2.0
    link.answer(JOIN)
    assert link.polls == 3


def test_the_seconds_left_of_a_notice_are_no_new_orders(link: Link) -> None:
    link.answer(notice(30.0))
    link.answer(notice(29.9))
    assert link.polls == 2
