"""Writes the list of jobs, and their use of resources, as CSV.

The rule: no cell is a formula. A text that a spreadsheet would take for one (OWASP: CSV injection) gets an apostrophe
before it; a number stays.
"""

from __future__ import annotations

import csv
import io
import math
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from howdah.errors import InvalidRequest
from howdah.history import run_columns

MAX_ROWS = 10_000
"""The most jobs of one file."""
JOB_COLUMNS = (
    *("id", "name", "state", "user", "queue", "engine", "cluster", "framework", "started", "finished", "duration_s"),
    *("tasks", "gpus", "gpu_hours", "wasted_gpu_hours", "cpu_hours", "memory_gib_hours", "tags", "cause"),
    *("progress", "diagnostics", "note", "archived"),
)
"""Columns of a list of jobs that are no metrics or hyperparameters, as in the answer in JSON."""
COST = "cost"
"""The column of the cost, which exists if there are prices."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_TIMES = ("started", "finished")


def jobs_table(rows: Iterable[Mapping[str, Any]], columns: str, currency: str = "") -> str:
    """Return rows of the list of jobs as CSV with the named columns, by default all except metrics and hyperparameters.
    Times are in UTC. With a `currency` jobs have a cost in it.

    Raises:
        InvalidRequest: a column is not known.
    """
    names = [name for name in columns.split(",") if name] or [*JOB_COLUMNS, *([COST] if currency else [])]
    readers = list(map(_reader, names))
    heading = [f"cost ({currency})" if name == COST and currency else urllib.parse.unquote(name) for name in names]
    return _table(heading, ([read(row) for read in readers] for row in rows))


def usage_table(answer: Mapping[str, Any]) -> str:
    """Return the rows of `usage`, and their total, as CSV."""
    names = ["jobs", "gpu_hours", "cpu_hours", "memory_gib_hours", "wasted_gpu_hours"]
    heading, currency = [answer["by"], *names], answer["currency"]
    if currency:
        names, heading = [*names, COST], [*heading, f"cost ({currency})"]
    rows = [[row["group"], *(row[name] for name in names)] for row in answer["users"]]
    total = ["total", *(answer["total"][name] for name in names)]
    return _table(heading, [*rows, total])


def _reader(name: str) -> Callable[[Mapping[str, Any]], Any]:
    """Return the function that returns the value of a column in a row."""
    column = run_columns.parse(name)
    if column is not None:
        return lambda row: column.of(dict(row))
    if name in _TIMES:
        return lambda row: _time(row[name])
    if name == "tags":
        return lambda row: " ".join(row[name])
    if name == "archived":
        return lambda row: "yes" if row[name] else ""
    if name not in (*JOB_COLUMNS, COST):
        allowed = f"{', '.join(JOB_COLUMNS)}, metric:NAME:last (min, max), param:NAME"
        raise InvalidRequest(f"columns has {name[:40]!r}, must be of {allowed}", "columns")
    return lambda row: row[name]


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(_cell, names))
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value
    return "" if value is None else value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds") if seconds else ""
