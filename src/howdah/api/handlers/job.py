"""Handlers of the calls about one job and the server itself, the same for every source."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from howdah.api import curve_schemas, schemas, serializers
from howdah.api.kept_stacks import read_last_stacks
from howdah.api.routes import ApiRequest
from howdah.api.timeline import timeline as job_timeline
from howdah.wire import auth

MAX_EVENTS = 10_000


async def server(call: ApiRequest) -> schemas.Server:
    """Describe the server that answers."""
    source = call.source
    return {
        "kind": source.kind,
        "version": version(),
        "job": source.only_job_id or None,
        "now": time.time(),
        "may_act": True,
        "engine": source.engine,
        "history": source.history,
        "link_command": source.link_command,
        "currency": source.currency,
    }


async def openapi(_: ApiRequest) -> dict[str, Any]:
    """Return the OpenAPI document of all calls."""
    from howdah.api.openapi import openapi  # only this call needs the descriptions of all answers

    return openapi()


async def session(call: ApiRequest) -> schemas.PageLink:
    """Return the parts of a link to this page. Behind an engine's proxy the page of any application could ask for the
    token, so none is returned there."""
    if not call.source.owns_origin(call.http):
        return {"path": "", "token": ""}
    access = call.source.access
    return {"path": access.page_path, "token": auth.view_token(access.key)}


def version() -> str:
    """Return the version of howdah, "" if it runs from a tree that is not installed."""
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


async def timeline(call: ApiRequest) -> curve_schemas.Timeline:
    """Return the phases of the job and of each attempt."""
    return job_timeline(call.job.view)


async def stacks(call: ApiRequest) -> curve_schemas.KeptStacks:
    """Return the stacks that were kept last."""
    return await asyncio.to_thread(read_last_stacks, call.job)


async def events(call: ApiRequest) -> schemas.Events:
    """Answer `jobs/ID/events`: the events of a range of the log, and each as a sentence."""
    since, limit = call.number("since", 0, minimum=0), call.number("limit", 1000, 1, MAX_EVENTS)
    next_number, records = call.job.records(since, limit)
    return {
        "next": next_number,
        "events": [dict(serializers.masked_record(record)) for record in records],
        "sentences": [serializers.event_sentence(record) for record in records],
    }
