"""`python -m howdah.inputs.streaming.stdin_feeder`: reads a task's splits and writes their records into a pipe, the
program's stdin.

A helper process beside an executor (`howdah.wire.helper_main`), which also writes a line with the reply's fields from
time to time. Nothing is skipped silently: data that can't be read ends the stream with an error, and the executor keeps
the program from taking that for the end of its input. A program that closes its stdin wants no more, which is no error.
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
from collections.abc import Collection, Iterator
from dataclasses import replace

from howdah.errors import HowdahError, StagingError
from howdah.inputs.formats import Piece
from howdah.inputs.streaming.record_stream import ReadPosition, RecordStream
from howdah.spec.codec import encode
from howdah.wire.helper_main import REPORT_S, run_helper_main, write_line
from howdah.wire.helper_messages import FeedReply, FeedRequest

AHEAD = 16 << 20
"""Bytes that are read before the program wants them."""
AT_ONCE = 16
"""Blocks that are written by one call."""
QUIET_S = 600.0
"""A filesystem that gives nothing for this long has failed, whatever it says."""


class ProgramStalled(HowdahError):
    """The program does not read."""


class ReadAhead:
    """Blocks that a thread has read and nobody has taken yet, `limit` bytes at most (or one block, if that is more)."""

    def __init__(self, blocks: Iterator[tuple[Piece, ReadPosition]], limit: int = AHEAD) -> None:
        self._blocks, self._limit = blocks, limit
        self._waiting: list[tuple[Piece, ReadPosition]] = []
        self._size = 0
        self._failure: BaseException | None = None
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name="ahead", daemon=True).start()

    def next_blocks(self, limit_s: float) -> list[tuple[Piece, ReadPosition]]:
        """The next blocks, all that there are; none after `limit_s` seconds without one.

        Raises:
            EOFError: there is none.
            Exception: what reading it raised.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended, limit_s)
            if self._waiting:
                blocks, self._waiting, self._size = self._waiting, [], 0
                self._changed.notify_all()
                return blocks
            if self._failure is not None:
                raise self._failure
            if self._ended:
                raise EOFError
            return []

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
    """Moves blocks into the pipe `to` and reports. `task` is for messages."""

    def __init__(self, passes: RecordStream, to: int, task: str, stall_s: float) -> None:
        self.passes, self.to, self.task, self.stall_s = passes, to, task, stall_s
        self.place, self._giving = ReadPosition(), ""
        self.starved_s = 0.0
        self._reported = time.monotonic()
        os.set_blocking(to, False)
        self._room = select.poll()
        self._room.register(to, select.POLLOUT)

    def run(self) -> FeedReply:
        """Write the stream to its end.

        Raises:
            HowdahError: it can't be read, or the program does not read it.
        """
        ahead, since = ReadAhead(iter(self.passes)), time.monotonic()
        try:
            while True:
                blocks = self._next_blocks(ahead)
                for start in range(0, len(blocks), AT_ONCE):
                    some = blocks[start : start + AT_ONCE]
                    self._giving = some[0][1].at
                    self._write([block for block, _ in some])
                    self.place, since = some[-1][1], time.monotonic()
                    self._report()
                if blocks:
                    continue
                if time.monotonic() - since > QUIET_S:
                    raise StagingError(f"nothing has come for {QUIET_S:.0f} s after {self.place.at or 'the beginning'}")
                self._report()
        except EOFError:
            self.place = self.passes.place()
            return self.reply()
        except BrokenPipeError:
            return replace(self.reply(), closed=True)

    def _next_blocks(self, ahead: ReadAhead) -> list[tuple[Piece, ReadPosition]]:
        """The next blocks; while the pipe is empty, the program waits for them."""
        begun = time.monotonic()
        blocks = ahead.next_blocks(REPORT_S)
        if not self._unread():
            self.starved_s += time.monotonic() - begun
        return blocks

    def _unread(self) -> int:
        left = array.array("i", [0])
        fcntl.ioctl(self.to, termios.FIONREAD, left)
        return left[0]

    def reply(self) -> FeedReply:
        """Return how far the stream is. A stream without end has no progress."""
        place, whole = self.place, self.passes.bytes
        progress = min(1.0, place.bytes / whole) if whole else None
        waited = round(self.starved_s, 1)
        return FeedReply(place.bytes, place.local, progress, waited)

    def _write(self, blocks: list[Piece]) -> None:
        since = time.monotonic()
        while blocks:
            try:
                blocks = rest(blocks, os.writev(self.to, blocks))
                since = time.monotonic()
            except BlockingIOError:
                self._room.poll(REPORT_S * 1000)
                self._report()
                if 0 < self.stall_s < time.monotonic() - since:
                    raise ProgramStalled(self._stalled(since)) from None

    def _stalled(self, since: float) -> str:
        waited = time.monotonic() - since
        moment = time.strftime("%H:%M:%S", time.localtime(time.time() - waited))
        return (
            f"{self.task} has read nothing from its standard input for {waited:.0f} s, since {moment} (timeouts.stall);"
            f" it was given {self.place.at or self._giving}"
        )

    def _report(self) -> None:
        if time.monotonic() - self._reported > REPORT_S:
            self._reported = time.monotonic()
            write_line(encode(self.reply()))


def rest(blocks: list[Piece], written: int) -> list[Piece]:
    """What is left of `blocks` when that many bytes have gone."""
    for number, block in enumerate(blocks):
        if written < len(block):
            return [memoryview(block)[written:], *blocks[number + 1 :]]
        written -= len(block)
    return []


def names_of(host: str) -> Collection[str]:
    """What this machine may be called where blocks are listed."""
    return {host, socket.gethostname(), socket.getfqdn(), "localhost", "127.0.0.1"}


def feed(request: FeedRequest) -> FeedReply:
    """Feed a program to the end of its input."""
    # Behind everything of ours: people's own readers are in the program's directory.
    sys.path.append(request.directory)
    passes = RecordStream(request.feeds, request.task, names_of(request.host))
    return Feeder(passes, request.to, request.task, request.stall_s).run()


if __name__ == "__main__":
    run_helper_main({"feed": feed})
