"""Handlers of the calls that every source answers alike."""

from __future__ import annotations

import codecs
import time

from howdah.api import schemas, serializers
from howdah.api.routes import ApiRequest
from howdah.api.sources import ApiError
from howdah.api.timeline import timeline as job_timeline
from howdah.logs.stream_index import BOTH, STREAMS
from howdah.spec import TaskId
from howdah.wire import auth
from howdah.wire.messages import LogChunk

MOST_EVENTS, MOST_LOG_BYTES = 10_000, 1 << 20
LONGEST_CHARACTER = 4
"""Bytes."""


async def server(asked: ApiRequest) -> schemas.Server:
    """Who answers."""
    source = asked.source
    return {
        "kind": source.kind,
        "version": version(),
        "job": source.only or None,
        "now": time.time(),
        "may_act": source.kind == "master",
        "engine": source.engine,
        "history": source.history,
        "link_command": source.link_command,
    }


async def session(asked: ApiRequest) -> schemas.PageLink:
    """What a link to this page is made of. Behind an engine's proxy every application's page could ask for the token:
    none is told there."""
    if not asked.source.owns_origin(asked.request):
        return {"path": "", "token": ""}
    access = asked.source.access
    return {"path": access.place, "token": auth.view_token(access.key)}


def version() -> str:
    """Of howdah; "" where it runs from a tree that is not installed."""
    from importlib import metadata  # 10 ms that nobody waits for but who asks

    try:
        return metadata.version("howdah")
    except metadata.PackageNotFoundError:
        return ""


async def job(asked: ApiRequest) -> schemas.Job:
    """The job."""
    view = asked.one.view
    return serializers.job(view, asked.one.actions(), view.finished or time.time(), asked.one.board())


async def tasks(asked: ApiRequest) -> schemas.Tasks:
    """Its tasks."""
    return {"tasks": serializers.tasks(asked.one.view)}


async def timeline(asked: ApiRequest) -> schemas.Timeline:
    """Where its time went."""
    return job_timeline(asked.one.view)


async def events(asked: ApiRequest) -> schemas.Events:
    """Its event log."""
    since, limit = asked.number("since", 0, least=0), asked.number("limit", 1000, 1, MOST_EVENTS)
    following, records = asked.one.records(since, limit)
    return {"next": following, "events": [dict(serializers.masked_record(record)) for record in records]}


async def logs(asked: ApiRequest) -> schemas.Log:
    """What a task printed; a byte that is part of no character becomes one."""
    task = task_of(asked)
    stream = asked.query.get("stream") or "stdout"
    if stream not in (BOTH, *STREAMS):
        raise ApiError(400, f"stream is {stream[:40]!r}, must be stdout, stderr or both", "stream")
    limit = max(LONGEST_CHARACTER, asked.number("limit", 65536, 1, MOST_LOG_BYTES))
    attempt = asked.number("attempt", 0, least=0)
    chunk = await asked.one.log(task, stream, attempt, asked.number("offset", -limit), limit)
    view = asked.one.view.tasks[task]
    over = view.state.ended or attempt not in (0, view.attempt)
    offset, text, end = whole_characters(chunk, over)
    return {
        "offset": offset,
        "size": chunk.size,
        "next": end,
        "text": text,
        "complete": over and end >= chunk.size,
        "attempts": [each.attempt for each in view.attempts],
    }


def whole_characters(chunk: LogChunk, over: bool) -> tuple[int, str, int]:
    """Where the first whole character of a piece begins, the piece as text, and where the last one ends.

    What is left of a character at its end is for the next piece, unless there will be none: the stream ends here and is
    `over`, or there is nothing else before a gap.
    """
    data, end = chunk.text.encode("latin-1"), chunk.offset + len(chunk.text)
    begin = _beginning(data) if chunk.offset else 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[begin:])
    rest = len(decoder.getstate()[0])
    nothing_follows = over if end >= chunk.size else not text
    if rest and nothing_follows:
        return chunk.offset + begin, text + decoder.decode(b"", final=True), end
    return chunk.offset + begin, text, end - rest


def _beginning(data: bytes) -> int:
    """How many bytes belong to a character that began before; none if it is no UTF-8."""
    found = (number for number, byte in enumerate(data[:LONGEST_CHARACTER]) if byte & 0xC0 != 0x80)
    return next(found, 0)


def task_of(asked: ApiRequest) -> TaskId:
    """The task in a call's path.

    Raises:
        Refused: there is none of this name.
    """
    name = asked.places["task"]
    try:
        task = TaskId.parse(name)
    except ValueError as error:
        raise ApiError(400, str(error), "task") from None
    if task not in asked.one.view.tasks:
        raise ApiError(404, f"the job has no task {name[:80]}", "task")
    return task
