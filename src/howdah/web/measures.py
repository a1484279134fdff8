"""Handlers of what tasks use: series over time, and all of it now for Prometheus.

Weeks of buckets are read by a process of its own, once for all who ask the same within a few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import urllib.parse
from collections import OrderedDict
from typing import Any

from howdah.spec.codec import encode
from howdah.web import prometheus, series
from howdah.web.calls import Asked
from howdah.web.server import Response
from howdah.web.source import JobSource, Refused

READ_S = 60.0
KEPT = 32
_kept: OrderedDict[str, tuple[int, asyncio.Future[bytes]]] = OrderedDict()


async def one_series(asked: Asked) -> Response | dict[str, Any]:
    """`series` of the API."""
    job = asked.one
    try:
        wish = series.Wish.of(asked.query)
        tasks = series.tasks_of(job.view, wish)
    except ValueError as error:
        raise Refused(400, str(error), "name") from None
    version, unwritten = job.samples()
    if asked.query.get("since") == str(version):
        return {"version": version, "unchanged": True}
    told = series.told(job.view, wish, tasks)
    rows = b"[]"
    if any(name in series.UNITS for name in wish.names):
        rows = await _sampled(job, wish, tasks, version, unwritten)
    own = json.dumps(told, separators=(",", ":")).encode()
    both = rows if own == b"[]" else own if rows == b"[]" else rows[:-1] + b"," + own[1:]
    head = json.dumps({"version": version, "names": series.names(job.view)}, separators=(",", ":")).encode()
    return _answer(head[:-1] + b',"series":' + both + b"}", asked)


def _answer(body: bytes, asked: Asked) -> Response:
    from howdah.web.api import ANSWER_HEADERS
    from howdah.web.rendered import pack

    if "gzip" in asked.request.headers.get("accept-encoding", ""):
        return Response(200, pack(body), headers={**ANSWER_HEADERS, "Content-Encoding": "gzip"})
    return Response(200, body, headers=ANSWER_HEADERS)


async def _sampled(job: JobSource, wish: series.Wish, tasks: list[str], version: int, unwritten: list[str]) -> bytes:
    """JSON, made once for a version."""
    key = f"{job.directory} {urllib.parse.quote(repr((wish, tasks)))}"
    known = _kept.get(key)
    if known is None or known[0] != version or (known[1].done() and known[1].exception()):
        request = {"directory": job.directory, "wish": encode(wish), "tasks": tasks, "unwritten": unwritten}
        known = _kept[key] = (version, asyncio.ensure_future(_read(request)))
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return await asyncio.shield(known[1])


async def _read(request: dict[str, Any]) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "howdah.web.series", stdin=pipe, stdout=pipe, cwd="/"
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(json.dumps(request).encode()), READ_S)
    except (asyncio.TimeoutError, asyncio.CancelledError):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        raise Refused(504, f"what was sampled could not be read within {READ_S:.0f} s") from None
    if process.returncode or not output.startswith(b"["):
        raise Refused(503, "what was sampled can't be read now: the log of the server has more")
    return output


async def metrics(asked: Asked) -> Response:
    """As Prometheus wants it."""
    text = prometheus.exposition(asked.one.view, time.time())
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(200, text.encode(), prometheus.CONTENT_TYPE, headers)
