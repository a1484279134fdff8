"""Handlers of the calls about one job and the server itself, the same for every source."""

from __future__ import annotations

import codecs
import time

from howdah.api import schemas, serializers
from howdah.api.handlers.logs import stream_of
from howdah.api.routes import ApiRequest
from howdah.api.timeline import timeline as job_timeline
from howdah.errors import InvalidRequest, NotFound
from howdah.spec import TaskId
from howdah.wire import auth
from howdah.wire.messages import LogChunk

MAX_EVENTS, MAX_LOG_BYTES = 10_000, 1 << 20
MAX_CHARACTER_BYTES = 4


async def server(call: ApiRequest) -> schemas.Server:
    """Describe the server that answers."""
    source = call.source
    return {
        "kind": source.kind,
        "version": version(),
        "job": source.only_job_id or None,
        "now": time.time(),
        "may_act": source.kind == "master",
        "engine": source.engine,
        "history": source.history,
        "link_command": source.link_command,
    }


async def session(call: ApiRequest) -> schemas.PageLink:
    """Return what a link to this page is made of. Behind an engine's proxy the page of any application could ask for
    the token, so none is returned there."""
    if not call.source.owns_origin(call.http):
        return {"path": "", "token": ""}
    access = call.source.access
    return {"path": access.page_path, "token": auth.view_token(access.key)}


def version() -> str:
    """Return the version of howdah, "" where it runs from a tree that is not installed."""
    from importlib import metadata  # takes 10 ms, which only this call pays

    try:
        return metadata.version("howdah")
    except metadata.PackageNotFoundError:
        return ""


async def job(call: ApiRequest) -> schemas.Job:
    """Answer `jobs/ID`: state, outputs and failure of one job."""
    view = call.job.view
    return serializers.job(view, call.job.actions(), view.finished or time.time(), call.job.tensorboard_url())


async def tasks(call: ApiRequest) -> schemas.Tasks:
    """Answer `jobs/ID/tasks`: state and usage of each task."""
    return {"tasks": serializers.tasks(call.job.view)}


async def timeline(call: ApiRequest) -> schemas.Timeline:
    """Return the phases of the job and of each attempt."""
    return job_timeline(call.job.view)


async def events(call: ApiRequest) -> schemas.Events:
    """Answer `jobs/ID/events`: the events of a range of the log."""
    since, limit = call.number("since", 0, least=0), call.number("limit", 1000, 1, MAX_EVENTS)
    next_number, records = call.job.records(since, limit)
    return {"next": next_number, "events": [dict(serializers.masked_record(record)) for record in records]}


async def logs(call: ApiRequest) -> schemas.Log:
    """Return a piece of a task's log as text; a byte that is part of no character becomes U+FFFD."""
    task = task_of(call)
    stream = stream_of(call.query, "stdout")
    limit = max(MAX_CHARACTER_BYTES, call.number("limit", 65536, 1, MAX_LOG_BYTES))
    attempt = call.number("attempt", 0, least=0)
    chunk = await call.job.log(task, stream, attempt, call.number("offset", -limit), limit)
    view = call.job.view.tasks[task]
    complete = view.state.ended or attempt not in (0, view.attempt)
    offset, text, end = whole_characters(chunk, complete)
    return {
        "offset": offset,
        "size": chunk.size,
        "next": end,
        "text": text,
        "complete": complete and end >= chunk.size,
        "attempts": [each.attempt for each in view.attempts],
    }


def whole_characters(chunk: LogChunk, complete: bool) -> tuple[int, str, int]:
    """Return where the first whole character of a piece begins, the piece as text, and where its last character ends.

    The first bytes of a character at the end of the piece are left for the next piece, unless none will come: the
    stream ends here and is `complete`, or the piece holds nothing else before a gap.
    """
    data, end = chunk.text.encode("latin-1"), chunk.offset + len(chunk.text)
    # Bytes of a character that began in the piece before; none if this is not UTF-8.
    heads = (number for number, byte in enumerate(data[:MAX_CHARACTER_BYTES]) if byte & 0xC0 != 0x80)
    begin = next(heads, 0) if chunk.offset else 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data[begin:])
    rest = len(decoder.getstate()[0])
    nothing_follows = complete if end >= chunk.size else not text
    if rest and nothing_follows:
        return chunk.offset + begin, text + decoder.decode(b"", final=True), end
    return chunk.offset + begin, text, end - rest


def task_of(call: ApiRequest) -> TaskId:
    """Return the task that the path of a call names.

    Raises:
        InvalidRequest, NotFound: the job has no task of this name.
    """
    name = call.path_params["task"]
    try:
        task = TaskId.parse(name)
    except ValueError as error:
        raise InvalidRequest(str(error), "task") from None
    if task not in call.job.view.tasks:
        raise NotFound(f"the job has no task {name[:80]}", "task")
    return task
