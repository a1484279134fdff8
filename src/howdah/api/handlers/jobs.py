"""Handlers about many jobs: their list, their use of resources, their comparison, and the job of a container or
process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from howdah.api import history_schemas, schemas
from howdah.api.http_server import Response
from howdah.api.routes import ApiRequest
from howdah.api.trace import trace as trace_within_job
from howdah.errors import InvalidRequest, NotFound

MAX_COMPARED = 10
"""The most jobs of one comparison."""
_CSV_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cache-Control": "no-store",
}


@runtime_checkable
class Catalogue(Protocol):
    """Answers the calls about many jobs."""

    async def jobs(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the jobs that the query asks for, one page of them."""

    async def jobs_csv(self, query: Mapping[str, str]) -> tuple[str, str]:
        """Return a file's name and, as CSV, the jobs that the query asks for."""

    async def users(self, query: Mapping[str, str]) -> Mapping[str, Any]:
        """Return what the jobs used, by user or another group."""

    async def users_csv(self, query: Mapping[str, str]) -> str:
        """Return the answer of `users` as CSV."""

    async def compare(self, ids: Sequence[str], equal: bool = False) -> Mapping[str, Any]:
        """Return the keys and values in which jobs differ; with `equal` all others, too. If there is only one job,
        compare it with the previous run of the same name."""

    async def row(self, job_id: str) -> Mapping[str, Any] | None:
        """Return the row of a job with all columns of the list; None if there is none."""

    async def trace(self, of: str) -> Mapping[str, Any] | None:
        """Return the job and task of a container, process or GPU, None if there is none."""


async def jobs(call: ApiRequest) -> history_schemas.Jobs:
    """Answer `jobs`: the jobs of all engines, one page of them."""
    return cast(history_schemas.Jobs, await _catalogue(call).jobs(call.query))


async def jobs_csv(call: ApiRequest) -> Response:
    """Answer `jobs.csv`: the list of jobs as a file."""
    return _csv_file(*await _catalogue(call).jobs_csv(call.query))


async def users(call: ApiRequest) -> history_schemas.Users:
    """Answer `users`: what the jobs of each user, or another group, used."""
    return cast(history_schemas.Users, await _catalogue(call).users(call.query))


async def users_csv(call: ApiRequest) -> Response:
    """Answer `users.csv`: the answer of `users` as a file."""
    return _csv_file("usage.csv", await _catalogue(call).users_csv(call.query))


def _csv_file(name: str, text: str) -> Response:
    headers = {**_CSV_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(200, text.encode(), "text/csv; charset=utf-8", headers)


async def compare(call: ApiRequest) -> history_schemas.Compare:
    """Answer `compare`: the keys and values in which jobs differ."""
    ids = call.query.get("jobs", "").split(",")
    if not ids[0] or len(ids) > MAX_COMPARED:
        raise InvalidRequest(f"jobs must be 1 to {MAX_COMPARED} ids with commas between", "jobs")
    return cast(history_schemas.Compare, await _catalogue(call).compare(ids, call.query.get("equal") == "1"))


async def row(call: ApiRequest) -> history_schemas.JobRow:
    """Answer `jobs/ID/row`: the job as a row of the list."""
    found = await _catalogue(call).row(call.path_params["job"])
    if found is None:
        raise NotFound("the list does not have this job now", "job")
    return cast(history_schemas.JobRow, found)


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
