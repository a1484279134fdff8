"""Queries of the index: a page of jobs, the job of a process or a GPU.

The rule: a page begins after the values of the last row of the page before, not at a row number. So no job is shown
twice or left out when jobs come in between. Words are searched in one case-folded text per job, which is scanned from
end to end (100,000 jobs: 40 ms), so that a part of a word is found in every language.
"""

from __future__ import annotations

import base64
import json
import math
import sqlite3
from collections.abc import Mapping
from typing import Any

from howdah.api.trace import GPU, PROCESS
from howdah.engines.info import job_of_container
from howdah.errors import InvalidRequest
from howdah.history import run_columns
from howdah.history.cost import cost_of_job
from howdah.spec import State
from howdah.spec.prices import Prices

MAX_PAGE, DEFAULT_PAGE = 500, 50
MAX_CHOICES = 500
"""The most values of one filter."""
SORTS = {
    **{name: name for name in ("started", "finished", "name", "id", "user", "queue", "engine", "framework", "state")},
    **{name: name for name in ("tasks", "gpus", "duration", "gpu_hours", "cpu_hours", "memory_gib_hours")},
    **{"duration_s": "duration", "wasted_gpu_hours": "wasted"},
}
"""The column of each sort order; a list may also be sorted by a metric or a hyperparameter (`run_columns`)."""
_EXACT = ("user", "queue", "state", "framework", "engine")
_COLUMNS = (
    "number, id, name, user, queue, engine, framework, state, started, finished, duration AS duration_s, tasks, gpus, "
    "gpu_hours, wasted AS wasted_gpu_hours, cpu_hours, memory_gib_hours, cause, progress, diagnostics, url, over, "
    "root, note, archived"
)
ARCHIVED = {"": "(NOT archived OR over IS NOT 1)", "only": "archived", "also": "1"}
"""The condition of each value of the filter `archived`: running jobs are never left out."""
_DIGITS = {
    **{"started": 3, "finished": 3, "duration_s": 3, "progress": 4},
    **{"gpu_hours": 4, "wasted_gpu_hours": 4, "cpu_hours": 4, "memory_gib_hours": 4},
}
"""The decimal digits of the numbers in a row of the list."""


def page(
    connection: sqlite3.Connection,
    query: Mapping[str, str],
    now: float,
    max_rows: int = MAX_PAGE,
    prices: Prices | None = None,
) -> dict[str, Any]:
    """Return `{"jobs": […], "next": cursor or None, "total": n, "names": …}` for the query of a list of jobs.

    Raises:
        InvalidRequest: a parameter has a value that is not allowed.
    """
    where, values = where_clause(query)
    where += f"{' AND' if where else 'WHERE'} {_archived(query)}"
    sort = query.get("sort", "") or "-started"
    down = sort.startswith("-")
    cost = cost_of_job(connection, prices)
    name = sort.removeprefix("-")
    order_by, order_values = (cost, []) if prices is not None and name == "cost" else _order_by(name, down)
    limit = _parse_int(query, "limit", min(DEFAULT_PAGE, max_rows), max_rows)
    total = connection.execute(f"SELECT count(*) FROM job {where}", values).fetchone()[0]  # noqa: S608
    if query.get("after"):
        after = _cursor(query["after"], sort)
        where += f" AND (sorted_by, number) {'<' if down else '>'} (?, ?)"
        values = [*values, *after]
    order = "DESC" if down else "ASC"
    found = connection.execute(
        f"SELECT {_COLUMNS}, {cost} AS cost, {order_by} AS sorted_by FROM job {where} "  # noqa: S608 - our own names
        f"ORDER BY sorted_by {order}, number {order} LIMIT ?",
        [*order_values, *values, limit + 1],
    )
    rows = _rows(found)
    more, rows = len(rows) > limit, rows[:limit]
    next_ = _to_cursor(sort, rows[-1]["sorted_by"], rows[-1]["number"]) if more else None
    names = run_columns.add_values(connection, rows, query.get("columns", ""))
    return {"jobs": [_job(row, now) for row in rows], "next": next_, "total": total, "names": names}


def _archived(query: Mapping[str, str]) -> str:
    wanted = query.get("archived", "")
    if wanted not in ARCHIVED:
        raise InvalidRequest(f"archived is {wanted[:40]!r}, must be also or only", "archived")
    return ARCHIVED[wanted]


def _order_by(name: str, down: bool) -> tuple[str, list[Any]]:
    """Return the SQL expression by which a list is sorted, and its values."""
    if name in SORTS:
        return SORTS[name], []
    column = run_columns.parse(name)
    if column is None:
        allowed = f"{', '.join(SORTS)}, metric:NAME:last (min, max), param:NAME"
        raise InvalidRequest(f"sort is {name[:40]!r}, must be one of {allowed}, with - for the other way", "sort")
    return column.order_by(down)


def where_clause(query: Mapping[str, str]) -> tuple[str, list[Any]]:
    """Return the SQL condition of the filters of a query, "" if there are none, and its values.

    Raises:
        InvalidRequest: a time is none.
    """
    clauses: list[str] = []
    values: list[Any] = []
    for name in _EXACT:
        choices = _choices(query, name)
        if choices:
            clauses.append(f"{name} IN ({', '.join('?' * len(choices))})")
            values += choices
    if tags := _choices(query, "tag"):
        tagged = f"SELECT job FROM tag WHERE tag.name IN ({', '.join('?' * len(tags))})"  # noqa: S608 - our own words
        clauses.append(f"number IN ({tagged})")
        values += tags
    if query.get("name"):
        clauses.append("instr(folded(name), ?)")
        values.append(query["name"].casefold())
    for word in query.get("text", "").casefold().split()[:20]:
        clauses.append("(instr(words, ?) OR instr(noted, ?))")
        values += [word, word]
    for name, sign in (("from", ">="), ("to", "<")):
        if query.get(name):
            clauses.append(f"started {sign} ?")
            values.append(_parse_time(query, name))
    return (f"WHERE {' AND '.join(clauses)}" if clauses else ""), values


def _choices(query: Mapping[str, str], name: str) -> list[str]:
    return [choice for choice in query.get(name, "").split(",") if choice][:MAX_CHOICES]


def _rows(cursor: sqlite3.Cursor) -> list[dict[str, Any]]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _job(row: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return a row of the index in the form of the list of jobs, but with its `root` in place of the cluster's name."""
    job = {name: value for name, value in row.items() if name not in ("number", "over", "sorted_by")}
    if row["over"]:
        job["url"] = ""
    elif not State(row["state"]).ended:
        job["duration_s"] = max(row["duration_s"], now - row["started"])
    job |= {"archived": bool(row["archived"]), "cost": None if row["cost"] is None else round(row["cost"], 4)}
    return job | {name: round(job[name], digits) for name, digits in _DIGITS.items()}


def newest_directory(connection: sqlite3.Connection, job_id: str) -> str:
    """Return the directory of the job of this id, "" if there is none. If jobs of several clusters have the id, it is
    the one that started last."""
    newest = "SELECT directory FROM job WHERE id = ? ORDER BY started DESC, number DESC LIMIT 1"
    found = connection.execute(newest, (job_id,)).fetchone()
    return str(found[0]) if found else ""


def root_of(connection: sqlite3.Connection, directory: str) -> str:
    """Return the home that has a job's directory, as the index names it; "" if the index has no such job."""
    found = connection.execute("SELECT root FROM job WHERE directory = ?", (directory,)).fetchone()
    return str(found[0]) if found else ""


def count_tags(connection: sqlite3.Connection, directory: str) -> int:
    """Return the number of tags of the job in `directory`."""
    counted = "SELECT count(*) FROM tag JOIN job ON tag.job = job.number WHERE job.directory = ?"
    return int(connection.execute(counted, (directory,)).fetchone()[0])


def row_of(
    connection: sqlite3.Connection, job_id: str, directory: str, now: float, prices: Prices | None = None
) -> dict[str, Any] | None:
    """Return the row of the job of this id in `directory`, None if there is none."""
    columns = f"{_COLUMNS}, {cost_of_job(connection, prices)} AS cost"
    which = f"SELECT {columns} FROM job WHERE id = ? AND directory = ?"  # noqa: S608 - our own names
    found = _rows(connection.execute(which, (job_id, directory)))
    run_columns.add_values(connection, found, run_columns.ALL)
    return _job(found[0], now) if found else None


def previous_run(connection: sqlite3.Connection, job_id: str) -> str:
    """Return the id of the newest job of the same name and user that began before this one, "" if there is none."""
    same = "earlier.user = this.user AND earlier.name = this.name AND earlier.id <> this.id"
    found = connection.execute(
        f"SELECT earlier.id FROM job AS this JOIN job AS earlier ON {same} "  # noqa: S608 - our own words
        "AND (earlier.started, earlier.number) < (this.started, this.number) WHERE this.id = ? AND this.directory = ? "
        "ORDER BY earlier.started DESC, earlier.number DESC LIMIT 1",
        (job_id, newest_directory(connection, job_id)),
    ).fetchone()
    return str(found[0]) if found else ""


def trace(connection: sqlite3.Connection, of: str, live: bool = False) -> dict[str, Any] | None:
    """Return `{"job", "task", "attempt", "directory"}` of the present or last owner of a container, `host:pid` or
    `host/gpu3`; with `live` only of an attempt that has not ended."""
    try:
        of.encode()
    except UnicodeEncodeError:  # comes from a command line: event logs and the index are UTF-8
        return None
    if job := job_of_container(of):
        rows = _find_attempts(connection, "job IN (SELECT number FROM job WHERE id = ?) AND container = ?", job, of)
        if not rows and (directory := newest_directory(connection, job)):
            rows = [(job, "", 0, directory, 0.0, "")]
    elif found := GPU.fullmatch(of):
        rows = [
            row for row in _find_attempts(connection, "held AND host = ?", found[1]) if found[2] in row[-1].split(",")
        ]
    elif found := PROCESS.fullmatch(of):
        rows = _find_attempts(connection, "pid = ? AND (host = ? OR node = ?)", int(found[2]), found[1], found[1])
    else:
        rows = _find_attempts(connection, "container = ?", of)
    if live:
        rows = [row for row in rows if not row[4]]
    return dict(zip(("job", "task", "attempt", "directory"), rows[0], strict=False)) if rows else None


def _find_attempts(connection: sqlite3.Connection, where: str, *values: object) -> list[tuple[Any, ...]]:
    which = "SELECT id, task, attempt, directory, until, attempt.gpus FROM attempt JOIN job ON job = number"
    return connection.execute(
        f"{which} WHERE {where} ORDER BY NOT until DESC, since DESC LIMIT 1000", values
    ).fetchall()


def _to_cursor(sort: str, value: Any, number: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([sort, value, number]).encode()).decode().rstrip("=")


def _cursor(text: str, sort: str) -> tuple[Any, int]:
    try:
        sorted_by, value, number = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if sorted_by != sort or not isinstance(number, int) or not (_is_storable(value) and _is_storable(number)):
            raise ValueError
        return value, number
    except (ValueError, TypeError, RecursionError):
        raise InvalidRequest(
            f"after is not a cursor of a list sorted by {sort}: begin with the first page", "after"
        ) from None


def _is_storable(value: Any) -> bool:
    """Return whether SQLite can store a value from JSON."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return isinstance(value, float) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def _parse_time(query: Mapping[str, str], name: str) -> float:
    try:
        moment = float(query[name])
    except ValueError:
        moment = math.nan
    if not math.isfinite(moment):
        raise InvalidRequest(f"{name} is {query[name][:40]!r}, must be epoch seconds", name)
    return moment


def _parse_int(query: Mapping[str, str], name: str, usual: int, maximum: int) -> int:
    text = query.get(name) or str(usual)
    if not text.isascii() or not text.isdigit():
        raise InvalidRequest(f"{name} is {text[:40]!r}, must be a whole number", name)
    return max(1, min(int(text[:9]), maximum))
