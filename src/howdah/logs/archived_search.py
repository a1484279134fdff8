"""`python -m howdah.logs.archived_search`: searches archived logs in a process of its own.

The rule: the parent process reads the archive, because it has the engine. The helper searches the bytes that it gets,
because a regular expression may take forever, and no other thread of its process runs meanwhile. Whenever the helper
reports {"read": 1}, the parent sends all pieces of the logs through a pipe. The parent ends the helper, which also ends
itself soon after its time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import IO, Any

from howdah.errors import EngineUnavailable
from howdah.logs.query import LogQuery, LogSearchReply
from howdah.logs.search import search_archive
from howdah.spec.codec import encode
from howdah.spec.values import dataclass
from howdah.wire.helper_main import helper_environment, run_helper_main, write_line

ReadLogs = Callable[[], Iterable[tuple[str, bytes]]]
"""Reads the logs from the beginning, in the form for `search_archive`; it may be called more than once."""
_SIZES = struct.Struct("!II")
"""The lengths of a heading and of its piece, sent before both. A heading of length 0 ends the pieces."""
GRACE_S = 5


@dataclass(frozen=True)
class ArchiveSearchRequest:
    """Search archived logs that the parent process sends."""

    source: int
    """Descriptor of the pipe from which the logs are read."""
    query: LogQuery
    """The lines that are wanted."""
    tasks: tuple[str, ...]
    """The tasks whose streams are searched."""
    attempt: int
    """The attempt that is searched; 0 stands for all."""
    stream: str
    """The stream that is searched: `stdout`, `stderr` or `both`."""
    limit_s: float
    """Seconds after which the parent no longer waits."""


class ArchivedSearches:
    """Runs `limit` searches at a time. Each search has a thread, which sends the logs to the helper."""

    def __init__(self, limit: int) -> None:
        self._threads = ThreadPoolExecutor(limit, "search")
        self._running: set[_Search] = set()

    async def search(
        self, read: ReadLogs, query: LogQuery, tasks: Collection[str], attempt: int, stream: str, timeout_s: float
    ) -> dict[str, Any]:
        """Return what `search_archive` returns.

        Raises:
            asyncio.TimeoutError: the search has not ended within `timeout_s`, the time in the queue included.
            OSError: the helper can't be started, or ended without an answer.
            HowdahError: `read` raised it, or this object is closed.
        """
        request = ArchiveSearchRequest(-1, query, (*tasks,), attempt, stream, timeout_s)
        search = _Search(read, request)
        self._running.add(search)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, search.run)
            return await asyncio.wait_for(running, timeout_s)
        finally:
            search.end()
            self._running.discard(search)

    def close(self) -> None:
        """End all searches. A thread that waits for a piece ends when the piece comes."""
        for search in self._running:
            search.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Search:
    """Runs one search. Any thread may end the search, even before it runs."""

    def __init__(self, read: ReadLogs, request: ArchiveSearchRequest) -> None:
        self._read, self._request = read, request
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def end(self) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.kill()

    def run(self) -> dict[str, Any]:
        source, pipe = os.pipe()
        sink = os.fdopen(pipe, "wb")
        try:
            return self._run(source, sink)
        finally:
            with contextlib.suppress(BrokenPipeError):
                sink.close()

    def _run(self, source: int, sink: IO[bytes]) -> dict[str, Any]:
        command = [sys.executable, "-m", "howdah.logs.archived_search"]
        try:
            self._process = process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=helper_environment(),
                pass_fds=(source,),
            )
        finally:
            os.close(source)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(encode(replace(self._request, source=source))).encode())
                process.stdin.close()
                for line in process.stdout:
                    message: dict[str, Any] = json.loads(line)
                    if "read" not in message:
                        return message
                    self._send_logs(sink)
        finally:
            process.kill()
            process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()
        raise OSError(f"it ended with status {process.returncode}")

    def _send_logs(self, sink: IO[bytes]) -> None:
        for heading, piece in self._read():
            if self._ended.is_set():  # checked for each piece: the process may not have been started yet
                raise EngineUnavailable("the search was ended")
            name = heading.encode()
            sink.write(_SIZES.pack(len(name), len(piece)) + name)
            sink.write(piece)
        sink.write(_SIZES.pack(0, 0))
        sink.flush()


def search_pieces(request: ArchiveSearchRequest) -> LogSearchReply:
    """Search the pieces that the parent sends, at a low priority."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is meant for the parent
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(request.limit_s) + GRACE_S)  # the kernel's alarm does not wait for a regular expression to end
    os.nice(10)
    with os.fdopen(request.source, "rb") as source:
        found = search_archive(
            lambda: _received_pieces(source), request.query, set(request.tasks), request.attempt, request.stream
        )
    return LogSearchReply(**found)


def _received_pieces(source: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    write_line({"read": 1})
    while True:
        name, size = _SIZES.unpack(_read_exactly(source, _SIZES.size))
        if not name:
            return
        yield _read_exactly(source, name).decode(), _read_exactly(source, size)


def _read_exactly(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise SystemExit(1)  # the parent, which would read the answer, is gone
    return data


if __name__ == "__main__":
    run_helper_main({"search": search_pieces})
