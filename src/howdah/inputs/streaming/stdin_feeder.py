"""`python -m howdah.inputs.streaming.stdin_feeder`: read a task's splits and write their records into a pipe, the
program's stdin.

A helper process beside an executor (`howdah.wire.helper_main`), which also writes a line with the reply's fields from
time to time. Nothing is skipped silently: data that cannot be read ends the stream with an error, and the executor
keeps the program from mistaking that for the end of its input. A program may close its stdin early, which is no error.
"""

from __future__ import annotations

import array
import fcntl
import os
import select
import socket
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from howdah.errors import HowdahError, StagingError
from howdah.inputs.formats import Piece
from howdah.inputs.streaming.record_stream import ReadPosition, RecordStream
from howdah.spec.codec import encode
from howdah.wire.helper_main import REPORT_S, run_helper_main, write_line
from howdah.wire.helper_messages import FeedReply, FeedRequest

READ_AHEAD = 16 << 20
"""Bytes that are read before the program requests them."""
BLOCKS_PER_WRITE = 16
SILENT_S = 600.0
"""Seconds without data after which the file system counts as failed, even if it reports no error."""


class ProgramStalled(HowdahError):
    """The program does not read."""


class ReadAhead:
    """Reads blocks in a thread and holds `limit` bytes of them at most, or one block if it is larger."""

    def __init__(self, blocks: Iterator[tuple[Piece, ReadPosition]], limit: int = READ_AHEAD) -> None:
        self._blocks, self._limit = blocks, limit
        self._waiting: list[tuple[Piece, ReadPosition]] = []
        self._size = 0
        self._failure: BaseException = EOFError()
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name="ahead", daemon=True).start()

    def next_blocks(self, limit_s: float) -> list[tuple[Piece, ReadPosition]]:
        """Return all blocks that were read; none after `limit_s` seconds without one.

        Raises:
            EOFError: the stream has ended.
            Exception: the error of the read.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended, limit_s)
            if self._ended and not self._waiting:
                raise self._failure
            blocks, self._waiting, self._size = self._waiting, [], 0
            self._changed.notify_all()
            return blocks

    def _read(self) -> None:
        try:
            for block in self._blocks:
                with self._changed:
                    self._waiting.append(block)
                    self._size += len(block[0])
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._size < self._limit)
        except BaseException as error:  # of a library's thread, too
            self._failure = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Feeder:
    """Writes a stream into the pipe `pipe` and reports progress; `task` is for messages, `clock` returns seconds."""

    def __init__(
        self,
        stream: RecordStream,
        pipe: int,
        task: str,
        stall_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._pipe, self._task, self._stall_s = stream, pipe, task, stall_s
        self._clock = clock
        self._position, self._next = ReadPosition(), ""
        self._starved_s = 0.0
        self._reported = time.monotonic()
        os.set_blocking(pipe, False)
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLOUT)

    def run(self) -> FeedReply:
        """Write the stream to its end.

        Raises:
            HowdahError: the stream cannot be read, or the program does not read it.
        """
        ahead, last_block_at = ReadAhead(iter(self._stream)), time.monotonic()
        try:
            while True:
                blocks = self._next_blocks(ahead)
                for start in range(0, len(blocks), BLOCKS_PER_WRITE):
                    some = blocks[start : start + BLOCKS_PER_WRITE]
                    self._next = some[0][1].at
                    self._write([block for block, _ in some])
                    self._position, last_block_at = some[-1][1], time.monotonic()
                    self._report()
                if not blocks and time.monotonic() - last_block_at > SILENT_S:
                    after = self._position.at or "the beginning"
                    raise StagingError(f"nothing has come for {SILENT_S:.0f} s after {after}")
                self._report()
        except EOFError:
            self._position = self._stream.position()
            return self._reply()
        except BrokenPipeError:
            return replace(self._reply(), closed=True)

    def _next_blocks(self, ahead: ReadAhead) -> list[tuple[Piece, ReadPosition]]:
        """Return the next blocks, and measure the time for which the pipe was empty and the program waited for them."""
        start = time.monotonic()
        blocks = ahead.next_blocks(REPORT_S)
        unread = array.array("i", [0])
        fcntl.ioctl(self._pipe, termios.FIONREAD, unread)
        if not unread[0]:
            self._starved_s += time.monotonic() - start
        return blocks

    def _reply(self) -> FeedReply:
        """Return the stream's position. A stream without an end has no progress."""
        size = self._stream.bytes
        progress = min(1.0, self._position.bytes / size) if size else None
        return FeedReply(self._position.bytes, self._position.local, progress, round(self._starved_s, 1))

    def _write(self, blocks: list[Piece]) -> None:
        last_write_at = self._clock()
        while blocks:
            try:
                blocks = _without_written(blocks, os.writev(self._pipe, blocks))
                last_write_at = self._clock()
            except BlockingIOError:
                self._poll.poll(REPORT_S * 1000)
                self._report()
                waited = self._clock() - last_write_at
                if 0 < self._stall_s < waited:
                    since = time.strftime("%H:%M:%S", time.localtime(time.time() - waited))
                    raise ProgramStalled(
                        f"{self._task} has read nothing from its standard input for {waited:.0f} s, since {since}"
                        f" (timeouts.stall); it was given {self._position.at or self._next}"
                    ) from None

    def _report(self) -> None:
        if time.monotonic() - self._reported > REPORT_S:
            self._reported = time.monotonic()
            write_line(encode(self._reply()))


def _without_written(blocks: list[Piece], written: int) -> list[Piece]:
    """Return the blocks without their first `written` bytes."""
    for number, block in enumerate(blocks):
        if written < len(block):
            return [memoryview(block)[written:], *blocks[number + 1 :]]
        written -= len(block)
    return []


def feed(request: FeedRequest) -> FeedReply:
    """Feed a program to the end of its input."""
    # After howdah's own directories: users' readers are in the program's directory.
    sys.path.append(request.directory)
    names = {request.host, socket.gethostname(), socket.getfqdn(), "localhost", "127.0.0.1"}
    stream = RecordStream(request.feeds, request.task, names)
    return Feeder(stream, request.to, request.task, request.stall_s).run()


if __name__ == "__main__":
    run_helper_main({"feed": feed})
