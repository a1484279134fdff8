"""A command that a client runs in a task's container, beside the program and in the same way as the program.

A command with a terminal goes on when its client is gone: its latest output is kept, and a client can come back. A
command without a terminal gets HUP then, and no byte of its output is ever dropped.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import fcntl
import json
import os
import signal
import struct
import termios
import time
from typing import Any, Deque, Dict, List, Mapping, Optional, Tuple

from howdah.executor.process import process_tree
from howdah.executor.process.image_program import exports
from howdah.executor.process.process_tree import Reaper
from howdah.spec.codec import encode
from howdah.wire import relay_messages as wire
from howdah.wire.helper_messages import CommandContext
from howdah.wire.relay_messages import CommandEnd, CommandRequest, CommandStarted, FrameReader, frame, json_frame

KEPT = 256 << 10
"""Bytes of the latest output that are kept for a client that comes back, and bytes that may wait for a slow client."""
PIECE = 1 << 16
DRAIN_S, DRAINED_PIECES = 1.0, 64
"""Seconds for which output is read after the command has ended while its left processes hold its streams open; and the
most pieces that are read after that."""
ALIVE_S = 5.0
"""Seconds without output after which an empty piece is sent."""
HANG_UP_S = 5.0
"""Seconds between HUP and KILL for a command without a terminal whose client is gone."""
_CANCEL_AGAIN_S = 0.1
SHELLS = ("/bin/bash", "/bin/sh")
_IN_IMAGE = '. "$1" || exit 125; echo $$ >"$1-pid"; rm -f "$1"; shift; exec "$@"'
_KILL_IN_IMAGE = 'read pid <"$2-pid" && { kill -"$1" -- -"$pid" || kill -"$1" "$pid"; } 2>&-'
_OLD_SHELL = "if [ -x /bin/bash ]; then exec /bin/bash; fi; exec /bin/sh"


class CommandSession:
    """Runs one command.

    Raises:
        OSError: the command cannot be started.
    """

    def __init__(self, name: str, request: CommandRequest, context: CommandContext, reaper: Reaper) -> None:
        self.id, self.terminal = name, request.terminal
        self.left_at = 0.0
        self._request, self._context, self._reaper = request, context, reaper
        self._loop = asyncio.get_running_loop()
        self._end: Optional[CommandEnd] = None
        self._output: Deque[Tuple[int, bytes]] = collections.deque()
        self._begin = self._size = self._sent = 0
        self._changed = asyncio.Event()
        self._readers: Dict[int, int] = {}
        self._input = -1
        self._client: Optional[asyncio.StreamWriter] = None
        self._serving: Optional[asyncio.Task[Any]] = None
        self._reads_since = 0.0
        """The time at which reading of its output began; 0 while it is not read, and the command waits."""
        self._variables_file = ""
        self.pid = self._start()

    @property
    def attached(self) -> bool:
        """Return whether a client is served."""
        return self._client is not None

    @property
    def ended(self) -> bool:
        """Return whether the command has ended, and its output is complete."""
        return self._end is not None and not self._readers

    def _start(self) -> int:
        argv, variables = self._argv_and_variables()
        if self.terminal:
            main, other = os.openpty()
            _set_size(main, self._request.rows, self._request.columns)
            streams, ours = [other, other, other], {main: wire.OUTPUT}
            self._input = os.dup(main)
        else:
            stdin, self._input = os.pipe()
            stdout, its_stdout = os.pipe()
            stderr, its_stderr = os.pipe()
            streams, ours = [stdin, its_stdout, its_stderr], {stdout: wire.OUTPUT, stderr: wire.ERRORS}
        try:
            pid = self._reaper.spawn(
                argv, variables, streams, self._command_ended, self._context.directory, terminal=self.terminal
            )
        except OSError:
            for file in ours:
                os.close(file)
            self._close_input()
            self._remove_files()
            raise
        finally:
            for file in set(streams):
                os.close(file)
        for file in (*ours, self._input):
            os.set_blocking(file, False)
        self._readers = ours
        return pid

    def _argv_and_variables(self) -> Tuple[List[str], Mapping[str, str]]:
        """Return the argument vector and the variables of the command: those of the program, or those of the tool that
        runs the command in the program's image. In that case the command's own variables are in a file that its shell
        removes."""
        context, request = self._context, self._request
        variables = dict(context.variables)
        if self.terminal:
            variables["TERM"] = request.kind
        if not context.image_words:
            shell = variables.get("SHELL", "")
            shells = (shell, *SHELLS) if os.path.isabs(shell) else SHELLS
            return list(request.argv) or [next((one for one in shells if os.access(one, os.X_OK)), "sh")], variables
        self._variables_file = os.path.join(context.private, f"command-{os.urandom(8).hex()}")
        file = os.open(self._variables_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(file, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write("".join(exports(variables)))
        words = list(context.image_words)
        if self.terminal and context.terminal_option:
            words.insert(2, context.terminal_option)
        argv = list(request.argv) or ["/bin/sh", "-c", _OLD_SHELL]
        return [*words, "/bin/sh", "-c", _IN_IMAGE, "sh", self._variables_file, *argv], context.image_variables

    # What the command prints.

    def _read_output(self) -> None:
        """Read what the command prints, from now on."""
        if not self._reads_since:
            self._reads_since = self._loop.time()
            for file in self._readers:
                self._loop.add_reader(file, self._read, file)

    def _pause(self) -> None:
        """Let the command wait until its client has read what is there."""
        self._reads_since = 0.0
        for file in self._readers:
            self._loop.remove_reader(file)

    def _read(self, file: int) -> bool:
        """Read one piece; return whether there may be more."""
        try:
            data = os.read(file, PIECE)
        except BlockingIOError:
            return False
        except OSError:  # the terminal has no process any more
            data = b""
        if not data:
            self._close_reader(file)
            return False
        self._keep(self._readers[file], data)
        self._changed.set()
        if self.attached and self._size - self._sent > KEPT:
            self._pause()
        self._trim()
        return True

    def _keep(self, kind: int, data: bytes) -> None:
        """Append to the output; small pieces of one kind become one."""
        self._size += len(data)
        if self._output and self._output[-1][0] == kind and len(self._output[-1][1]) + len(data) <= PIECE:
            data = self._output.pop()[1] + data
        self._output.append((kind, data))

    def _close_reader(self, file: int) -> None:
        self._loop.remove_reader(file)
        os.close(file)
        del self._readers[file]
        self._changed.set()

    def _trim(self) -> None:
        """Drop old output, except what a client still has to get."""
        while self._output:
            first = len(self._output[0][1])
            if self._size - self._begin - first < KEPT or (self.attached and self._begin + first > self._sent):
                return
            self._output.popleft()
            self._begin += first

    def _command_ended(self, status: int, _: Any) -> None:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        self._end = CommandEnd(code=None if number is not None else os.WEXITSTATUS(status), signal=number)
        self._changed.set()
        self._remove_files()
        self._loop.call_later(DRAIN_S, self._end_reading)

    def _end_reading(self) -> None:
        """Read the rest of the output, after it was read for DRAIN_S without waiting for the client."""
        if not self._reads_since or self._loop.time() - self._reads_since < DRAIN_S:
            self._loop.call_later(DRAIN_S, self._end_reading)
            return
        for file in list(self._readers):
            pieces = 0
            while pieces < DRAINED_PIECES and self._read(file):
                pieces += 1
            if file in self._readers:
                self._close_reader(file)
        self._close_input()

    def _remove_files(self) -> None:
        for name in (self._variables_file, f"{self._variables_file}-pid") if self._variables_file else ():
            with contextlib.suppress(OSError):
                os.unlink(name)

    # Its client.

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, have: int) -> None:
        """Serve a client, which has `have` bytes of the output, until it leaves or the command has ended."""
        while self._serving is not None:  # a client that came back replaces the connection that it has lost
            self._serving.cancel()
            await asyncio.wait((self._serving,))
        self._serving = asyncio.current_task()
        self._client = writer
        lost = max(0, self._begin - have)
        self._sent = max(have, self._begin)
        sending = asyncio.ensure_future(self._send_output(writer, lost))
        receiving = asyncio.ensure_future(self._take_input(reader))
        self._read_output()
        try:
            await asyncio.wait((sending, receiving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(sending, receiving)
            writer.close()
            self._serving = None
            self.leave()

    def leave(self) -> None:
        """Go on without a client; a command without a terminal is told to end."""
        self._client, self.left_at = None, time.monotonic()
        self._read_output()
        if not self.terminal and self._end is None:
            self._signal(signal.SIGHUP)
            self._loop.call_later(HANG_UP_S, self._signal, signal.SIGKILL)

    async def _send_output(self, writer: asyncio.StreamWriter, lost: int) -> None:
        writer.write(json_frame(wire.STARTED, encode(CommandStarted(id=self.id, pid=self.pid, lost=lost))))
        while True:
            self._changed.clear()
            position = self._begin
            for kind, data in list(self._output):
                position += len(data)
                if position > self._sent:
                    writer.write(frame(kind, data[len(data) - (position - self._sent) :]))
                    self._sent = position
                    await writer.drain()
            if self._sent < self._size:
                continue
            self._read_output()
            if self._end is not None and not self._readers:
                writer.write(json_frame(wire.ENDED, encode(self._end)))
                await writer.drain()
                return
            try:
                await asyncio.wait_for(self._changed.wait(), ALIVE_S)
            except asyncio.TimeoutError:
                writer.write(frame(wire.OUTPUT))  # this fails if the client is gone; reading may never show it
                await writer.drain()

    async def _take_input(self, reader: asyncio.StreamReader) -> None:
        frames = FrameReader()
        while data := await reader.read(PIECE):
            for kind, content in frames.feed(data):
                if kind == wire.INPUT:
                    await self._write_input(content)
                elif kind == wire.RESIZE and self.terminal:
                    self._resize(json.loads(content))
                elif kind == wire.SIGNAL:
                    self._signal(int(content))
                elif kind == wire.DETACH:
                    return

    async def _write_input(self, content: bytes) -> None:
        """Write to the command's input when it takes it; an empty `content` ends the input."""
        if not content and not self.terminal:
            self._close_input()
        view = memoryview(content)
        while view and self._input >= 0:
            try:
                view = view[os.write(self._input, view) :]
            except BlockingIOError:
                await self._writable()
            except OSError:  # it reads no more
                self._close_input()

    async def _writable(self) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(self._input, ready.set)
        try:
            await ready.wait()
        finally:
            if self._input >= 0:
                self._loop.remove_writer(self._input)

    def _close_input(self) -> None:
        if self._input >= 0:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = -1

    def _resize(self, size: Mapping[str, int]) -> None:
        """Set the terminal's size; a program that fills it draws itself anew, even if the size is the same."""
        if self._input < 0 or not self._readers:
            return
        _set_size(self._input, int(size["rows"]), int(size["columns"]))
        with contextlib.suppress(OSError):
            process_tree.kill_group(os.tcgetpgrp(self._input), signal.SIGWINCH)

    def _signal(self, number: int) -> None:
        """Send a signal to the command's processes."""
        if self._end is not None or not 0 < number < signal.NSIG:
            return
        if not self._context.terminal_option:
            process_tree.kill_group(self.pid, number)
            return
        # podman and docker hand no signal of theirs on.
        command = ("/bin/sh", "-c", _KILL_IN_IMAGE, "sh", str(int(number)), self._variables_file)
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_RDWR)
            try:
                argv, variables = (*self._context.image_words, *command), self._context.image_variables
                self._reaper.spawn(argv, variables, (null, null, null), lambda *_: None, "/")
            finally:
                os.close(null)


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until they have ended: up to Python 3.11 `wait_for` swallows a cancellation that comes together with
    what it waits for, such as the last output before a client is gone."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        left = (await asyncio.wait(left, timeout=_CANCEL_AGAIN_S))[1]
    await asyncio.gather(*tasks, return_exceptions=True)


def _set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xFFFF, columns & 0xFFFF, 0, 0))
