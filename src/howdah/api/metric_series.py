"""What tasks used over time: the lines of a job's `metrics.jsonl`, and the `series` of the API made of them.

A line is a bucket: what was sampled of all tasks from `t` on for `s` seconds, by name and then in the order of the
header's tasks: null, one number if all samples were alike, else [least, mean, most]. Headers come again when a master
takes over; what is no line of ours is passed over. Curves that programs tell of themselves (`howdah.program.metric`)
are answered by the same call, from the view.

The rule: of weeks of a thousand tasks no more than a line and the answer is in memory, so the file is read twice.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from howdah.api.downsample import SampledPoint, downsample, merge, spans
from howdah.eventfiles.oom_priority import prefer_as_oom_victim
from howdah.spec import TaskId, uris
from howdah.spec.codec import decode
from howdah.spec.values import dataclass
from howdah.spec.view import JobView, TaskView
from howdah.storage.factory import filesystem

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
"""Names of what is sampled. A task's GPUs are each a sample: the least of them tells of an idle one."""
KINDS = ("sampled", "told", "all")
"""Of what can be asked for without naming it."""
MOST_POINTS, MOST_IN_ALL = 2000, 200_000
LEAST_POINTS, FEWEST_POINTS = 20, 2
"""What may be asked for, and what comes of many series at once."""
AT_ONCE = 50_000
"""Points that wait to be merged: those of one span, as a rule."""
LONGEST_LINE = 8 << 20
_START = re.compile(rb'\{"t":([0-9.]+),')


@dataclass(frozen=True)
class SeriesQuery:
    """What is asked for: `names`, and with `told` whatever the programs tell; nothing: only which there are. `tasks`
    empty: all."""

    names: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    begin: float = 0.0
    end: float = float("inf")
    points: int = 400
    program_metrics: bool = False

    @classmethod
    def from_parameters(cls, query: Mapping[str, str]) -> SeriesQuery:
        """From the query of `series`.

        Raises:
            ValueError: a number is none, or there is no such kind.
        """
        kind = query.get("kind", "")
        if kind not in ("", *KINDS):
            raise ValueError(f"kind is {kind[:40]!r}, must be one of {', '.join(KINDS)}")
        tasks = () if query.get("task", "*") in ("", "*") else tuple(query["task"].split(","))
        names = tuple(filter(None, query.get("name", "").split(",")))
        if kind in ("sampled", "all"):
            names = (*UNITS, *(name for name in names if name not in UNITS))
        begin, end = float(query.get("from") or 0.0), float(query.get("to") or "inf")
        points = min(max(LEAST_POINTS, int(query.get("points") or 400)), MOST_POINTS)
        return cls(names, tasks, begin, end, points, kind in ("told", "all"))


def bucket_length(elapsed: float, tasks: int) -> float:
    """Seconds, of a bucket that begins `elapsed` seconds after its job: a file of weeks stays small."""
    return max(10.0, tasks / 20.0, elapsed / 360.0)


def header(begun: float, tasks: Sequence[str]) -> str:
    """The line before buckets of these tasks."""
    return json.dumps({"metrics": 1, "begun": begun, "tasks": list(tasks)}, separators=(",", ":")) + "\n"


def sampled_series(
    read: Callable[[], Iterable[bytes]], query: SeriesQuery, tasks: Sequence[str], unwritten: Sequence[bytes] = ()
) -> list[dict[str, Any]]:
    """The series of what is sampled, of these tasks: of the lines that `read` gives, twice, and then of `unwritten`."""
    wanted = [name for name in query.names if name in UNITS]
    count, chosen = _select_buckets(read(), unwritten, query) if wanted else (0, {})
    times = sorted(chosen)
    most = _max_points(query, len(wanted) * len(tasks))
    end = None if query.end == float("inf") else query.end
    cut = spans(times, most, query.begin or None, end)
    places = {time: place for place, span in enumerate(cut) for time in times[span]}
    found = _Merged([(task, name) for name in wanted for task in tasks])
    known = frozenset(tasks)
    for bucket in _buckets(_numbered(islice(read(), count), unwritten)):
        if chosen.get(bucket.time) == bucket.number:
            found.add(places[bucket.time], _points(bucket, wanted, known))
    return [_series(task, name, rows) for (task, name), rows in found.rows() if rows]


def program_series(view: JobView, query: SeriesQuery, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The series that programs tell of themselves."""
    curves = list(_program_points(view, query, tasks))
    most = _max_points(query, len(curves))
    return [_series(task, name, [_row(point) for point in downsample(points, most)]) for task, name, points in curves]


def _max_points(query: SeriesQuery, series: int) -> int:
    return max(FEWEST_POINTS, min(query.points, MOST_IN_ALL // max(1, series)))


def tasks_of(view: JobView, query: SeriesQuery) -> list[str]:
    """Return the tasks that the query asks for.

    Raises:
        ValueError: one does not exist.
    """
    known = [str(task) for task in view.tasks]
    for task in query.tasks:
        if task not in known:
            raise ValueError(f"the job has no task {task[:80]!r}")
    return [task for task in known if not query.tasks or task in query.tasks]


def available_names(view: JobView) -> list[dict[str, str]]:
    """What can be asked for: what is sampled of all, and what the programs tell."""
    gpus = any(task.usage.gpus for task in view.tasks.values())
    sampled = [{"name": name, "unit": unit, "kind": "sampled"} for name, unit in UNITS.items()]
    told = sorted({name for task in view.tasks.values() for name in task.metrics if name not in UNITS})
    kept = [one for one in sampled if gpus or not one["name"].startswith("gpu")]
    return [*kept, *({"name": name, "unit": "", "kind": "told"} for name in told)]


Rows = dict[tuple[str, str], list[list[float | None]]]


def _series(task: str, name: str, rows: list[list[float | None]]) -> dict[str, Any]:
    return {"task": task, "name": name, "unit": UNITS.get(name, ""), "points": rows}


def _row(point: SampledPoint) -> list[float | None]:
    return [round(point.x, 3), *map(_short, point[1:4])]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


class _Merged:
    """Points of each series, one for each span of time, in which buckets come one after the other."""

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        self._merged: dict[tuple[str, str], dict[int, SampledPoint]] = {key: {} for key in keys}
        self._waiting: dict[tuple[str, str], list[SampledPoint]] = {}
        self._place, self._count = -1, 0

    def add(self, place: int, points: Iterable[tuple[tuple[str, str], SampledPoint]]) -> None:
        """Add the tasks of a bucket that is part of span `place`."""
        if place != self._place or self._count > AT_ONCE:
            self._merge()
            self._place = place
        for key, point in points:
            self._waiting.setdefault(key, []).append(point)
            self._count += 1

    def _merge(self) -> None:
        for key, points in self._waiting.items():
            held = self._merged[key]
            before = [held[self._place]] if self._place in held else []
            held[self._place] = merge([*before, *points])
        self._waiting, self._count = {}, 0

    def rows(self) -> Iterator[tuple[tuple[str, str], list[list[float | None]]]]:
        """What the answer has of each series."""
        self._merge()
        for key, held in self._merged.items():
            yield key, [_row(held[place]) for place in sorted(held)]


@dataclass(frozen=True)
class _Bucket:
    """A line that has not been parsed yet, its number, and the header's tasks before it."""

    number: int
    time: float
    line: bytes
    tasks: Sequence[str]


def _numbered(lines: Iterable[bytes], unwritten: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Negative numbers for those that are not in the file."""
    yield from enumerate(lines)
    for number, line in enumerate(unwritten):
        yield -1 - number, line


def _select_buckets(
    lines: Iterable[bytes], unwritten: Sequence[bytes], query: SeriesQuery
) -> tuple[int, dict[float, int]]:
    """How many lines there are, and by their time the numbers of those that count."""
    found, count = {}, 0
    for bucket in _buckets(_numbered(lines, unwritten)):
        count = max(count, bucket.number + 1)
        if query.begin - bucket_length(0, len(bucket.tasks)) < bucket.time <= query.end:
            found[bucket.time] = bucket.number  # again: the open bucket of a master, which is over by now
    return count, found


def _buckets(lines: Iterable[tuple[int, bytes]]) -> Iterator[_Bucket]:
    tasks: Sequence[str] = ()
    for number, line in lines:
        if start := _START.match(line):
            yield _Bucket(number, float(start[1]), line, tasks)
        else:
            tasks = _parsed(line).get("tasks") or tasks


def _points(
    bucket: _Bucket, names: Sequence[str], tasks: Collection[str]
) -> Iterator[tuple[tuple[str, str], SampledPoint]]:
    record = _parsed(bucket.line)
    weight = record.get("s", 1.0)
    for name in names:
        column = record.get(name)
        for task, value in zip(bucket.tasks, column if isinstance(column, list) else (), strict=False):
            if task in tasks and value is not None:
                three = value if isinstance(value, list) else [value] * 3
                if len(three) == 3 and all(isinstance(one, (int, float)) for one in three):
                    yield (task, name), SampledPoint(bucket.time, three[0], three[1], three[2], weight)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("tasks", []), list) else {}


def _program_points(
    view: JobView, query: SeriesQuery, tasks: Sequence[str]
) -> Iterator[tuple[str, str, list[SampledPoint]]]:
    """Yield each program metric that the query asks for, if it has points: task, name, points."""
    named = frozenset(query.names)
    for task in map(TaskId.parse, tasks):
        known = view.tasks.get(task, TaskView(task))
        for name in sorted(known.metrics):
            wanted = name not in UNITS and (query.program_metrics or name in named)
            points = list(_points_in_range(known, name, query)) if wanted else []
            if points:
                yield str(task), name, points


def _points_in_range(task: TaskView, name: str, query: SeriesQuery) -> Iterator[SampledPoint]:
    for point in task.metrics.get(name, ()):
        if query.begin <= point.time <= query.end:
            yield SampledPoint(point.time, point.value, point.value, point.value)


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a file that comes in pieces; one that has no end yet is left out, one beyond all measure as well."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        rest = rest if len(rest) < LONGEST_LINE else b""


def read(directory: str, conf_dir: str = "") -> Iterator[bytes]:
    """The lines of the job whose directory this is; none when it has no such file.

    Raises:
        StagingError, EngineUnavailable: it can't be read.
    """
    uri = uris.join(directory, FILE)
    files = filesystem(uri, conf_dir)
    if files.exists(uri):
        yield from lines_of(files.iter_chunks(uri))


def main() -> int:
    """`python -m howdah.api.metric_series`: for each line on stdin, {"directory", "conf_dir", "wish", "tasks",
    "unwritten"},
    `sampled`'s JSON on stdout after a line with its length. Whoever has no memory or time to read weeks of buckets
    lets this do it."""
    prefer_as_oom_victim()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        found = json.dumps(_answer(request), separators=(",", ":")).encode()
        sys.stdout.buffer.write(b"%d\n" % len(found))
        sys.stdout.buffer.write(found)
        sys.stdout.buffer.flush()
    return 0


def _answer(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    unwritten = [line.encode() for line in request["unwritten"]]
    query = decode(SeriesQuery, request["wish"])
    return sampled_series(lambda: read(request["directory"], request["conf_dir"]), query, request["tasks"], unwritten)


if __name__ == "__main__":
    sys.exit(main())
