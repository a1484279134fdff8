"""Adds up what jobs used: GPU-, CPU- and memory-hours by user, queue, tag or day."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from howdah.errors import InvalidRequest
from howdah.history.cost import cost_of_job
from howdah.history.queries import where_clause
from howdah.spec.prices import Prices

GROUPS = {
    "user": "user",
    "queue": "queue",
    "tag": "coalesce(tag.name, '')",
    "day": "date(started, 'unixepoch', 'localtime')",
}
"""The SQL expression of each group. A job counts for the day of its start, by this machine's clock."""
MAX_GROUPS = 5000
FILTERS = ("user", "queue", "tag", "from", "to")
_SUMS = "count(*), sum(gpu_hours), sum(cpu_hours), sum(memory_gib_hours), sum(wasted)"
_NAMES = ("gpu_hours", "cpu_hours", "memory_gib_hours", "wasted_gpu_hours")


def usage(connection: sqlite3.Connection, query: Mapping[str, str], prices: Prices | None = None) -> dict[str, Any]:
    """Return `{"by", "users": […], "total": …}`: a row for each group of the jobs that match the filters of the query,
    days in order and others by their GPU hours. A job with several tags counts for each of them, but only once in the
    total. `cost` is None without prices.

    Raises:
        InvalidRequest: a parameter has a value that is not allowed.
    """
    by = query.get("by") or "user"
    if by not in GROUPS:
        raise InvalidRequest(f"by is {by[:40]!r}, must be one of {', '.join(GROUPS)}", "by")
    where, values = where_clause({name: query.get(name, "") for name in FILTERS})
    tags = "LEFT JOIN tag ON tag.job = number" if by == "tag" else ""
    cost = cost_of_job(connection, prices)
    rows = _groups(connection, GROUPS[by], tags, where, values, cost)
    total = _groups(connection, "''", "", where, values, cost)
    for row in rows:
        row["user"] = row["group"] if by == "user" else ""
    if by == "day":
        rows.sort(key=lambda row: row["group"], reverse=True)
    else:
        rows.sort(key=lambda row: (-row["gpu_hours"], -row["jobs"], row["group"]))
    none = _row("", 0, cost=None if prices is None else 0.0)
    return {
        "by": by,
        "currency": prices.currency if prices is not None else "",
        "users": rows[:MAX_GROUPS],
        "total": {**(total[0] if total else none), "user": ""},
    }


def _groups(
    connection: sqlite3.Connection, group: str, tags: str, where: str, values: list[Any], cost: str
) -> list[dict[str, Any]]:
    sums = f"SELECT {group} AS part, sum({cost}), {_SUMS} FROM job {tags} {where} GROUP BY part"  # noqa: S608 - our own words
    found = {part: _row(part, jobs, *hours, cost=cost) for part, cost, jobs, *hours in connection.execute(sums, values)}
    causes = (
        f"SELECT {group} AS part, waste.cause, sum(hours) FROM waste JOIN job ON waste.job = number {tags} "  # noqa: S608
        f"{where} GROUP BY part, waste.cause"
    )
    for part, cause, hours in connection.execute(causes, values):
        if part in found:  # the index may have got a job since the first statement
            found[part]["by_cause"][cause] = round(hours, 4)
    return list(found.values())


def _row(group: str | None, jobs: int, *hours: float, cost: float | None) -> dict[str, Any]:
    sums = dict(zip(_NAMES, (round(each, 4) for each in hours or (0.0,) * len(_NAMES)), strict=True))
    return {"group": group or "", "jobs": jobs, **sums, "cost": cost and round(cost, 4), "by_cause": {}}
