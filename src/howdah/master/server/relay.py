"""The relay: copies bytes between a client and the relay process of a task's container (`howdah.wire.relay_messages`).

The master only copies: the relay process connects to ports and starts commands. Each stream is two connections to the
master. The relay reads from the faster side only what the slower side has room for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import replace

from howdah.api.http_server import Request, Response
from howdah.errors import (
    AnswerTimeout,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NoLongerThere,
    NotFound,
    RequestRefused,
)
from howdah.master.broadcast import Broadcast
from howdah.master.state import GangState, TaskState
from howdah.spec import TaskId
from howdah.spec.codec import decode, encode
from howdah.spec.events import Event, TaskEntered
from howdah.wire import relay_messages
from howdah.wire.relay_messages import LIMIT_S, MAX_REQUEST, StreamRefusal, StreamRequest
from howdah.wire.splice import SpliceEnd, join, keep_alive

MAX_STREAMS = 2000
"""The most streams of a job at once."""
PORT_EVENT_S = 600.0
"""Seconds within which further streams of a user to the same port are not recorded as events."""
ASK_AGAIN_S = 10.0
"""Seconds after which an executor that has started no relay process is asked again."""
MAX_IDS = 10000
"""Ids of streams that are remembered, so that none is used again."""
MAX_LINE = 64 << 10
"""The most bytes of a refusal."""


class Relay:
    """Opens and counts the streams of one job.

    `notify` answers the waiting polls of executors, whose orders carry `requested(task)`; `append` records an event.
    """

    def __init__(
        self, state: GangState, notify: Callable[[tuple[TaskId, ...]], None], append: Callable[[Event], None]
    ) -> None:
        self._state, self._notify, self._append = state, notify, append
        self._requested: dict[TaskId, int] = {}
        self._controls: dict[str, _ControlConnection] = {}
        self._connected = Broadcast()
        self._pending: dict[str, _PendingStream] = {}
        self._used: dict[str, None] = {}
        self._port_events: dict[tuple[str, str, str, str], float] = {}
        self.streams = 0

    def requested(self, task: TaskId) -> int:
        """Return the number of the latest request for a relay process of `task`: milliseconds since 1970, so that a
        master that takes over repeats none; 0: there was none."""
        return self._requested.get(task, 0)

    async def open(self, request: Request, wanted: StreamRequest) -> Response:
        """Open a stream for a client: an answer after which its connection is the stream.

        Raises:
            RequestRefused: there is no such task, port or program, or nothing answers there in time.
        """
        self._check(request, wanted)
        task = self._task(wanted.task)
        message = encode(replace(wanted, port=_port_number(task, wanted.port)) if wanted.port else wanted)
        deadline = time.monotonic() + LIMIT_S
        self.streams += 1
        try:
            control = await self._control(task, deadline)
            pending = self._pending[wanted.id] = _PendingStream(control)
            control.send(message)
            far = await asyncio.wait_for(pending.accepted, max(0.0, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            self.streams -= 1
            raise AnswerTimeout(f"{wanted.task} has not opened the stream within {LIMIT_S:.0f} s") from None
        except BaseException:
            self.streams -= 1
            raise
        finally:
            self._pending.pop(wanted.id, None)
        self._record(wanted, request.peer)
        return _switch_protocols(lambda transport: self._join(transport, far))

    def _join(self, transport: asyncio.Transport, far: SpliceEnd) -> SpliceEnd:
        near = SpliceEnd(self._stream_ended)
        near.connection_made(transport)
        join(near, far)
        return near

    def _stream_ended(self) -> None:
        self.streams -= 1

    async def answer_relay_process(self, principal: str, request: Request) -> Response:
        """Answer a relay process: it connects, or it has opened a stream.

        Raises:
            NoLongerThere: nobody waits for the stream.
        """
        attempt = principal.partition(" ")[2]
        if request.path == relay_messages.CONTROL:
            return _switch_protocols(lambda transport: _ControlConnection(transport, attempt, self))
        pending = self._pending.get(request.query.get("stream", ""))
        if request.path != relay_messages.ACCEPT or pending is None or pending.control.attempt != attempt:
            raise NoLongerThere("nobody waits for this stream any more")
        return _switch_protocols(pending.accept_connection)

    def add_control(self, control: _ControlConnection) -> None:
        """Use this connection from now on to ask for streams of its attempt."""
        self._controls[control.attempt] = control
        self._connected.notify_all()

    def remove_control(self, control: _ControlConnection) -> None:
        """Refuse the streams that were requested through a lost connection."""
        if self._controls.get(control.attempt) is control:
            del self._controls[control.attempt]
        for pending in self._pending.values():
            if pending.control is control:
                pending.refuse(Conflict("its relay process has ended"))

    def refuse_stream(self, control: _ControlConnection, refusal: StreamRefusal) -> None:
        """Refuse a stream that the relay process behind `control` cannot open."""
        pending = self._pending.get(refusal.stream)
        if pending is not None and pending.control is control:
            pending.refuse((NoLongerThere if refusal.gone else Conflict)(refusal.problem))

    def _check(self, request: Request, wanted: StreamRequest) -> None:
        if request.headers.get("upgrade", "").lower() != relay_messages.PROTOCOL:
            raise InvalidRequest(f"a stream needs the header Upgrade: {relay_messages.PROTOCOL}")
        if not wanted.kind:
            raise InvalidRequest("a stream has exactly one of `port`, `command`, `attach` and `copy`")
        if not 16 <= len(wanted.id) <= 64 or wanted.id in self._used:
            raise InvalidRequest("the id of a stream has 16 to 64 characters, and is used once")
        if len(request.body) > MAX_REQUEST:
            raise LimitExceeded(f"a command has at most {MAX_REQUEST >> 10} KiB of words")
        if self.streams >= MAX_STREAMS:
            raise LimitExceeded(f"the job has {MAX_STREAMS} streams already")
        self._used[wanted.id] = None
        while len(self._used) > MAX_IDS:
            del self._used[next(iter(self._used))]

    def _task(self, name: str) -> TaskState:
        try:
            task = self._state.tasks.get(TaskId.parse(name))
        except ValueError as error:
            raise InvalidRequest(str(error), "task") from None
        if task is None:
            raise NotFound(
                f"no task {name[:80]}; there are {', '.join(map(str, list(self._state.tasks)[:20]))}", "task"
            )
        if task.container is None or task.phase is None:
            raise Conflict(f"{name} has no container in which howdah runs now", "task")
        return task

    async def _control(self, task: TaskState, deadline: float) -> _ControlConnection:
        """Return the connection of the task's relay process, which is started if there is none.

        Raises:
            AnswerTimeout: there is none at `deadline`.
        """
        while (control := self._controls.get(task.attempt_name)) is None:
            self._requested[task.id] = int(time.time() * 1000)
            self._notify((task.id,))
            again = min(deadline, time.monotonic() + ASK_AGAIN_S)
            if not await self._connected.wait_until(again) and time.monotonic() >= deadline:
                raise AnswerTimeout(f"{task.id} has started no relay process within {LIMIT_S:.0f} s")
        return control

    def _record(self, wanted: StreamRequest, peer: str) -> None:
        """Record who entered the task. Of the many connections of a browser to a port, record the first."""
        now, detail = time.time(), wanted.port
        if wanted.port:
            key = (wanted.by, peer, wanted.task, wanted.port)
            recorded = {each: at for each, at in self._port_events.items() if now - at < PORT_EVENT_S}
            self._port_events = {key: now, **recorded}
            if key in recorded:
                return
        elif wanted.copy is not None:
            detail = wanted.copy.path
        elif wanted.command is not None and wanted.command.argv:
            detail = wanted.command.argv[0]  # the other words may contain secrets
        self._append(
            TaskEntered(
                now,
                task=TaskId.parse(wanted.task),
                by=wanted.by[:200],
                address=peer,
                access=wanted.kind,
                detail=detail[:200],
            )
        )


def _port_number(task: TaskState, port: str) -> str:
    if port.isdecimal() and port.isascii() and 0 < int(port) < 1 << 16:
        return port
    if port not in task.ports:
        known = ", ".join(task.ports) or "none"
        raise NotFound(f"{task.id} has no port {port[:80]!r}: give a number, or one of its names ({known})", "port")
    return str(task.ports[port])


def _switch_protocols(protocol: Callable[[asyncio.Transport], asyncio.Protocol]) -> Response:
    headers = {"Connection": "Upgrade", "Upgrade": relay_messages.PROTOCOL}
    return Response(101, headers=headers, upgrade=protocol)


class _PendingStream:
    """A stream for which a relay process has been asked by `control`."""

    def __init__(self, control: _ControlConnection) -> None:
        self.control = control
        self.accepted: asyncio.Future[SpliceEnd] = asyncio.get_running_loop().create_future()

    def accept_connection(self, transport: asyncio.Transport) -> asyncio.Protocol:
        """Take the connection that the relay process has opened for the stream."""
        end = SpliceEnd()
        end.connection_made(transport)
        if self.accepted.done():
            end.abort()
        else:
            self.accepted.set_result(end)
        return end

    def refuse(self, error: RequestRefused) -> None:
        """Let the client that waits for the stream get this error."""
        if not self.accepted.done():
            self.accepted.set_exception(error)


class _ControlConnection(asyncio.Protocol):
    """The connection by which a relay process learns which streams to open: a JSON line each."""

    def __init__(self, transport: asyncio.Transport, attempt: str, relay: Relay) -> None:
        self.attempt, self._transport, self._relay, self._buffer = attempt, transport, relay, b""
        keep_alive(transport.get_extra_info("socket"))
        relay.add_control(self)

    def send(self, request: object) -> None:
        """Send a StreamRequest to the relay process."""
        self._transport.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")

    def data_received(self, data: bytes) -> None:
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > MAX_LINE:
            self._transport.abort()
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self._relay.refuse_stream(self, decode(StreamRefusal, json.loads(line)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._relay.remove_control(self)
