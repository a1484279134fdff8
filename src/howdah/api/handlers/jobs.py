"""Handlers about many jobs: the list, users, two jobs side by side, and the job of a container or process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

from howdah.api import schemas
from howdah.api.routes import ApiRequest
from howdah.api.trace import trace as trace_within_job
from howdah.errors import InvalidRequest, NotFound


@runtime_checkable
class Catalogue(Protocol):
    """Answers the calls about many jobs."""

    async def jobs(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the jobs that the query asks for, one page of them."""

    async def users(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return jobs and GPU-hours by user."""

    async def compare(self, one: str, other: str) -> Mapping[str, Any]:
        """Return the keys and values in which two jobs differ."""

    async def trace(self, of: str) -> Mapping[str, Any] | None:
        """Return the job and task of a container, process or GPU, None if there is none."""


async def jobs(call: ApiRequest) -> schemas.Jobs:
    """Answer `jobs`: the jobs of all engines, one page of them."""
    return cast(schemas.Jobs, await _catalogue(call).jobs(call.query))


async def users(call: ApiRequest) -> schemas.Users:
    """Answer `users`: how many jobs and GPU hours each user has."""
    return cast(schemas.Users, await _catalogue(call).users(call.query))


async def compare(call: ApiRequest) -> schemas.Compare:
    """Answer `compare`: the keys and values in which two jobs differ."""
    ids = call.query.get("jobs", "").split(",")
    if len(ids) != 2:
        raise InvalidRequest("jobs must be two ids with a comma between", "jobs")
    return cast(schemas.Compare, await _catalogue(call).compare(*ids))


async def trace(call: ApiRequest) -> schemas.TraceResult:
    """Find the job and task of a container, process or GPU."""
    of = call.query.get("of", "").strip()
    if not of:
        raise InvalidRequest("of must be a container, host:pid or host/gpu3", "of")
    found: Mapping[str, Any] | None
    if isinstance(call.source, Catalogue):
        found = await call.source.trace(of)
    else:
        job = await call.source.job(call.source.only_job_id)
        found = trace_within_job(job.view, of) if job else None
    if found is None:
        raise NotFound(f"no job here had {of[:80]}", "of")
    return cast(schemas.TraceResult, found)


def _catalogue(call: ApiRequest) -> Catalogue:
    if not isinstance(call.source, Catalogue):
        raise NotFound(f"this is the page of {call.source.only_job_id} alone; `howdah history` serves the list of jobs")
    return call.source
