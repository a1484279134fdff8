"""Handlers of the calls that every source answers alike."""

from __future__ import annotations

import time

from howdah.data.logorder import BOTH, STREAMS
from howdah.spec import TaskId
from howdah.web import describe, shapes
from howdah.web.calls import Asked
from howdah.web.source import Refused
from howdah.web.timeline import timeline as job_timeline

MOST_EVENTS, MOST_LOG_BYTES = 10_000, 1 << 20


async def server(asked: Asked) -> shapes.Server:
    """Who answers."""
    source = asked.source
    return {
        "kind": source.kind,
        "version": version(),
        "job": source.only or None,
        "now": time.time(),
        "may_act": source.kind == "master",
        "engine": source.engine,
    }


def version() -> str:
    """Of howdah; "" where it runs from a tree that is not installed."""
    from importlib import metadata  # 10 ms that nobody waits for but who asks

    try:
        return metadata.version("howdah")
    except metadata.PackageNotFoundError:
        return ""


async def job(asked: Asked) -> shapes.Job:
    """The job."""
    view = asked.one.view
    return describe.job(view, asked.one.actions(), view.finished or time.time(), asked.one.board())


async def tasks(asked: Asked) -> shapes.Tasks:
    """Its tasks."""
    return {"tasks": describe.tasks(asked.one.view)}


async def timeline(asked: Asked) -> shapes.Timeline:
    """Where its time went."""
    return job_timeline(asked.one.view)


async def events(asked: Asked) -> shapes.Events:
    """Its event log."""
    since, limit = asked.number("since", 0, least=0), asked.number("limit", 1000, 1, MOST_EVENTS)
    following, records = asked.one.records(since, limit)
    return {"next": following, "events": [describe.masked_record(record) for record in records]}


async def logs(asked: Asked) -> shapes.Log:
    """What a task printed; any byte becomes one character."""
    task = task_of(asked)
    stream = asked.query.get("stream") or "stdout"
    if stream not in (BOTH, *STREAMS):
        raise Refused(400, f"stream is {stream[:40]!r}, must be stdout, stderr or both", "stream")
    limit = asked.number("limit", 65536, 1, MOST_LOG_BYTES)
    attempt = asked.number("attempt", 0, least=0)
    chunk = await asked.one.log(task, stream, attempt, asked.number("offset", -limit), limit)
    view = asked.one.view.tasks[task]
    end = chunk.offset + len(chunk.text)
    return {
        "offset": chunk.offset,
        "size": chunk.size,
        "next": end,
        "text": chunk.text.encode("latin-1").decode("utf-8", "replace"),
        "complete": (view.state.ended or attempt not in (0, view.attempt)) and end >= chunk.size,
        "attempts": [each.attempt for each in view.attempts],
    }


def task_of(asked: Asked) -> TaskId:
    """The task in a call's path.

    Raises:
        Refused: there is none of this name.
    """
    name = asked.places["task"]
    try:
        task = TaskId.parse(name)
    except ValueError as error:
        raise Refused(400, str(error), "task") from None
    if task not in asked.one.view.tasks:
        raise Refused(404, f"the job has no task {name[:80]}", "task")
    return task
