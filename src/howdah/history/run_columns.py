"""Columns of the list of jobs whose names come from the jobs: metrics, hyperparameters; and tags.

A column is named `metric:NAME:last`, `:min` or `:max`, and `param:NAME`. In a name a comma and a percent sign are
percent-encoded, so that columns can be put in a list.
"""

from __future__ import annotations

import sqlite3
import urllib.parse
from collections.abc import Sequence
from typing import Any

from howdah.spec.values import dataclass

ALL = "all"
"""Stands for all metrics and hyperparameters of each job."""
METRIC, PARAM = "metric", "param"
_STORED = {"last": "last", "min": "least", "max": "most"}
"""The column of the index for each value of a metric."""
_NUMBERS_AT_ONCE = 500
"""Jobs whose values are read by one statement."""
_BEHIND_ALL = "\U0010ffff"
"""Sorts behind every number and every text."""


@dataclass(frozen=True)
class RunColumn:
    """A metric or a hyperparameter as a column."""

    kind: str
    """METRIC or PARAM."""
    name: str
    """The name of the metric or hyperparameter."""
    value: str = ""
    """For a metric: last, min or max."""

    @property
    def text(self) -> str:
        """Return the column's name."""
        return f"{self.kind}:{self.name}{f':{self.value}' if self.value else ''}"

    def order_by(self, down: bool) -> tuple[str, list[Any]]:
        """Return the SQL expression by which jobs are sorted, and its values; jobs without a value come last."""
        table, column = ("parameter", "value") if self.kind == PARAM else ("metric", _STORED[self.value])
        found = f"SELECT {column} FROM {table} WHERE {table}.job = number AND {table}.name = ?"  # noqa: S608 - our own words
        return f"coalesce(({found}), ?)", [self.name, float("-inf") if down else _BEHIND_ALL]

    def of(self, row: dict[str, Any]) -> Any:
        """Return the value in a job's row; None if it has none."""
        if self.kind == PARAM:
            return row["params"].get(self.name)
        return row["metrics"].get(self.name, {}).get(self.value)


def parse(text: str) -> RunColumn | None:
    """Return the column of this name; None if the name is not one of these columns. A metric without a value means its
    last value."""
    kind, _, name = urllib.parse.unquote(text).partition(":")
    if kind == PARAM and name:
        return RunColumn(PARAM, name)
    if kind != METRIC or not name:
        return None
    before, _, value = name.rpartition(":")
    return RunColumn(METRIC, before, value) if before and value in _STORED else RunColumn(METRIC, name, "last")


def parse_list(text: str) -> list[RunColumn]:
    """Return the columns of metrics and hyperparameters in a list of columns."""
    found = map(parse, text.split(","))
    return [column for column in found if column is not None]


def add_values(connection: sqlite3.Connection, rows: Sequence[dict[str, Any]], columns: str) -> dict[str, list[str]]:
    """Add to the rows their `tags`, and the `metrics` and `params` that the list of columns names.

    Returns: The names of all metrics and hyperparameters of these jobs, `{"metrics": […], "params": […]}`.
    """
    wanted = {(column.kind, column.name) for column in parse_list(columns)}
    by_number = {row["number"]: row for row in rows}
    names: dict[str, set[str]] = {METRIC: set(), PARAM: set()}
    for row in rows:
        row |= {"tags": [], "metrics": {}, "params": {}}

    def wants(kind: str, name: str) -> bool:
        names[kind].add(name)
        return columns == ALL or (kind, name) in wanted

    numbers = list(by_number)
    for begin in range(0, len(numbers), _NUMBERS_AT_ONCE):
        part = numbers[begin : begin + _NUMBERS_AT_ONCE]
        where = f"WHERE job IN ({', '.join('?' * len(part))}) ORDER BY job, name"
        for job, name in connection.execute(f"SELECT job, name FROM tag {where}", part):  # noqa: S608 - our own words
            by_number[job]["tags"].append(name)
        metrics = f"SELECT job, name, last, least, most FROM metric {where}"  # noqa: S608
        for job, name, last, least, most in connection.execute(metrics, part):
            if wants(METRIC, name):
                by_number[job]["metrics"][name] = {"last": last, "min": least, "max": most}
        for job, name, text in connection.execute(f"SELECT job, name, text FROM parameter {where}", part):  # noqa: S608
            if wants(PARAM, name):
                by_number[job]["params"][name] = text
    return {"metrics": sorted(names[METRIC]), "params": sorted(names[PARAM])}
