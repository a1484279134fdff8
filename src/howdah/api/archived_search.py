"""Searching archived logs in a process of its own: `python -m howdah.api.archived_search`.

The rule: the server reads the archive, because the server has the engine; the process searches what it is sent, because
a regular expression may take for ever, and no other thread runs meanwhile. The process reads a JSON line from stdin;
whenever it writes the line "read" to stdout, it is sent all pieces of the logs; any other line is its answer.
`ArchivedSearches` ends the process, which also ends itself soon after its time is over.
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import howdah
from howdah.errors import EngineUnavailable
from howdah.logs.query import LogQuery
from howdah.logs.search import search_headed
from howdah.spec.codec import encode

ReadLogs = Callable[[], Iterable[tuple[str, bytes]]]
"""Reads the logs from the beginning, as `howdah.logs.search.search_headed` needs them, perhaps more than once."""
_READ_AGAIN = b"read\n"
_SIZES = struct.Struct("!II")
"""The lengths of a heading and of its piece, sent before both. A heading of length 0 ends the pieces."""
GRACE_S = 5


class ArchivedSearches:
    """Runs `limit` searches at a time, the others wait. Each has a thread, which sends the logs to its process."""

    def __init__(self, limit: int) -> None:
        self._threads = ThreadPoolExecutor(limit, "search")
        self._running: set[_Search] = set()

    async def search(
        self, read: ReadLogs, query: LogQuery, tasks: Collection[str], attempt: int, stream: str, timeout_s: float
    ) -> dict[str, Any]:
        """Return what `search_headed` returns.

        Raises:
            asyncio.TimeoutError: the search has not ended within `timeout_s`, the time in the queue included.
            OSError: the process can't be started, or ended without an answer.
            HowdahError: `read` raised it, or this object is closed.
        """
        request = {"wish": encode(query), "wanted": list(tasks), "attempt": attempt, "stream": stream}
        search = _Search(read, {**request, "limit": timeout_s})
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
    """One search. Any thread may end it, even before it runs."""

    def __init__(self, read: ReadLogs, request: Mapping[str, Any]) -> None:
        self._read, self._request = read, request
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def end(self) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.kill()

    def run(self) -> dict[str, Any]:
        command, pipe = [sys.executable, "-m", "howdah.api.archived_search"], subprocess.PIPE
        self._process = process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=child_environment())
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(self._request).encode() + b"\n")
                process.stdin.flush()
                for line in process.stdout:
                    if line != _READ_AGAIN:
                        answer: dict[str, Any] = json.loads(line)
                        return answer
                    self._send_logs(process.stdin)
        finally:
            process.kill()
            process.communicate()
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


def child_environment() -> dict[str, str]:
    """Return the environment of a process that imports howdah from where this process did."""
    root = str(Path(howdah.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def _received_pieces() -> Iterator[tuple[str, bytes]]:
    sys.stdout.buffer.write(_READ_AGAIN)
    sys.stdout.flush()
    while True:
        name, size = _SIZES.unpack(_read_exactly(_SIZES.size))
        if not name:
            return
        yield _read_exactly(name).decode(), _read_exactly(size)


def _read_exactly(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise SystemExit(1)  # the server is gone, nobody would read the answer
    return data


def main() -> int:
    """Answer one search request from standard input."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is meant for the server
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    request = json.loads(sys.stdin.buffer.readline())
    signal.alarm(int(request["limit"]) + GRACE_S)  # the kernel's alarm does not wait for a regular expression to end
    os.nice(10)
    query = LogQuery(**request["wish"])
    answer = search_headed(_received_pieces, query, set(request["wanted"]), request["attempt"], request["stream"])
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
