"""Runs a command in a task's container with this process's terminal, or with its standard streams.

With a terminal, a lost connection is opened again, and the command's output goes on where it had stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import selectors
import signal
import socket
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from typing import Any

from howdah.client.relay import RelayClient
from howdah.errors import HowdahError, JobEnded, JobNotFound, NoLongerThere
from howdah.spec import TaskId
from howdah.spec.codec import decode
from howdah.wire import relay_messages as wire
from howdah.wire.relay_messages import AttachRequest, CommandEnd, CommandRequest, CommandStarted, FrameReader

PIECE = 1 << 16
WAITING = 1 << 20
"""The most bytes of input that wait for the task; then no more input is read."""
COME_BACK_S, RETRY_S, LOOK_S = 600.0, 1.0, 0.05
"""Seconds for which a lost connection is tried again, seconds between two tries, and seconds between two checks of what
the user types."""
_INTERRUPT = b"\x03"
_LEAVE = b"~."


class ConnectionLost(HowdahError):
    """The connection was lost before the command had ended."""

    exit_code = 69


class RemoteCommand:
    """Runs `command` in `task`, or comes back to one that runs there. `say` prints a line for people.

    A command with a terminal needs one here.
    """

    def __init__(
        self,
        relay: RelayClient,
        task: TaskId,
        command: CommandRequest,
        attach: AttachRequest | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._relay, self._task, self._command, self._attach, self._say = relay, task, command, attach, say
        self.session = ""
        """The command's name, once it runs."""
        self.left = False
        """Whether the user has left the command running, by `~.` at the beginning of a line."""
        self._have = 0
        self._frames = FrameReader()
        self._waiting = bytearray()
        self._input_ended = False
        self._line_start, self._tilde = True, False

    def run(self) -> CommandEnd:
        """Run the command until it ends or the user leaves it.

        Raises:
            RequestRefused, EngineUnavailable: the command cannot be started.
            ConnectionLost: the connection was lost, and could not be opened again.
        """
        connection, early = self._open()
        if not self._command.terminal:
            with connection:
                ended = self._exchange(connection, early)
            if ended is None:
                raise ConnectionLost(f"{self._relay.why_lost(self._task)}\nthe command was told to end")
            return ended
        with _raw_terminal(), _window_changes() as self._resized:
            while True:
                with connection:
                    ended = self._exchange(connection, early)
                if ended is not None:
                    return ended
                if self.left:
                    return CommandEnd(code=0)
                connection, early = self._come_back()

    def _open(self) -> tuple[socket.socket, bytes]:
        wanted: dict[str, Any] = {"attach": self._attach} if self._attach is not None else {"command": self._command}
        return asyncio.run(self._relay.open(self._task, **wanted))

    def _come_back(self) -> tuple[socket.socket, bytes]:
        """Open the lost connection again.

        Raises:
            ConnectionLost: the command or its job has ended meanwhile, or no master answers, or the user gives up.
        """
        since, until = time.strftime("%H:%M:%S"), time.monotonic() + COME_BACK_S
        self._say(f"the connection was lost at {since}; trying to come back for {COME_BACK_S:.0f} s, Ctrl-C gives up")
        self._attach, self._frames = AttachRequest(session=self.session, have=self._have), FrameReader()
        self._waiting.clear()
        typed = bytearray()
        while True:
            attempt = _Attempt(self._find_master_and_open)
            while attempt.is_alive():
                typed += self._read_typed(LOOK_S)
                if _INTERRUPT in typed:
                    raise ConnectionLost(f"given up; `howdah shell {self._relay.job_id} {self._task}` comes back")
            if attempt.opened is not None:
                self._say("connected again")
                if typed:
                    self._waiting += wire.frame(wire.INPUT, self._without_escapes(bytes(typed)))
                return attempt.opened
            if isinstance(attempt.error, (JobEnded, JobNotFound, NoLongerThere)):
                raise ConnectionLost(self._relay.why_lost(self._task)) from attempt.error
            if time.monotonic() > until:
                raise ConnectionLost(f"the connection was lost at {since}, and is not back: {attempt.error}")
            typed += self._read_typed(RETRY_S)

    def _find_master_and_open(self) -> tuple[socket.socket, bytes]:
        self._relay.find_master()
        return self._open()

    def _read_typed(self, limit_s: float) -> bytes:
        """Return what the user types within `limit_s` seconds."""
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            return os.read(sys.stdin.fileno(), PIECE) if selector.select(limit_s) else b""

    def _exchange(self, connection: socket.socket, early: bytes) -> CommandEnd | None:
        """Carry bytes in both directions; return how the command ended, None if the connection was lost or the user has
        left."""
        if self._command.terminal:
            self._send_size()
        if early and (ended := self._take_frames(early)) is not None:
            return ended
        with selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            if self._command.terminal:
                selector.register(self._resized, selectors.EVENT_READ)
            while True:
                ready = self._prepare_input(selector)
                selector.modify(connection, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._waiting else 0))
                for key, events in selector.select(0 if ready else None):
                    if key.fileobj is connection:
                        data = self._carry(connection, events)
                        if data == b"":
                            return None
                        if data is not None and (ended := self._take_frames(data)) is not None:
                            return ended
                    elif key.fd == sys.stdin.fileno():
                        self._read_input()
                    else:
                        os.read(self._resized, PIECE)
                        self._send_size()
                if self.left:
                    connection.setblocking(True)
                    with contextlib.suppress(OSError):
                        connection.sendall(wire.frame(wire.DETACH))
                    return None

    def _prepare_input(self, selector: selectors.BaseSelector) -> bool:
        """Wait for input if there is room for it; return whether it is a file, which is always ready, and was read."""
        file = sys.stdin.fileno()
        wanted = len(self._waiting) <= WAITING and not self._input_ended
        waits = file in selector.get_map()
        if waits and not wanted:
            selector.unregister(file)
        elif wanted and not waits:
            try:
                selector.register(file, selectors.EVENT_READ)
            except PermissionError:
                self._read_input()
                return True
        return False

    def _carry(self, connection: socket.socket, events: int) -> bytes | None:
        """Send as many bytes as possible. Return the received bytes: None if none have come yet, b"" if the connection
        is lost."""
        try:
            if events & selectors.EVENT_WRITE:
                del self._waiting[: connection.send(self._waiting)]
            return connection.recv(1 << 18) if events & selectors.EVENT_READ else None
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _read_input(self) -> None:
        """Send the bytes that can be read from the standard input, or its end."""
        data = os.read(sys.stdin.fileno(), PIECE)
        if not data:
            self._input_ended = True
            self.left = self._command.terminal  # the terminal is gone
        elif self._command.terminal:
            data = self._without_escapes(data)
        if data or self._input_ended:
            self._waiting += wire.frame(wire.INPUT, data)

    def _without_escapes(self, data: bytes) -> bytes:
        """Return the typed bytes without `~.` at the beginning of a line, which leaves the command."""
        kept = bytearray()
        for byte in data:
            each = bytes((byte,))
            if self._tilde:
                self._tilde = False
                if each == _LEAVE[1:]:
                    self.left = True
                    break
                kept += _LEAVE[:1] if each != _LEAVE[:1] else b""
            elif self._line_start and each == _LEAVE[:1]:
                self._tilde = True
                continue
            kept += each
            self._line_start = each in b"\r\n"
        return bytes(kept)

    def _take_frames(self, data: bytes) -> CommandEnd | None:
        """Print what has arrived; return how the command ended, if it has."""
        for kind, content in self._frames.feed(data):
            if kind in (wire.OUTPUT, wire.ERRORS):
                self._have += len(content)
                _write_all(1 if kind == wire.OUTPUT else 2, content)
            elif kind == wire.STARTED:
                started = decode(CommandStarted, json.loads(content))
                self.session = started.id
                self._have += started.lost
                if started.lost:
                    self._say(f"{started.lost} bytes of output were not kept")
            elif kind == wire.ENDED:
                return decode(CommandEnd, json.loads(content))
        return None

    def _send_size(self) -> None:
        columns, rows = os.get_terminal_size(sys.stdin.fileno())
        self._waiting += wire.json_frame(wire.RESIZE, {"rows": rows, "columns": columns})


class _Attempt(threading.Thread):
    """Opens a connection, while the user may type."""

    def __init__(self, open_connection: Callable[[], tuple[socket.socket, bytes]]) -> None:
        super().__init__(daemon=True)
        self._open = open_connection
        self.opened: tuple[socket.socket, bytes] | None = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Open the connection, or note why it cannot be opened."""
        try:
            self.opened = self._open()
        except Exception as error:  # also errors of libraries: the user sees them if nothing else helps
            self.error = error


def with_terminal_size(command: CommandRequest) -> CommandRequest:
    """Return a command whose terminal is like this process's."""
    columns, rows = os.get_terminal_size(sys.stdin.fileno())
    kind = os.environ.get("TERM", "") or "xterm"
    return dataclasses.replace(command, terminal=True, rows=rows, columns=columns, kind=kind)


def exit_status(ended: CommandEnd) -> int:
    """Return the exit status that a shell would have after this end."""
    return 128 + ended.signal if ended.signal is not None else ended.code or 0


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    """Pass on each key as it is pressed, including Ctrl-C."""
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setraw(file, termios.TCSADRAIN)  # input typed meanwhile is not lost
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _window_changes() -> Iterator[int]:
    """Yield a descriptor that can be read when the terminal's size has changed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def note(*_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(writer, b"!")

    before = signal.signal(signal.SIGWINCH, note)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)
