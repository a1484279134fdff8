"""Serves the master's one port: executors, the submitting client, and people's browsers. Each must authenticate itself.

Executors, programs and the client sign every message (`howdah.wire.auth`) and get signed answers. Requests that are not
signed go to `howdah.api.router`: views, and actions with a token. A foreign Host or Origin is refused.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from howdah.api.auth import check_host_and_origin
from howdah.api.errors import status_of
from howdah.api.http_server import Caller, Request, Response
from howdah.engines.pull_launch import LaunchOffers
from howdah.errors import AnswerTimeout, InvalidRequest, NoLongerThere, NotFound, NotPermitted, NotReady, RequestRefused
from howdah.logs.query import search_arguments
from howdah.master.broadcast import Broadcast
from howdah.master.decisions.actions import StatusReceived
from howdah.master.decisions.admission import explain_refusal, reassign_orders
from howdah.master.decisions.executor_orders import OrderBuilder, is_up_to_date
from howdah.master.event_log import EventLog
from howdah.master.program_api.handlers import ProgramApi
from howdah.master.server import user_actions
from howdah.master.server.container_launches import ContainerLaunches
from howdah.master.server.job_source import MasterSource
from howdah.master.server.open_pages import OpenPages
from howdah.master.server.relay import Relay
from howdah.master.server.resource_metrics import MetricsRecorder
from howdah.master.server.task_logs import TaskLogs
from howdah.master.state import GangState
from howdah.master.tensorboard import TensorBoardTask
from howdah.spec import TaskId
from howdah.spec.codec import decode, encode
from howdah.spec.events import Event
from howdah.wire import auth, launch_messages, relay_messages
from howdah.wire import program_protocol as programs
from howdah.wire.clock import SignatureClock
from howdah.wire.messages import LogChunk, LogRequest, Orders, Status
from howdah.wire.relay_messages import StreamRequest

if TYPE_CHECKING:
    from howdah.api.router import ApiRouter

ACTIONS = "/v1/actions/"
_PRINCIPALS = ("executor ", launch_messages.PRINCIPAL, programs.PROGRAM)
MAX_WAIT_S = 30.0
LOG_WAIT_S = 10.0
MAX_LOG_BYTES = 1 << 20
MAX_BODY = 8 << 20
"""The most bytes in a message of an executor or a program: with a piece of a log, each byte of which may take six in
JSON."""
WAKE_BATCH_TASKS, WAKE_INTERVAL_S = 100, 0.01
"""A large gang is notified in parts: between two parts the event loop serves requests, and only one part's answers are
in memory at a time."""


class MasterServer:
    """Answers the requests to the master. `directory` is the URI of the job's directory, `apply` hands an event to the
    master's step, and `trusts_proxy_request(peer, proxy_user)` returns whether the engine trusts its proxy. While
    another master may run the job, `is_the_master()` is False, and no executor's lease is renewed. `launches` answers
    containers that ask what to run."""

    def __init__(
        self,
        *,
        job_key: bytes,
        directory: str,
        state: GangState,
        order_builder: OrderBuilder,
        log: EventLog,
        tensorboard: TensorBoardTask,
        metrics_recorder: MetricsRecorder,
        apply: Callable[[Event], None],
        trusts_proxy_request: Callable[[str, str], bool],
        is_the_master: Callable[[], bool],
        launches: LaunchOffers,
    ) -> None:
        self.job_key, self.directory, self.order_builder = job_key, directory, order_builder
        self.state: GangState = state
        self.tensorboard: TensorBoardTask = tensorboard
        self.log, self.metrics_recorder = log, metrics_recorder
        self.apply, self.trusts_proxy_request, self.is_the_master = apply, trusts_proxy_request, is_the_master
        self.program_api = ProgramApi(state, directory, log.view, apply, log.append)
        self.hosts: set[str] = set()
        self.container_launches = ContainerLaunches(launches, apply)
        self.task_logs = TaskLogs(self, directory)
        self.source = MasterSource(self, directory)
        self.open_pages = OpenPages()
        self.relay = Relay(state, self.notify, log.append)
        self.followed_at, self._clock = 0.0, SignatureClock()
        self._orders_changed: dict[TaskId, Broadcast] = defaultdict(Broadcast)
        self._log_requests: dict[TaskId, dict[int, LogRequest]] = defaultdict(dict)
        self._log_answers: dict[int, asyncio.Future[LogChunk]] = {}
        self._request_numbers = itertools.count(1)
        self._last_answer: tuple[Orders | None, Response] = (None, Response())

    def notify(self, tasks: tuple[TaskId, ...]) -> None:
        """Answer the waiting polls of these tasks: their orders have changed."""
        loop = asyncio.get_running_loop()
        for number, task in enumerate(tasks):
            loop.call_later(number // WAKE_BATCH_TASKS * WAKE_INTERVAL_S, self._orders_changed[task].notify_all)

    async def handle(self, request: Request) -> Response:
        """Answer any request. A master that has left the job to the next one refuses all."""
        if self.state.handed_over:
            return _refusal(NotReady("this attempt of the master is over; the next one answers"))
        try:
            check_host_and_origin(request, self.hosts, self.trusts_proxy_request(request.peer, self.log.view.user))
        except RequestRefused as refused:
            return Response(status_of(refused), json.dumps({"error": str(refused), "place": refused.place}).encode())
        if auth.HEADER.lower() in request.headers:
            return await self._signed(request)
        return await self.web.answer(request)

    @functools.cached_property
    def web(self) -> ApiRouter:
        """Return the router of the page's API, which is loaded with the first request of a page."""
        from howdah.api.router import ApiRouter

        return ApiRouter(self.source)

    def identify(self, request: Request) -> Caller | None:
        """Return who has signed the head of a request, or shows a token in it; None for any other caller."""
        header = request.headers.get(auth.HEADER.lower())
        if header is None:
            return self.source.access.identify(request)
        principal = auth.principal_of(header)
        if principal != auth.CLIENT and not principal.startswith(_PRINCIPALS):
            return None
        key, target = self._key(principal), request.target
        clocks = (time.time(), self._clock.time())  # the clock may have been set since an executor began to sign
        if any(auth.verify_head(key, "request", header, target, now) for now in clocks):
            return Caller(principal, MAX_BODY, key)
        return None

    # Signed requests: executors, programs and the client

    async def _signed(self, request: Request) -> Response:
        header, caller = request.headers[auth.HEADER.lower()], request.caller
        if caller is None or not auth.fits_body(header, request.body):
            return _refusal(NotPermitted("the signature does not fit (wrong key, or clocks more than 5 minutes apart)"))
        try:
            response = await self._route(caller.name, request)
        except RequestRefused as refused:
            response = _refusal(refused)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            response = _refusal(InvalidRequest(f"malformed message: {error}"))
        digest = response.digest or auth.digest_of(response.body)
        signature = auth.sign_answer(caller.key, header, request.target, response.status, digest)
        return replace(response, headers={**response.headers, auth.HEADER: signature})

    def _key(self, principal: str) -> bytes:
        """Return the key of a principal; a program's key is derived from that of the executor which started it."""
        if principal.startswith(programs.PROGRAM):
            attempt = principal[len(programs.PROGRAM) :].rpartition("/")[0]
            return programs.program_key(self._key(f"executor {attempt}"), principal)
        if principal.startswith(launch_messages.PRINCIPAL):
            return launch_messages.key_of(self.job_key, principal[len(launch_messages.PRINCIPAL) :])
        launched = self.state.launch_attempt_of.get(principal.partition("executor ")[2])
        if launched is not None:
            return auth.derive(auth.derive(self.job_key, f"executor {launched}"), principal)
        return auth.derive(self.job_key, principal)

    async def _route(self, principal: str, request: Request) -> Response:
        route = (request.method, request.path)
        if principal.startswith(programs.PROGRAM):
            if request.method != "POST" or not request.path.startswith(programs.PATH):
                raise _not_found(request)
            return _json(await self.program_api.answer(principal, request.path[len(programs.PATH) :], request.body))
        if principal.startswith(launch_messages.PRINCIPAL):
            return await self.container_launches.answer(principal[len(launch_messages.PRINCIPAL) :], request)
        if principal != auth.CLIENT:
            if request.method == "POST" and request.path in (relay_messages.CONTROL, relay_messages.ACCEPT):
                return await self.relay.answer_relay_process(principal, request)
            if route != ("POST", "/v1/executor"):
                raise _not_found(request)
            return await self._heartbeat(principal, request)
        if route == ("POST", relay_messages.OPEN):
            return await self.relay.open(request, decode(StreamRequest, _object(request.body)))
        if route == ("GET", "/v1/events"):
            return await self._events(request)
        if request.method == "POST" and request.path.startswith(ACTIONS):
            arguments = _object(request.body or b"{}")
            by = str(arguments.pop("by", "the client"))
            return _json(await user_actions.execute(self, request.path[len(ACTIONS) :], arguments, by))
        if route == ("GET", "/v1/search"):
            return _json(await self.source.search(*search_arguments(self.source.view, request.query)))
        if request.method == "GET" and request.path.startswith("/v1/logs/"):
            return await self._logs(TaskId.parse(request.path[len("/v1/logs/") :]), request.query)
        raise _not_found(request)

    async def _heartbeat(self, principal: str, request: Request) -> Response:
        status = decode(Status, _object(request.body))
        if principal != auth.executor_principal(status.task, status.attempt):
            raise NotPermitted(f"{principal} may not speak for {status.task}/{status.attempt}")
        if status.task == self.tensorboard.task_name:
            orders = await self.tensorboard.heartbeat(status, _seconds(request.query))
            if orders is None:
                raise NoLongerThere(f"{status.task} is not wanted any more")
            return _json(encode(orders))
        if not self.is_the_master():
            raise NotReady("another master may have taken over; nothing is known of it")
        if moved := reassign_orders(self.state, status):
            return _json(encode(moved))
        if refused := explain_refusal(self.state, status):
            raise NoLongerThere(refused)
        task = TaskId.parse(status.task)
        self._take_chunks(task, status.chunks)
        self.apply(StatusReceived(time.time(), status))
        until = time.monotonic() + _seconds(request.query)
        orders = self._orders(task, status)
        while is_up_to_date(orders, status) and await self._orders_changed[task].wait_until(until):
            if moved := reassign_orders(self.state, status):
                return _json(encode(moved))
            orders = self._orders(task, status)
        return self._encode_orders(orders)

    def _encode_orders(self, orders: Orders) -> Response:
        """Encode the orders; most executors get the same orders, most of the time."""
        if orders != self._last_answer[0]:
            self._last_answer = orders, _json(encode(orders))
        return self._last_answer[1]

    def _orders(self, task: TaskId, status: Status) -> Orders:
        logs = tuple(self._log_requests.pop(task, {}).values())
        return self.order_builder.orders(self.state, status, logs, self.relay.requested(task))

    def _take_chunks(self, task: TaskId, chunks: tuple[LogChunk, ...]) -> None:
        for chunk in chunks:
            self._log_requests[task].pop(chunk.request, None)
            answer = self._log_answers.pop(chunk.request, None)
            if answer is not None and not answer.done():
                answer.set_result(chunk)

    async def _events(self, request: Request) -> Response:
        self.followed_at = time.monotonic()
        since = int(request.query.get("since", "0"))
        until = time.monotonic() + _seconds(request.query)
        while len(self.log.records) <= since and await self.log.changed.wait_until(until):
            self.followed_at = time.monotonic()
        records = self.log.records
        return _json({"next": len(records), "events": records[since:], "usage": list(self.log.usage.values())})

    async def _logs(self, task: TaskId, query: dict[str, str]) -> Response:
        limit = min(int(query.get("limit", "65536")), MAX_LOG_BYTES)
        stream, offset = query.get("stream", "stdout"), int(query.get("offset", "0"))
        attempt = int(query.get("attempt", "0"))
        return _json(encode(await self.task_logs.read(task, stream, attempt, offset, limit)))

    async def log_of(
        self, task: TaskId, stream: str, offset: int, limit: int, wait_s: float = LOG_WAIT_S, search: str = ""
    ) -> LogChunk:
        """Return what the task's present attempt printed, from its executor.

        Raises:
            NotFound: there is no such task.
            NoLongerThere: the task has no container any more.
            AnswerTimeout: the executor does not answer.
        """
        if task not in self.state.tasks:
            raise NotFound(f"no task {task}; there are {', '.join(map(str, self.state.tasks))}")
        if self.state.tasks[task].phase is None:
            return LogChunk(request=0, offset=0, size=0)
        if self.state.tasks[task].container is None:
            raise NoLongerThere(f"the container of {task} is gone; what it printed is read when the job has ended")
        self.followed_at = time.monotonic()
        number = next(self._request_numbers)
        wanted = LogRequest(number, stream=stream, offset=offset, limit=limit, search=search)
        answer: asyncio.Future[LogChunk] = asyncio.get_running_loop().create_future()
        self._log_answers[number] = answer
        self._log_requests[task][number] = wanted
        self.notify((task,))
        try:
            return await asyncio.wait_for(answer, wait_s)
        except asyncio.TimeoutError:
            raise AnswerTimeout(f"the executor of {task} did not send its log within {wait_s:.0f} s") from None
        finally:
            self._log_answers.pop(number, None)


def _seconds(query: dict[str, str]) -> float:
    return max(0.0, min(float(query.get("wait", "0")), MAX_WAIT_S))


def _object(body: bytes) -> dict[str, Any]:
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the body must be a JSON object")
    return found


def _json(value: Any) -> Response:
    return Response(200, json.dumps(value, separators=(",", ":")).encode())


def _refusal(error: RequestRefused) -> Response:
    return Response(status_of(error), f"{error}\n".encode(), "text/plain; charset=utf-8")


def _not_found(request: Request) -> NotFound:
    return NotFound(f"nothing answers {request.method} {request.path}")
