"""A helper process (`howdah.wire.helper_main`) opens the streams that its master asks for.

It listens nowhere: it connects to the master, and to ports of its own node. It ends by itself when it has had no
stream and no command for a while; the executor starts it again when the master wants it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from howdah.executor.process.process_tree import Reaper, adopt_orphans
from howdah.executor.relay.command_session import CommandSession
from howdah.localfiles.tree_stream import PIECE, STALL_S, CopyProblem, receive_tree, send_tree
from howdah.spec.codec import decode, encode
from howdah.wire.connection import WireError
from howdah.wire.helper_main import one_line, run_helper_main
from howdah.wire.helper_messages import CommandContext, RelayRequest
from howdah.wire.relay_connection import open_relay_connection
from howdah.wire.relay_messages import (
    ACCEPT,
    CONTROL,
    LIMIT_S,
    MAX_REQUEST,
    AttachRequest,
    CommandRequest,
    CopyRequest,
    CopyResult,
    StreamRefusal,
    StreamRequest,
)
from howdah.wire.splice import SpliceEnd, join

IDLE_S, CHECK_S = 600.0, 15.0
"""Seconds without a stream or a command after which the process ends, and seconds between two checks of that."""
RETRY_S = 1.0
"""Seconds between two attempts to reach the master."""
MAX_SESSIONS, MAX_COPIES = 64, 16
"""The most commands, and the most copies, at once."""
MAX_ENDED = 16
"""Ended commands whose last output is kept for clients that come back."""
CONNECT_S = 5.0
"""Limit in seconds for connecting to a port of this node, at one of its addresses."""
LINGER_S = 10.0
"""Seconds for which a refused client may go on sending."""


class StreamProblem(Exception):
    """A stream cannot be opened, for this reason. `gone` says that a client wants to come back to a command that is no
    longer there."""

    def __init__(self, reason: str, gone: bool = False) -> None:
        super().__init__(reason)
        self.gone = gone


class RelayProcess:
    """Opens the streams of one attempt of a task."""

    def __init__(self, request: RelayRequest) -> None:
        self._request = request
        self._key = bytes.fromhex(request.key)
        self._reaper = Reaper()
        self._sessions: Dict[str, CommandSession] = {}
        self._tasks: Set[asyncio.Task[Any]] = set()
        self._copying = ThreadPoolExecutor(MAX_COPIES, "copy")
        self._streams = self._copies = 0
        self._used_at = time.monotonic()

    async def run(self) -> None:
        """Open what the master asks for, until nothing has used the relay for IDLE_S seconds."""
        adopt_orphans()
        os.set_inheritable(self._request.context_fd, False)  # commands get their own variables
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reaper.reap)
        listening = asyncio.ensure_future(self._listen())
        while time.monotonic() - self._used_at < IDLE_S:
            done, _ = await asyncio.wait((listening,), timeout=CHECK_S)
            if done:
                listening.result()  # it ends only by a fault, which belongs in the executor's log
            if self._streams or any(not session.ended for session in self._sessions.values()):
                self._used_at = time.monotonic()
        listening.cancel()

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(WireError, OSError, ValueError, TypeError, KeyError):
                reader, writer = await self._connect(CONTROL)
                with contextlib.closing(writer):
                    while line := await reader.readline():
                        self._used_at = time.monotonic()
                        self._start(self._open(decode(StreamRequest, json.loads(line)), writer))
            await asyncio.sleep(RETRY_S)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, path: str) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        connection, rest = await self._connect_to_master(path)
        reader, writer = await asyncio.open_connection(sock=connection, limit=2 * MAX_REQUEST)
        if rest:
            reader.feed_data(rest)
        return reader, writer

    async def _connect_to_master(self, path: str) -> Tuple[socket.socket, bytes]:
        host, _, port = (await self._context()).master.rpartition(":")
        return await open_relay_connection((host, int(port)), self._request.principal, self._key, path)

    async def _open(self, wanted: StreamRequest, control: asyncio.StreamWriter) -> None:
        """Open a stream, or report to the master why it cannot be opened."""
        self._streams += 1
        path = f"{ACCEPT}?stream={urllib.parse.quote(wanted.id, safe='')}"
        try:
            if wanted.port:
                await self._serve_port(int(wanted.port), path)
            elif wanted.copy is not None:
                await self._serve_copy(wanted.copy, path)
            else:
                await self._serve_command(wanted, path)
        except (StreamProblem, WireError, OSError, ValueError) as error:
            refusal = StreamRefusal(wanted.id, problem=one_line(error), gone=getattr(error, "gone", False))
            control.write(json.dumps(encode(refusal)).encode() + b"\n")
        finally:
            self._streams -= 1
            self._used_at = time.monotonic()
            self._forget_sessions()

    async def _serve_port(self, port: int, path: str) -> None:
        """Connect to a port of this node, and copy between it and the master until both sides have ended."""
        loop, near = asyncio.get_running_loop(), SpliceEnd()
        problem: Optional[BaseException] = None
        for host in ("127.0.0.1", "::1", self._request.host):
            try:
                await asyncio.wait_for(loop.create_connection(lambda: near, host, port), CONNECT_S)
                break
            except (OSError, asyncio.TimeoutError) as error:
                problem = problem or error
        else:
            reason = os.strerror(problem.errno or 0) if isinstance(problem, OSError) else "no answer"
            raise StreamProblem(f"nothing answers at port {port} of {self._request.host}: {reason}")
        ended = asyncio.Event()
        try:
            connection, rest = await self._connect_to_master(path)
            far = SpliceEnd(ended.set)
            await loop.create_connection(lambda: far, sock=connection)
        except BaseException:
            near.abort()
            raise
        if rest:
            far.data_received(rest)
        join(near, far)
        await ended.wait()

    async def _serve_copy(self, wanted: CopyRequest, path: str) -> None:
        """Send or receive a file or directory, in a thread that waits for disk and connection."""
        if self._copies >= MAX_COPIES:
            raise StreamProblem(f"{MAX_COPIES} copies are made already")
        self._copies += 1
        try:
            where = Path((await self._context()).directory, os.path.expanduser(wanted.path))
            connection, rest = await self._connect_to_master(path)
            connection.settimeout(STALL_S)
            copy = receive_copy if wanted.to_task else send_copy
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._copying, copy, connection, rest, where, wanted.name)
        finally:
            self._copies -= 1

    async def _serve_command(self, wanted: StreamRequest, path: str) -> None:
        session, have = await self._session(wanted)
        try:
            reader, writer = await self._connect(path)
        except BaseException:
            if not session.attached:
                session.leave()
            raise
        await session.serve(reader, writer, have)

    async def _session(self, wanted: StreamRequest) -> Tuple[CommandSession, int]:
        """Return the command to serve, and how many bytes of its output its client has."""
        if wanted.attach is not None:
            return self._find(wanted.attach), wanted.attach.have
        running = sum(not session.ended for session in self._sessions.values())
        if running >= MAX_SESSIONS:
            raise StreamProblem(f"{running} commands run already; at most {MAX_SESSIONS} may")
        context = await self._context()
        try:
            session = CommandSession(wanted.id, wanted.command or CommandRequest(), context, self._reaper)
        except OSError as error:
            raise StreamProblem(f"{error.filename or 'the command'} cannot be run: {error.strerror}") from error
        self._sessions[wanted.id] = session
        return session, 0

    def _find(self, wanted: AttachRequest) -> CommandSession:
        found = [each for each in self._sessions.values() if each.terminal and wanted.session in ("", each.id)]
        if wanted.session:
            if not found:
                raise StreamProblem(f"no command {wanted.session[:80]} runs here any more", gone=True)
            return found[0]
        left = [each for each in found if not each.attached and not each.ended]
        if not left:
            raise StreamProblem("no shell waits here for its client", gone=True)
        return max(left, key=lambda each: each.left_at)

    async def _context(self) -> CommandContext:
        """Return the address of the master, and how the task's program is run now.

        Raises:
            StreamProblem: the executor does not say it.
        """
        file, deadline = self._request.context_fd, time.monotonic() + LIMIT_S / 2
        while time.monotonic() < deadline:  # the executor may be writing it
            with contextlib.suppress(ValueError):
                return decode(CommandContext, json.loads(os.pread(file, os.fstat(file).st_size, 0)))
            await asyncio.sleep(0.01)
        raise StreamProblem("the executor has not said how its program is run")

    def _forget_sessions(self) -> None:
        """Forget the oldest commands that have ended."""
        ended = [name for name, session in self._sessions.items() if session.ended and not session.attached]
        for name in ended[: max(0, len(ended) - MAX_ENDED)]:
            del self._sessions[name]


def send_copy(connection: socket.socket, _: bytes, path: Path, __: str) -> None:
    """Send the file or the directory at `path`."""
    with connection, contextlib.suppress(OSError):
        send_tree(path, connection)


def receive_copy(connection: socket.socket, early: bytes, path: Path, name: str) -> None:
    """Receive what the client sends and answer with a CopyResult; `early` are the bytes that have arrived already."""
    with connection, contextlib.suppress(OSError, EOFError):
        try:
            result = CopyResult(path=str(receive_tree(connection, early, path, name)))
        except CopyProblem as error:
            result = CopyResult(problem=str(error))
        connection.sendall(json.dumps(encode(result)).encode())
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(LINGER_S)
        while connection.recv(PIECE):  # a close before the client has sent all would lose the answer
            pass


def serve(request: RelayRequest) -> None:
    """Open the streams of one attempt of a task."""
    asyncio.run(RelayProcess(request).run())


if __name__ == "__main__":
    run_helper_main({"serve": serve})
