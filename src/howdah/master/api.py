"""The master's one port: executors, the submitting client, and people's browsers; each must show who it is.

Executors and the client sign every message (`howdah.wire.auth`) and get signed answers. A browser may only look, with
the read-only token of the link, or through the engine's own proxy where the engine vouches for it. No GET changes
anything; a foreign Host or Origin is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from howdah.master.actions import Heard
from howdah.master.bell import Bell
from howdah.master.eventlog import EventLog
from howdah.master.http import Request, Response
from howdah.master.orders import Director, satisfied
from howdah.master.state import GangState
from howdah.spec import TaskId
from howdah.spec.codec import decode, encode
from howdah.spec.events import CancelRequested, Event
from howdah.web import page
from howdah.wire import auth
from howdah.wire.messages import LogChunk, LogRequest, Orders, Status

MAX_WAIT_S = 30.0
LOG_WAIT_S = 10.0
MAX_LOG_BYTES = 1 << 20
AT_ONCE, APART_S = 100, 0.01
"""A large gang is woken in parts: between them the loop reads and writes, and not all answers lie in memory at once."""


class Api:
    """`apply` hands an event to the master's step; `admits(peer, proxy_user)` is the engine's word for its proxy."""

    def __init__(
        self,
        job_key: bytes,
        state: GangState,
        director: Director,
        log: EventLog,
        apply: Callable[[Event], None],
        admits: Callable[[str, str], bool],
    ) -> None:
        self.job_key, self.state, self.director, self.log = job_key, state, director, log
        self.apply, self.admits = apply, admits
        self.hosts: set[str] = set()
        self.log_read_at = 0.0
        self._bells: dict[TaskId, Bell] = defaultdict(Bell)
        self._log_requests: dict[TaskId, dict[int, LogRequest]] = defaultdict(dict)
        self._log_answers: dict[int, asyncio.Future[LogChunk]] = {}
        self._numbers = itertools.count(1)

    def notify(self, tasks: tuple[TaskId, ...]) -> None:
        """Answer these tasks' waiting polls: their orders have changed."""
        loop = asyncio.get_running_loop()
        for number, task in enumerate(tasks):
            loop.call_later(number // AT_ONCE * APART_S, self._bells[task].ring)

    async def handle(self, request: Request) -> Response:
        """Every request comes through here."""
        if request.headers.get("host", "") not in self.hosts:
            return _refuse(403, f"unknown Host {request.headers.get('host', '')!r}")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] not in self.hosts:
            return _refuse(403, f"foreign Origin {origin!r}")
        if auth.HEADER.lower() in request.headers:
            return await self._signed(request)
        if request.method not in ("GET", "HEAD"):
            return _refuse(403, "a change needs a signed request")
        return self._look(request)

    # Signed: executors and the client

    async def _signed(self, request: Request) -> Response:
        header = request.headers[auth.HEADER.lower()]
        principal = auth.principal_of(header)
        key = auth.derive(self.job_key, principal)
        known = principal == auth.CLIENT or principal.startswith("executor ")
        if not known or not auth.verify(key, "request", header, request.target, time.time(), request.body):
            return _refuse(403, "the signature does not fit (wrong key, or clocks more than 5 minutes apart)")
        try:
            response = await self._route(principal, request)
        except (ValueError, TypeError, KeyError) as error:
            return _refuse(400, f"malformed message: {error}")
        if response.status != 200:
            return response
        signature = auth.sign(key, "response", principal, request.target, time.time(), response.body)
        return Response(200, response.body, headers={auth.HEADER: signature})

    async def _route(self, principal: str, request: Request) -> Response:
        route = (request.method, request.path)
        if principal != auth.CLIENT:
            return await self._beat(principal, request) if route == ("POST", "/v1/executor") else _nothing(request)
        if route == ("GET", "/v1/events"):
            return await self._events(request)
        if route == ("POST", "/v1/cancel"):
            self.apply(CancelRequested(time.time(), str(json.loads(request.body or b"{}").get("by", "the client"))))
            return _json({})
        if request.method == "GET" and request.path.startswith("/v1/logs/"):
            return await self._logs(TaskId.parse(request.path[len("/v1/logs/") :]), request.query)
        return _nothing(request)

    async def _beat(self, principal: str, request: Request) -> Response:
        status = decode(Status, json.loads(request.body))
        task = self.state.tasks.get(TaskId.parse(status.task))
        if principal != auth.executor_principal(status.task, status.attempt):
            return _refuse(403, f"{principal} may not speak for {status.task}/{status.attempt}")
        if task is None or task.attempt != status.attempt or task.container is None:
            return _refuse(410, f"attempt {status.attempt} of {status.task} is not wanted any more")
        self._take_chunks(task.id, status.chunks)
        self.apply(Heard(time.time(), status))
        until = asyncio.get_running_loop().time() + _seconds(request.query)
        orders = self._orders(task.id, status)
        while satisfied(orders, status) and await self._bells[task.id].rung(until):
            orders = self._orders(task.id, status)
        return _json(encode(orders))

    def _orders(self, task: TaskId, status: Status) -> Orders:
        return self.director.orders(self.state, status, tuple(self._log_requests.pop(task, {}).values()))

    def _take_chunks(self, task: TaskId, chunks: tuple[LogChunk, ...]) -> None:
        for chunk in chunks:
            self._log_requests[task].pop(chunk.request, None)
            answer = self._log_answers.pop(chunk.request, None)
            if answer is not None and not answer.done():
                answer.set_result(chunk)

    async def _events(self, request: Request) -> Response:
        since = int(request.query.get("since", "0"))
        until = asyncio.get_running_loop().time() + _seconds(request.query)
        while len(self.log.records) <= since and await self.log.changed.rung(until):
            pass
        return _json(
            {
                "next": len(self.log.records),
                "events": self.log.records[since:],
                "usage": list(self.log.usage.values()),
            }
        )

    async def _logs(self, task: TaskId, query: dict[str, str]) -> Response:
        if task not in self.state.tasks:
            return _refuse(404, f"no task {task}; there are {', '.join(map(str, self.state.tasks))}")
        if self.state.tasks[task].phase is None:
            return _json(encode(LogChunk(0, 0, 0)))
        if self.state.tasks[task].container is None:
            return _refuse(410, f"the container of {task} is gone; what it printed is read when the job has ended")
        self.log_read_at = time.monotonic()
        number = next(self._numbers)
        limit = min(int(query.get("limit", "65536")), MAX_LOG_BYTES)
        wanted = LogRequest(number, query.get("stream", "stdout"), int(query.get("offset", "0")), limit)
        answer: asyncio.Future[LogChunk] = asyncio.get_running_loop().create_future()
        self._log_answers[number] = answer
        self._log_requests[task][number] = wanted
        self.notify((task,))
        try:
            return _json(encode(await asyncio.wait_for(answer, LOG_WAIT_S)))
        except asyncio.TimeoutError:
            return _refuse(504, f"the executor of {task} did not send its log within {LOG_WAIT_S:.0f} s")
        finally:
            self._log_answers.pop(number, None)

    # Unsigned: people who look

    def _look(self, request: Request) -> Response:
        if not self._may_look(request):
            return _refuse(403, "this page needs the token of its link: `howdah status` prints it")
        if request.path in ("/", "/index.html"):
            return Response(200, page.HTML, "text/html; charset=utf-8", page.HEADERS)
        if request.path == "/api/v1/job":
            return _json(page.describe(self.log.view))
        return _nothing(request)

    def _may_look(self, request: Request) -> bool:
        token = request.query.get("token", "")
        if token:
            return hmac.compare_digest(token, auth.view_token(self.job_key))
        cookies = dict(part.strip().partition("=")[::2] for part in request.headers.get("cookie", "").split(";"))
        return self.admits(request.peer, cookies.get("proxy-user", ""))


def _seconds(query: dict[str, str]) -> float:
    return max(0.0, min(float(query.get("wait", "0")), MAX_WAIT_S))


def _json(value: Any) -> Response:
    return Response(200, json.dumps(value, separators=(",", ":")).encode())


def _refuse(status: int, text: str) -> Response:
    return Response(status, f"{text}\n".encode(), "text/plain; charset=utf-8")


def _nothing(request: Request) -> Response:
    return _refuse(404, f"nothing answers {request.method} {request.path}")
