"""Handlers of what tasks use: series over time, and all of it now for Prometheus.

Weeks of buckets are read by a process of its own, once for all who ask the same at a time. The rule: there is one such
process, and few wait for it, for it shares a container's memory with the master.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import urllib.parse
import weakref
from collections import OrderedDict
from typing import Any

from howdah.api import metric_series, prometheus
from howdah.api.http_server import Response
from howdah.api.routes import ApiRequest
from howdah.api.sources import ApiError, JobSource
from howdah.spec.codec import encode

READ_S = 60.0
"""Longest wait for an answer, with those before it."""
MOST_WAITING = 16
"""Of different questions."""
IDLE_S = 10.0
"""Without a question the process ends: to start one takes longer than most answers."""
KEPT, KEPT_BYTES = 32, 8 << 20
_kept: OrderedDict[str, tuple[int, asyncio.Future[bytes]]] = OrderedDict()


class SeriesReader:
    """The process that reads, while there are questions."""

    def __init__(self) -> None:
        self._questions: asyncio.Queue[tuple[dict[str, Any], asyncio.Future[bytes]]] = asyncio.Queue(MOST_WAITING)
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, request: dict[str, Any]) -> bytes:
        """The answer to this request of `howdah.api.metric_series`.

        Raises:
            Refused: too many wait, it can't be read, or not in time.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        try:
            self._questions.put_nowait((request, answer))
        except asyncio.QueueFull:
            raise ApiError(503, "what was sampled is being read for others: ask again in a few seconds") from None
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        try:
            return await asyncio.wait_for(answer, READ_S)
        except asyncio.TimeoutError:
            raise ApiError(504, f"what was sampled could not be read within {READ_S:.0f} s") from None

    async def _serve(self) -> None:
        while not self._questions.empty():
            await self._by_a_process()

    async def _by_a_process(self) -> None:
        """Answer until nobody asks, or something goes wrong."""
        process: asyncio.subprocess.Process | None = None
        try:
            while True:
                request, answer = await asyncio.wait_for(self._questions.get(), IDLE_S)
                if answer.done():  # nobody waits any more
                    continue
                try:
                    process = process or await _started()
                    found = await asyncio.wait_for(_asked(process, request), READ_S)
                except (OSError, EOFError, ValueError, asyncio.TimeoutError):
                    if not answer.done():
                        answer.set_exception(
                            ApiError(503, "what was sampled can't be read now: the log of the server has more")
                        )
                    return
                if not answer.done():
                    answer.set_result(found)
        except asyncio.TimeoutError:
            pass
        finally:
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


_readers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, SeriesReader] = weakref.WeakKeyDictionary()


async def _started() -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "howdah.api.metric_series", stdin=pipe, stdout=pipe, cwd="/"
    )


async def _asked(process: asyncio.subprocess.Process, request: dict[str, Any]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(request).encode() + b"\n")
    await process.stdin.drain()
    size = int(await process.stdout.readline())  # nothing, and so no number, when it has ended
    return await process.stdout.readexactly(size)


async def one_series(asked: ApiRequest) -> Response | dict[str, Any]:
    """`series` of the API."""
    job = asked.one
    try:
        wish = metric_series.SeriesQuery.of(asked.query)
        tasks = metric_series.tasks_of(job.view, wish)
    except ValueError as error:
        raise ApiError(400, str(error), "name") from None
    version, unwritten = job.samples()
    if asked.query.get("since") == str(version):
        return {"version": version, "unchanged": True}
    told = metric_series.told(job.view, wish, tasks)
    rows = b"[]"
    if any(name in metric_series.UNITS for name in wish.names):
        version, rows = await _sampled(job, wish, tasks, version, unwritten)
    own = json.dumps(told, separators=(",", ":")).encode()
    both = rows if own == b"[]" else own if rows == b"[]" else rows[:-1] + b"," + own[1:]
    head = json.dumps({"version": version, "names": metric_series.names(job.view)}, separators=(",", ":")).encode()
    return _answer(head[:-1] + b',"series":' + both + b"}", asked)


def _answer(body: bytes, asked: ApiRequest) -> Response:
    from howdah.api.response_cache import pack
    from howdah.api.router import ANSWER_HEADERS

    if "gzip" in asked.request.headers.get("accept-encoding", ""):
        return Response(200, pack(body), headers={**ANSWER_HEADERS, "Content-Encoding": "gzip"})
    return Response(200, body, headers=ANSWER_HEADERS)


async def _sampled(
    job: JobSource, wish: metric_series.SeriesQuery, tasks: list[str], version: int, unwritten: list[str]
) -> tuple[int, bytes]:
    """JSON, made once for a version, and which one it is of: who asks while it is being made gets that."""
    key = f"{job.directory} {urllib.parse.quote(repr((wish, tasks)))}"
    known = _kept.get(key)
    if known is None or (known[1].done() and (known[0] != version or not _size(known[1]))):
        places = {"directory": job.directory, "conf_dir": job.conf_dir}
        request = {**places, "wish": encode(wish), "tasks": tasks, "unwritten": unwritten}
        known = _kept[key] = (version, asyncio.ensure_future(_reader().ask(request)))
    _kept.move_to_end(key)
    rows = await asyncio.shield(known[1])
    _shed()
    return known[0], rows


def _shed() -> None:
    sizes = {key: _size(made) for key, (_, made) in _kept.items()}
    while len(_kept) > 1 and (len(_kept) > KEPT or sum(sizes.values()) > KEPT_BYTES):
        key, _ = _kept.popitem(last=False)
        del sizes[key]


def _size(made: asyncio.Future[bytes]) -> int:
    """In memory: nothing of what failed, or is not there yet."""
    return len(made.result()) if made.done() and not made.cancelled() and not made.exception() else 0


def _reader() -> SeriesReader:
    return _readers.setdefault(asyncio.get_running_loop(), SeriesReader())


async def metrics(asked: ApiRequest) -> Response:
    """As Prometheus wants it."""
    text = prometheus.exposition(asked.one.view, time.time())
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(200, text.encode(), prometheus.CONTENT_TYPE, headers)
