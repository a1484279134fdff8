"""Opens streams to the tasks of a running job, through its master (`howdah.wire.relay_messages`)."""

from __future__ import annotations

import asyncio
import getpass
import json
import secrets
import socket
import time
import urllib.parse
from collections.abc import AsyncIterator, Callable
from typing import Any

from howdah.client.follow import fetch_update
from howdah.client.job_end import report_of
from howdah.client.master_client import job_key, translate_refusals
from howdah.client.start_wait import require_running
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, JobEnded, JobFailed, SpecError
from howdah.logs.query import tasks_of
from howdah.spec import TaskId
from howdah.spec.codec import decode, encode
from howdah.wire import auth
from howdah.wire import relay_messages as wire
from howdah.wire.relay_connection import open_relay_connection
from howdah.wire.relay_messages import CommandEnd, CommandRequest, FrameReader, StreamRequest
from howdah.wire.splice import SpliceEnd

SHORT_S = 60.0
"""Limit in seconds for a command whose whole output is collected."""
ENDING_S, LOOK_S = 5.0, 0.5
"""Seconds within which the end of a task, or of its job, is known after its streams were lost; and seconds between two
checks."""


class RelayClient:
    """Opens streams to the tasks of one job.

    Raises:
        JobNotFound, JobEnded, EngineUnavailable: there is no such job, it has ended, or it waits for its master.
        StagingError: this user may not read the job's key.
    """

    def __init__(self, engine: Engine, job_id: str) -> None:
        self.engine, self.job_id = engine, job_id
        self.find_master()

    def find_master(self) -> None:
        """Find where the master is now; another one may have taken over.

        Raises:
            JobEnded, EngineUnavailable: the job has ended, or its master has not started yet.
        """
        report = report_of(self.engine, self.job_id)
        if report.state.ended:
            raise JobEnded(f"{self.job_id} has ended: {report.state.value}")
        if not report.master:
            raise EngineUnavailable(f"{self.job_id} waits for its master: nothing runs yet")
        url = urllib.parse.urlsplit(report.master)
        self._address = url.hostname or "", url.port or 80
        self._key = auth.derive(job_key(self.engine, report), auth.CLIENT)

    def task(self, name: str) -> TaskId:
        """Return the task that `name` means: `worker:1`, a role of one task, or "" for a job of one task.

        Raises:
            InvalidRequest, NotFound: `name` is malformed, or there is no such task.
            SpecError: `name` means more than one task.
        """
        view = fetch_update(self.engine, self.job_id).view
        found = tasks_of(view, name)
        if len(found) == 1:
            return found[0]
        known = ", ".join(map(str, found[:20])) or "none yet"
        raise SpecError.at("TASK", f"{name or 'is missing'}: say which of {self.job_id}: {known}")

    async def open(self, task: TaskId, **wanted: Any) -> tuple[socket.socket, bytes]:
        """Open a stream to `task`; `wanted` is `port`, `command`, `attach` or `copy` of a StreamRequest.

        It returns a socket that does not block, and the bytes of the stream that have been received already.

        Raises:
            RequestRefused: there is no such task, port or command.
            JobEnded, EngineUnavailable: the job has ended, or no master answers.
        """
        try:
            return await self._open(task, **wanted)
        except EngineUnavailable:  # another master may have taken over
            await asyncio.to_thread(self.find_master)
            return await self._open(task, **wanted)

    async def _open(self, task: TaskId, **wanted: Any) -> tuple[socket.socket, bytes]:
        request = StreamRequest(id=secrets.token_hex(16), task=str(task), by=getpass.getuser(), **wanted)
        body = json.dumps(encode(request), separators=(",", ":")).encode()
        with translate_refusals(self.job_id):
            return await open_relay_connection(self._address, auth.CLIENT, self._key, wire.OPEN, body)

    async def connect_port(self, task: TaskId, port: str, end: SpliceEnd) -> None:
        """Open a stream to a port of `task`, and give it to `end`.

        Raises:
            HowdahError: as `open`.
        """
        connection, early = await self.open(task, port=port)
        await asyncio.get_running_loop().create_connection(lambda: end, sock=connection)
        if early:
            end.data_received(early)

    def run(self, task: TaskId, argv: tuple[str, ...]) -> tuple[CommandEnd, str]:
        """Run a short command in a task; return how it ended, and what it printed.

        Raises:
            HowdahError: as `open`.
            EngineUnavailable: it has not ended after SHORT_S seconds, or the connection was lost.
        """

        async def collect() -> tuple[CommandEnd, str]:
            connection, early = await self.open(task, command=CommandRequest(argv=argv))
            printed = bytearray()
            with connection:
                loop = asyncio.get_running_loop()
                ended = await read_command(early, lambda: loop.sock_recv(connection, 1 << 16), printed)
            if ended is None:
                raise EngineUnavailable(self.why_lost(task))
            return ended, printed.decode("utf-8", "replace").strip()

        try:
            return asyncio.run(asyncio.wait_for(collect(), SHORT_S))
        except asyncio.TimeoutError:
            raise EngineUnavailable(f"{argv[0]} in {task} has not ended within {SHORT_S:.0f} s") from None

    def why_lost(self, task: TaskId) -> str:
        """Return why a stream to `task` was lost: how the task, or its job, has ended, with the last lines."""
        lost, until = f"the connection to {task} of {self.job_id} was lost", time.monotonic() + ENDING_S
        while time.monotonic() < until:
            try:
                update = fetch_update(self.engine, self.job_id)
                require_running(self.job_id, update)
            except JobFailed as error:
                return f"{lost}: {error}"
            except HowdahError:
                continue
            found = update.view.tasks.get(task)
            if found is not None and found.exit is not None:
                lines = "".join(f"\n{line}" for line in found.exit.lines)
                return f"{lost}: {task} on {found.host or found.node}: {found.exit}{lines}"
            time.sleep(LOOK_S)
        return lost


async def read_command(early: bytes, receive: Callable[[], Any], printed: bytearray) -> CommandEnd | None:
    """Append what a command prints to `printed`; return how it ended, None if the connection was lost before."""
    async for kind, content in frames_of(early, receive):
        if kind in (wire.OUTPUT, wire.ERRORS):
            printed += content
        elif kind == wire.ENDED:
            return decode(CommandEnd, json.loads(content))
    return None


async def frames_of(early: bytes, receive: Callable[[], Any]) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the frames of a stream to a command. `early` was received before; `receive()` awaits more, b"" at the end
    of the connection."""
    reader, data = FrameReader(), early
    while True:
        for found in reader.feed(data):
            yield found
        try:
            data = await receive()
        except OSError:
            return
        if not data:
            return
