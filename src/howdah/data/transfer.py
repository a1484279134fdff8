"""`python -m howdah.data.transfer download|upload`: moves files between this machine and any filesystem.

A process of its own beside an executor, which does without libraries. On stdin {"items": [...]}, on stdout a JSON line
{"done_files", "done_bytes"} from time to time and one at the end: {"ok": true, "files", "bytes"} or {"error": "..."}.
A file that is there is whole: each is written under another name and renamed. Exit status 0 when all is done, else 1.
"""

# ruff: noqa: PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.data import uris
from howdah.data.fs import Broken, filesystem, free_bytes
from howdah.errors import HowdahError, StagingError

# HDFS takes half a second to close a new file, and a small one is mostly waiting: many at once. Large ones fill the
# network by a few, and each holds some chunks in memory.
THREADS = 48
LARGE_AT_ONCE = 4
LARGE = 2 << 20
TRIES = 3
BACK_OFF_S = 0.25
REPORT_S = 0.5

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Copy:
    """One file: `path` here, `uri` there. `size` is what it must be, -1 when that is not known."""

    path: str
    uri: str
    size: int = -1


def download(copies: Iterable[Copy], report: Report) -> tuple[int, int]:
    """Fetch them; how many files and bytes. A file that is here already in the right size is not fetched again.

    Raises:
        StagingError, EngineUnavailable: the first that could not be fetched, after `TRIES` tries.
    """
    made: set[str] = set()

    def fetch(copy: Copy) -> int:
        folder = os.path.dirname(copy.path)
        if folder not in made:
            _make(folder)
            made.add(folder)
        return _download(copy)

    return _all(copies, fetch, report)


def upload(copies: Iterable[Copy], report: Report) -> tuple[int, int]:
    """Store them; how many files and bytes. The directories of their URIs are made. Raises as `download`."""
    made: set[str] = set()

    def store(copy: Copy) -> int:
        fs = filesystem(copy.uri)
        folder = uris.parent(copy.uri)
        if folder not in made:
            fs.mkdirs(folder)
            made.add(folder)
        with _turn(_size(copy.path)):
            return fs.put(copy.path, copy.uri)

    return _all(copies, store, report)


def below(directory: str, uri: str) -> Iterator[Copy]:
    """A Copy for each file in `directory` and below; none when there is no such directory. Links to files are followed,
    links to directories are not.

    Raises:
        StagingError: something in it can't be listed.
    """
    if not os.path.lexists(directory):
        return
    for folder, _, names in os.walk(directory, onerror=_cannot_list):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield Copy(
                    path, uris.join(uri, "" if folder == directory else os.path.relpath(folder, directory), name)
                )


def _download(copy: Copy) -> int:
    fs = filesystem(copy.uri)
    if copy.size >= 0 and _size(copy.path) == copy.size:
        return copy.size
    if 0 <= free_bytes(os.path.dirname(copy.path)) < copy.size:
        raise StagingError(f"{copy.path}: no space left for {copy.size} bytes of {copy.uri}")
    with _turn(copy.size):
        size = fs.get(copy.uri, copy.path)
    if 0 <= copy.size != size:
        Path(copy.path).unlink()
        raise Broken(f"{copy.uri}: {size} bytes came, {copy.size} were listed: it has changed since, or was cut")
    return size


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _make(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StagingError(f"{folder}: {error.strerror}") from error


def _cannot_list(error: OSError) -> None:
    raise StagingError(f"{error.filename}: {error.strerror}") from error


_large = threading.BoundedSemaphore(LARGE_AT_ONCE)


def _turn(size: int) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext() if 0 <= size < LARGE else _large


def _all(copies: Iterable[Copy], move: Callable[[Copy], int], report: Report) -> tuple[int, int]:
    files = size = 0
    waiting: set[Future[int]] = set()
    stopped = threading.Event()
    with ThreadPoolExecutor(THREADS, "transfer") as pool:
        try:
            for copy in copies:
                waiting.add(pool.submit(_persistently, move, copy, stopped))
                if len(waiting) >= 4 * THREADS:
                    ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    files, size = files + len(ended), size + sum(each.result() for each in ended)
                    report(files, size)
            while waiting:
                ended, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                files, size = files + len(ended), size + sum(each.result() for each in ended)
                report(files, size)
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return files, size


def _persistently(move: Callable[[Copy], int], copy: Copy, stopped: threading.Event) -> int:
    for attempt in range(1, TRIES + 1):
        try:
            return move(copy)
        except Broken:
            if attempt == TRIES or stopped.wait(BACK_OFF_S * 2**attempt):
                raise
    raise AssertionError("unreachable")


def run(verb: str, request: dict[str, Any], report: Report) -> dict[str, Any]:
    """Do what `request` says; the last line's content."""
    items = request["items"]
    if verb == "download":
        files, size = download((Copy(item["path"], item["uri"], item.get("size", -1)) for item in items), report)
        return {"ok": True, "files": files, "bytes": size}
    if verb != "upload":
        return {"error": f"{verb!r} is neither download nor upload"}
    empty = [item["path"] for item in items if next(below(item["path"], "/"), None) is None]
    for item in items:
        # Even an empty part exists: the commit tells by it what has been committed already.
        filesystem(item["uri"]).mkdirs(item["uri"])
    files, size = upload((copy for item in items for copy in below(item["path"], item["uri"])), report)
    return {"ok": True, "files": files, "bytes": size, "empty": empty}


def main(argv: list[str]) -> int:
    last = 0.0

    def report(files: int, size: int) -> None:
        nonlocal last
        if time.monotonic() - last > REPORT_S:
            last = time.monotonic()
            print(json.dumps({"done_files": files, "done_bytes": size}), flush=True)

    try:
        answer = run(argv[1] if len(argv) > 1 else "", json.load(sys.stdin), report)
    except HowdahError as error:
        answer = {"error": str(error).replace("\n", "; ")}
    print(json.dumps(answer), flush=True)
    return 0 if "ok" in answer else 1


def _leave(status: int) -> None:
    """Exit at once: a thread that waits for a dead server must not hold the process back."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _leave(main(sys.argv))
