"""Usage of tasks over time: the lines of a job's `metrics.jsonl`, and the API's `series` that are made from them.

A line is a bucket: it holds the samples of all tasks from time `t` on for `s` seconds. For each sampled name it has a
list in the order of the header's tasks: null, one number if all samples were equal, else [least, mean, most]. A master
that takes over writes the header again; a line that is malformed is skipped. Metrics that programs report themselves
(`howdah.program.metric`) are answered by the same call, from the view.

The rule: however many weeks and tasks the file covers, only one line and the answer are in memory; so the file is read
twice.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from howdah.api.downsample import SampledPoint, downsample, drop_non_finite, group_neighbours, merge
from howdah.errors import InvalidRequest
from howdah.eventfiles.oom_priority import prefer_as_oom_victim
from howdah.logs.query import epoch_seconds, whole_number
from howdah.spec import TaskId, uris
from howdah.spec.codec import decode
from howdah.spec.values import dataclass
from howdah.spec.view import JobView, MetricPoint, TaskView
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import find_log

FILE = "metrics.jsonl"
UNITS: Mapping[str, str] = {
    "cpu": "cores",
    "memory_mib": "MiB",
    "progress": "share",
    "read_mib_s": "MiB/s",
    "written_mib_s": "MiB/s",
    "received_mib_s": "MiB/s",
    "sent_mib_s": "MiB/s",
    "gpu": "share",
    "gpu_memory_mib": "MiB",
    "gpu_celsius": "°C",
    "gpu_watts": "W",
}
"""Unit of each sampled name. Each GPU of a task is a sample of its own, so the least value reveals an idle GPU."""
KINDS = ("sampled", "told", "all")
"""Values of the parameter `kind`, which selects names without listing them; `told` are those that programs report."""
MAX_POINTS, MAX_POINTS_TOGETHER = 4000, 200_000
"""The most points of one series, and of all series of an answer together."""
MIN_REQUESTED_POINTS, MIN_POINTS = 20, 2
"""The least number of points that a request may name, and that a series gets when there are very many series."""
MAX_UNMERGED_POINTS = 50_000
"""Points that are collected before they are merged: usually those of one span."""
MAX_LINE = 8 << 20
"""Bytes after which a line is skipped."""
_START = re.compile(rb'\{"t":([0-9.]+),')


@dataclass(frozen=True)
class SeriesQuery:
    """Selects series; without names and program metrics an answer only lists the names that exist."""

    names: tuple[str, ...] = ()
    """Names of series, sampled or reported."""
    tasks: tuple[str, ...] = ()
    """The tasks; () stands for all."""
    begin: float = 0.0
    """Time of the first point, in epoch seconds; a negative number counts from the newest time (`relative_to`)."""
    end: float = float("inf")
    """Time of the last point; as `begin`."""
    points: int = 400
    """The most points of each series."""
    program_metrics: bool = False
    """All metrics that programs report are wanted, too."""

    @classmethod
    def from_parameters(cls, query: Mapping[str, str]) -> SeriesQuery:
        """Return the query that the parameters of a `series` call describe.

        Raises:
            InvalidRequest: a number is malformed, or the kind does not exist.
        """
        kind = query.get("kind", "")
        if kind not in ("", *KINDS):
            raise InvalidRequest(f"kind is {kind[:40]!r}, must be one of {', '.join(KINDS)}", "kind")
        tasks = () if query.get("task", "*") in ("", "*") else tuple(query["task"].split(","))
        names = tuple(filter(None, query.get("name", "").split(",")))
        if kind in ("sampled", "all"):
            names = (*UNITS, *(name for name in names if name not in UNITS))
        begin, end = epoch_seconds(query, "from", 0.0), epoch_seconds(query, "to", math.inf)
        points = min(max(MIN_REQUESTED_POINTS, whole_number(query, "points", 400)), MAX_POINTS)
        return cls(names, tasks, begin, end, points, kind in ("told", "all"))

    def relative_to(self, newest: float) -> SeriesQuery:
        """Return the query in which negative times are counted back from `newest`, in epoch seconds."""
        begin = max(0.0, newest + self.begin) if self.begin < 0 else self.begin
        end = newest + self.end if self.end < 0 else self.end
        return replace(self, begin=begin, end=end)


def bucket_length(elapsed: float, tasks: int) -> float:
    """Return the seconds of a bucket that begins `elapsed` seconds after its job. Buckets grow with the job's age, so
    that the file of a job of weeks stays small."""
    return max(10.0, tasks / 20.0, elapsed / 360.0)


def header(begun: float, tasks: Sequence[str]) -> str:
    """Return the line that stands before the buckets of these tasks."""
    return json.dumps({"metrics": 1, "begun": begun, "tasks": list(tasks)}, separators=(",", ":")) + "\n"


def sampled_series(
    read: Callable[[], Iterable[bytes]], query: SeriesQuery, tasks: Sequence[str], unwritten: Sequence[bytes] = ()
) -> list[dict[str, Any]]:
    """Return the sampled series of these tasks, from the lines that `read` yields (it is called twice) and then from
    the `unwritten` lines."""
    wanted = [name for name in query.names if name in UNITS]
    count, chosen = _select_buckets(read(), unwritten, query) if wanted else (0, {})
    times = sorted(chosen)
    max_points = _max_points(query, len(wanted) * len(tasks))
    end = None if query.end == float("inf") else query.end
    slices = group_neighbours(times, max_points, query.begin or None, end)
    span_of = {time: number for number, span in enumerate(slices) for time in times[span]}
    merger = _SpanMerger([(task, name) for name in wanted for task in tasks])
    known = frozenset(tasks)
    for bucket in _buckets(_numbered_lines(islice(read(), count), unwritten)):
        if chosen.get(bucket.time) == bucket.number:
            merger.add(span_of[bucket.time], _points(bucket, wanted, known))
    return [_describe_series(task, name, rows) for (task, name), rows in merger.rows() if rows]


@dataclass(frozen=True)
class ProgramMetric:
    """The points of a metric that a task's program reports."""

    task: str
    name: str
    points: Sequence[MetricPoint]


def program_metrics(view: JobView, query: SeriesQuery, tasks: Sequence[str]) -> list[ProgramMetric]:
    """Return copies of the program metrics that the query names: the view goes on while series are made of them."""
    named = frozenset(query.names)
    found = []
    for task in map(TaskId.parse, tasks):
        known = view.tasks.get(task, TaskView(task))
        for name in sorted(known.metrics):
            if name not in UNITS and (query.program_metrics or name in named):
                found.append(ProgramMetric(str(task), name, known.metrics[name].copy()))
    return found


def program_series(metrics: Iterable[ProgramMetric], query: SeriesQuery) -> list[dict[str, Any]]:
    """Return the series that programs report, of those metrics that have points in the query's time."""
    in_time = [
        (metric, [point for point in metric.points if query.begin <= point.time <= query.end]) for metric in metrics
    ]
    shown = [(metric, points) for metric, points in in_time if points]
    max_points = _max_points(query, len(shown))
    return [_describe_program_metric(metric, points, max_points) for metric, points in shown]


def _describe_program_metric(metric: ProgramMetric, points: Sequence[MetricPoint], max_points: int) -> dict[str, Any]:
    sampled = [SampledPoint(point.time, point.value, point.value, point.value) for point in points]
    if len(points) <= max_points:
        rows, steps = [_row(drop_non_finite(point)) for point in sampled], [point.step for point in points]
    else:
        step_at = {point.time: point.step for point in points}
        kept = downsample(sampled, max_points)  # each begins at the time of a point that was reported
        rows, steps = [_row(point) for point in kept], [step_at[point.x] for point in kept]
    return _describe_series(metric.task, metric.name, rows, steps)


def _max_points(query: SeriesQuery, series: int) -> int:
    return max(MIN_POINTS, min(query.points, MAX_POINTS_TOGETHER // max(1, series)))


def tasks_of(view: JobView, query: SeriesQuery) -> list[str]:
    """Return the tasks that the query asks for.

    Raises:
        InvalidRequest: a task does not exist.
    """
    known = [str(task) for task in view.tasks]
    for task in query.tasks:
        if task not in known:
            raise InvalidRequest(f"the job has no task {task[:80]!r}", "task")
    return [task for task in known if not query.tasks or task in query.tasks]


def available_names(view: JobView) -> list[dict[str, str]]:
    """Return the names that a query can have: those that are sampled of all tasks, and those that programs report."""
    gpus = any(task.usage.gpus for task in view.tasks.values())
    sampled = [(name, unit, "sampled") for name, unit in UNITS.items() if gpus or not name.startswith("gpu")]
    reported = sorted({name for task in view.tasks.values() for name in task.metrics if name not in UNITS})
    rows = [*sampled, *((name, "", "told") for name in reported)]
    return [{"name": name, "unit": unit, "kind": kind} for name, unit, kind in rows]


def _describe_series(
    task: str, name: str, rows: list[list[float | None]], steps: Sequence[int | None] = ()
) -> dict[str, Any]:
    return {"task": task, "name": name, "unit": UNITS.get(name, ""), "points": rows, "steps": list(steps)}


def _row(point: SampledPoint) -> list[float | None]:
    return [round(point.x, 3), *map(_round, point[1:4])]


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


class _SpanMerger:
    """Merges the points of each series into one point for each span of time. Buckets are added in order of time."""

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        self._merged: dict[tuple[str, str], dict[int, SampledPoint]] = {key: {} for key in keys}
        self._collected: dict[tuple[str, str], list[SampledPoint]] = {}
        self._span, self._count = -1, 0

    def add(self, span: int, points: Iterable[tuple[tuple[str, str], SampledPoint]]) -> None:
        """Add the points of a bucket that lies in the span of this number."""
        if span != self._span or self._count > MAX_UNMERGED_POINTS:
            self._merge()
            self._span = span
        for key, point in points:
            self._collected.setdefault(key, []).append(point)
            self._count += 1

    def _merge(self) -> None:
        for key, points in self._collected.items():
            merged = self._merged[key]
            before = [merged[self._span]] if self._span in merged else []
            merged[self._span] = merge([*before, *points])
        self._collected, self._count = {}, 0

    def rows(self) -> Iterator[tuple[tuple[str, str], list[list[float | None]]]]:
        """Yield each series as the answer has it."""
        self._merge()
        for key, merged in self._merged.items():
            yield key, [_row(merged[span]) for span in sorted(merged)]


@dataclass(frozen=True)
class _Bucket:
    """Holds a line that has not been parsed yet, its number, and the tasks of the header before it."""

    number: int
    time: float
    line: bytes
    tasks: Sequence[str]


def _numbered_lines(lines: Iterable[bytes], unwritten: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of the file with their numbers, and the unwritten lines with negative numbers."""
    yield from enumerate(lines)
    for number, line in enumerate(unwritten):
        yield -1 - number, line


def _select_buckets(
    lines: Iterable[bytes], unwritten: Sequence[bytes], query: SeriesQuery
) -> tuple[int, dict[float, int]]:
    """Return the number of lines, and for each time in the query's range the number of the line that counts."""
    found, count = {}, 0
    for bucket in _buckets(_numbered_lines(lines, unwritten)):
        count = max(count, bucket.number + 1)
        if query.begin - bucket_length(0, len(bucket.tasks)) < bucket.time <= query.end:
            found[bucket.time] = bucket.number  # the last line of a time counts: the line before was an open bucket
    return count, found


def _buckets(lines: Iterable[tuple[int, bytes]]) -> Iterator[_Bucket]:
    tasks: Sequence[str] = ()
    for number, line in lines:
        if start := _START.match(line):
            yield _Bucket(number, float(start[1]), line, tasks)
        else:
            tasks = _parse_line(line).get("tasks") or tasks


def _points(
    bucket: _Bucket, names: Sequence[str], tasks: Collection[str]
) -> Iterator[tuple[tuple[str, str], SampledPoint]]:
    record = _parse_line(bucket.line)
    weight = record.get("s", 1.0)
    for name in names:
        column = record.get(name)
        for task, value in zip(bucket.tasks, column if isinstance(column, list) else (), strict=False):
            if task in tasks and value is not None:
                three = value if isinstance(value, list) else [value] * 3
                if len(three) == 3 and all(isinstance(number, (int, float)) for number in three):
                    yield (task, name), SampledPoint(bucket.time, three[0], three[1], three[2], weight)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("tasks", []), list) else {}


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file that comes in pieces. A last line without a line end is left out, and so are lines that
    are too long."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        rest = rest if len(rest) < MAX_LINE else b""


def read(directory: str, conf_dir: str = "") -> Iterator[bytes]:
    """Yield the lines of `metrics.jsonl` in a job's directory; nothing when there is no such file.

    Raises:
        StagingError, EngineUnavailable: the file can't be read.
    """
    uri = uris.join(directory, FILE)
    log = find_log(filesystem(uri, conf_dir), uri)
    if log is not None:
        yield from lines_of(log.iter_chunks())


@dataclass(frozen=True)
class SampledSeriesRequest:
    """Read the sampled series of a job."""

    directory: str
    """URI of the job's directory."""
    conf_dir: str
    """The Hadoop configuration that reads the directory; "" stands for the usual one."""
    query: SeriesQuery
    """The series that are wanted."""
    tasks: tuple[str, ...]
    """The tasks that are wanted."""
    unwritten: tuple[str, ...] = ()
    """Lines that are not in the file yet."""


def main() -> int:
    """Answer requests (`python -m howdah.api.metric_series`): a `SampledSeriesRequest` in each line of stdin; for each
    a line with the length of the answer on stdout, and the answer, which is JSON.

    A master has neither memory nor time to read weeks of buckets, so this process reads them. Unlike a
    helper of `howdah.wire.helper_main`, it serves many requests, because starting takes longer than most answers; and
    an answer of megabytes is passed on as it is, without being parsed.
    """
    prefer_as_oom_victim()
    for line in sys.stdin.buffer:
        request = decode(SampledSeriesRequest, json.loads(line))
        unwritten = [each.encode() for each in request.unwritten]
        lines = functools.partial(read, request.directory, request.conf_dir)
        series = sampled_series(lines, request.query, request.tasks, unwritten)
        answer = json.dumps(series, separators=(",", ":")).encode()
        sys.stdout.buffer.write(b"%d\n%b" % (len(answer), answer))
        sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
