"""Handlers of usage metrics: series over time, and the present values for Prometheus.

The rule: a separate process reads weeks of samples, once for all callers who ask the same at the same time. There is
one such process, with a short queue, because it shares a container's memory with the master.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
import time
import urllib.parse
import weakref
from collections import OrderedDict
from typing import Any

from howdah.api import metric_series, prometheus
from howdah.api.http_server import Response
from howdah.api.metric_series import SampledSeriesRequest
from howdah.api.response_cache import compact_json, pack
from howdah.api.routes import ApiRequest
from howdah.api.sources import JobSource
from howdah.errors import AnswerTimeout, NotReady
from howdah.spec.codec import encode

READ_S = 60.0
"""Longest wait for an answer, the time in the queue included."""
MAX_WAITING = 16
"""The most different requests in the queue."""
IDLE_S = 10.0
"""Seconds without a request after which the process ends. The process stays because starting takes longer than most
answers."""
NEWEST_STEP_S = 10.0
"""Seconds: the shortest bucket of samples."""
MAX_ANSWERS, MAX_ANSWER_BYTES = 32, 8 << 20
"""The most answers that are kept, and their bytes."""
_answers: OrderedDict[str, tuple[int, asyncio.Future[bytes]]] = OrderedDict()


class SeriesReader:
    """Runs the process that reads samples, while there are requests."""

    def __init__(self) -> None:
        self._requests: asyncio.Queue[tuple[SampledSeriesRequest, asyncio.Future[bytes]]] = asyncio.Queue(MAX_WAITING)
        self._serving: asyncio.Task[None] | None = None

    async def ask(self, request: SampledSeriesRequest) -> bytes:
        """Return the process's answer to this request.

        Raises:
            NotReady, AnswerTimeout: too many requests wait, the samples can't be read, or not in time.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        try:
            self._requests.put_nowait((request, answer))
        except asyncio.QueueFull:
            raise NotReady("too many metric queries are waiting: try again in a few seconds") from None
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        try:
            return await asyncio.wait_for(answer, READ_S)
        except asyncio.TimeoutError:
            raise AnswerTimeout(f"the metrics could not be read within {READ_S:.0f} s") from None

    async def _serve(self) -> None:
        while not self._requests.empty():
            await self._answer_with_process()

    async def _answer_with_process(self) -> None:
        """Answer requests until none comes for a while, or something goes wrong."""
        process: asyncio.subprocess.Process | None = None
        try:
            while True:
                request, answer = await asyncio.wait_for(self._requests.get(), IDLE_S)
                if answer.done():  # its caller has left
                    continue
                try:
                    process = process or await _start_process()
                    found = await asyncio.wait_for(_ask_process(process, request), READ_S)
                except (OSError, EOFError, ValueError, asyncio.TimeoutError):
                    if not answer.done():
                        answer.set_exception(NotReady("the metrics can't be read: see the server's log"))
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


async def _start_process() -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "howdah.api.metric_series", stdin=pipe, stdout=pipe, cwd="/"
    )


async def _ask_process(process: asyncio.subprocess.Process, request: SampledSeriesRequest) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(encode(request)).encode() + b"\n")
    await process.stdin.drain()
    size = int(await process.stdout.readline())  # an empty line, not a number, if the process has ended
    return await process.stdout.readexactly(size)


def _newest(finished: float) -> float:
    """Return the end of a job, or the present time while it runs. The present time moves in steps, so that the same
    request within a step gets the same answer, which is cached."""
    return finished or math.ceil(time.time() / NEWEST_STEP_S) * NEWEST_STEP_S


async def series(call: ApiRequest) -> Response | dict[str, Any]:
    """Return usage and program metrics over time."""
    job = call.job
    query = metric_series.SeriesQuery.from_parameters(call.query).relative_to(_newest(job.view.finished))
    tasks = metric_series.tasks_of(job.view, query)
    version, unwritten = job.samples()
    if call.query.get("since") == str(version):
        return {"version": version, "unchanged": True}
    of_programs = metric_series.program_metrics(job.view, query, tasks)
    names = metric_series.available_names(job.view)
    rows = b"[]"
    if any(name in metric_series.UNITS for name in query.names):
        version, rows = await _sampled(job, query, tasks, version, unwritten)
    head = compact_json({"version": version, "names": names})
    # A job's master has more to do meanwhile: thousands of points of each task take a while.
    return await asyncio.to_thread(_respond, head, rows, of_programs, query, call)


def _respond(
    head: bytes,
    rows: bytes,
    of_programs: list[metric_series.ProgramMetric],
    query: metric_series.SeriesQuery,
    call: ApiRequest,
) -> Response:
    """Return the answer with the sampled series, which are `rows`, and the programs' metrics."""
    # One series at a time: the encoder lets no other thread run until it has ended.
    told = [compact_json(each) for each in metric_series.program_series(of_programs, query)]
    series = b",".join(filter(None, (rows[1:-1], *told)))
    return _json_response(head[:-1] + b',"series":[' + series + b"]}", call)


def _json_response(body: bytes, call: ApiRequest) -> Response:
    from howdah.api.router import ANSWER_HEADERS

    if "gzip" in call.http.headers.get("accept-encoding", ""):
        return Response(200, pack(body), headers={**ANSWER_HEADERS, "Content-Encoding": "gzip"})
    return Response(200, body, headers=ANSWER_HEADERS)


async def _sampled(
    job: JobSource, query: metric_series.SeriesQuery, tasks: list[str], version: int, unwritten: list[str]
) -> tuple[int, bytes]:
    """Return the version of the samples and their JSON, which is read once for a version: other callers wait for the
    same answer."""
    key = f"{job.directory} {urllib.parse.quote(repr((query, tasks)))}"
    known = _answers.get(key)
    if known is None or (known[1].done() and (known[0] != version or not _size(known[1]))):
        request = SampledSeriesRequest(job.directory, job.conf_dir, query, (*tasks,), (*unwritten,))
        known = _answers[key] = (version, asyncio.ensure_future(_reader().ask(request)))
    _answers.move_to_end(key)
    rows = await asyncio.shield(known[1])
    _drop_oldest()
    return known[0], rows


def _drop_oldest() -> None:
    sizes = {key: _size(answer) for key, (_, answer) in _answers.items()}
    while len(_answers) > 1 and (len(_answers) > MAX_ANSWERS or sum(sizes.values()) > MAX_ANSWER_BYTES):
        key, _ = _answers.popitem(last=False)
        del sizes[key]


def _size(answer: asyncio.Future[bytes]) -> int:
    """Return the bytes of an answer in memory, 0 for an answer that failed or is not there yet."""
    return len(answer.result()) if answer.done() and not answer.cancelled() and not answer.exception() else 0


def _reader() -> SeriesReader:
    return _readers.setdefault(asyncio.get_running_loop(), SeriesReader())


async def metrics(call: ApiRequest) -> Response:
    """Return the present metrics in the format of Prometheus."""
    text = prometheus.format_metrics(call.job.view, time.time())
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(200, text.encode(), prometheus.CONTENT_TYPE, headers)
