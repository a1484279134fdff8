"""Searching what tasks of ended jobs printed, in a process of its own: `python -m howdah.history.log_search`.

The rule: the server brings the pieces, for it has the engine; that process looks through them, for a regular expression
may take for ever, and no thread beside it runs meanwhile. On its stdin is a JSON line, and then, for each line "read"
on its stdout, all pieces; any other line is its answer. It is ended by `Searches`, and by itself soon after.
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
from howdah.logs.search import LogQuery, search_headed
from howdah.spec.codec import encode

Read = Callable[[], Iterable[tuple[str, bytes]]]
"""What `howdah.logs.search.search_headed` reads, as often as it needs it."""
_AGAIN = b"read\n"
_SIZES = struct.Struct("!II")
"""Of a heading and its piece, before both; that of no heading ends them."""
GRACE_S = 5


class SearchProcesses:
    """`at_once` at a time; others wait for them. Each has a thread, which brings what its process looks through."""

    def __init__(self, at_once: int) -> None:
        self._threads = ThreadPoolExecutor(at_once, "search")
        self._under_way: set[_Search] = set()

    async def find(
        self, read: Read, wish: LogQuery, wanted: Collection[str], attempt: int, stream: str, limit_s: float
    ) -> dict[str, Any]:
        """What `search_headed` answers.

        Raises:
            asyncio.TimeoutError: not within `limit_s`, waiting for others included.
            OSError: the process can't be started, or ended without an answer.
            HowdahError: `read` did, or this is closed.
        """
        asked = {"wish": encode(wish), "wanted": list(wanted), "attempt": attempt, "stream": stream, "limit": limit_s}
        search = _Search(read, asked)
        self._under_way.add(search)
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, search.run)
            return await asyncio.wait_for(running, limit_s)
        finally:
            search.end()
            self._under_way.discard(search)

    def close(self) -> None:
        """End all of them. A thread that waits for a piece ends when it comes."""
        for search in self._under_way:
            search.end()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Search:
    """One search; it may be ended by any thread, even before it runs."""

    def __init__(self, read: Read, asked: Mapping[str, Any]) -> None:
        self._read, self._asked = read, asked
        self._ended = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None

    def end(self) -> None:
        self._ended.set()
        if self._process is not None:
            self._process.kill()

    def run(self) -> dict[str, Any]:
        command, pipe = [sys.executable, "-m", "howdah.history.log_search"], subprocess.PIPE
        self._process = process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment())
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                return self._ask(process.stdin, process.stdout)
        finally:
            process.kill()
            process.communicate()
        raise OSError(f"it ended with status {process.returncode}")

    def _ask(self, sink: IO[bytes], source: IO[bytes]) -> dict[str, Any]:
        sink.write(json.dumps(self._asked).encode() + b"\n")
        sink.flush()
        for line in source:
            if line != _AGAIN:
                answer: dict[str, Any] = json.loads(line)
                return answer
            self._bring(sink)
        raise BrokenPipeError

    def _bring(self, sink: IO[bytes]) -> None:
        for heading, piece in self._read():
            if self._ended.is_set():  # asked for each piece: the process that takes them may not have begun
                raise EngineUnavailable("the search was ended")
            name = heading.encode()
            sink.write(_SIZES.pack(len(name), len(piece)) + name)
            sink.write(piece)
        sink.write(_SIZES.pack(0, 0))
        sink.flush()


def environment() -> dict[str, str]:
    """Of a process that imports from where we did."""
    ours = str(Path(howdah.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))}


def _pieces() -> Iterator[tuple[str, bytes]]:
    sys.stdout.buffer.write(_AGAIN)
    sys.stdout.flush()
    while True:
        name, size = _SIZES.unpack(_exactly(_SIZES.size))
        if not name:
            return
        yield _exactly(name).decode(), _exactly(size)


def _exactly(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise SystemExit(1)  # nobody is there any more who would read the answer
    return data


def main() -> int:
    """Search once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is meant for the server
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    asked = json.loads(sys.stdin.buffer.readline())
    signal.alarm(int(asked["limit"]) + GRACE_S)  # the system's, which does not wait for an expression to end
    os.nice(10)
    wish = LogQuery(**asked["wish"])
    answer = search_headed(_pieces, wish, set(asked["wanted"]), asked["attempt"], asked["stream"])
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
