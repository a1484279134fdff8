"""Calls about many jobs: the list, users, two jobs side by side, and from a container or process back to the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

from howdah.api import schemas
from howdah.api.routes import ApiRequest
from howdah.api.sources import ApiError
from howdah.api.trace import trace as within


@runtime_checkable
class Catalogue(Protocol):
    """What a source of many jobs answers beyond those of one; refusals name the parameter."""

    async def jobs(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """A page of the list."""
        ...

    async def users(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Jobs and GPU-hours by user."""
        ...

    async def compare(self, one: str, other: str) -> Mapping[str, Any]:
        """Where two jobs differ."""
        ...

    async def trace(self, of: str) -> Mapping[str, Any] | None:
        """Whose a container, process or GPU is."""
        ...


async def jobs(asked: ApiRequest) -> schemas.Jobs:
    """The list."""
    return cast(schemas.Jobs, await _catalogue(asked).jobs(asked.query))


async def users(asked: ApiRequest) -> schemas.Users:
    """Who used what."""
    return cast(schemas.Users, await _catalogue(asked).users(asked.query))


async def compare(asked: ApiRequest) -> schemas.Compare:
    """Two jobs side by side."""
    ids = asked.query.get("jobs", "").split(",")
    if len(ids) != 2:
        raise ApiError(400, "jobs must be two ids with a comma between", "jobs")
    return cast(schemas.Compare, await _catalogue(asked).compare(*ids))


async def trace(asked: ApiRequest) -> schemas.Traced:
    """Whose it is."""
    of = asked.query.get("of", "").strip()
    if not of:
        raise ApiError(400, "of must be a container, host:pid or host/gpu3", "of")
    found: Mapping[str, Any] | None
    if isinstance(asked.source, Catalogue):
        found = await asked.source.trace(of)
    else:
        job = await asked.source.job(asked.source.only)
        found = within(job.view, of) if job else None
    if found is None:
        raise ApiError(404, f"no job here had {of[:80]}", "of")
    return cast(schemas.Traced, found)


def _catalogue(asked: ApiRequest) -> Catalogue:
    if not isinstance(asked.source, Catalogue):
        raise ApiError(404, f"this is the page of {asked.source.only} alone; `howdah history` serves the list of jobs")
    return asked.source
