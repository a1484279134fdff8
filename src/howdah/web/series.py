"""What tasks used over time: the lines of a job's `metrics.jsonl`, and the `series` of the API made of them.

A line is a bucket: what was sampled of all tasks from `t` on for `s` seconds, by name and then in the order of the
header's tasks: null, one number if all samples were alike, else [least, mean, most]. Headers come again when a master
takes over; what is no line of ours is passed over. Curves that programs tell of themselves (`howdah.here.metric`) are
answered by the same call, from the view.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from howdah.data import uris
from howdah.data.downsample import Point, downsample, merge, spans
from howdah.data.fs import filesystem
from howdah.spec import TaskId
from howdah.spec.codec import decode
from howdah.spec.values import dataclass
from howdah.spec.view import JobView, TaskView

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
MOST_POINTS, MOST_IN_ALL = 2000, 200_000
LEAST_POINTS = 20
LONGEST_LINE = 64 << 20
_START = re.compile(rb'\{"t":([0-9.]+),')


@dataclass(frozen=True)
class Wish:
    """What is asked for. No `names`: only which there are. `tasks` empty: all."""

    names: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    begin: float = 0.0
    end: float = float("inf")
    points: int = 400

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wish:
        """From the query of `series`.

        Raises:
            ValueError: a number is none.
        """
        tasks = () if query.get("task", "*") in ("", "*") else tuple(query["task"].split(","))
        names = tuple(filter(None, query.get("name", "").split(",")))
        begin, end = float(query.get("from") or 0.0), float(query.get("to") or "inf")
        points = min(max(LEAST_POINTS, int(query.get("points") or 400)), MOST_POINTS)
        return cls(names, tasks, begin, end, points)


def bucket_length(elapsed: float, tasks: int) -> float:
    """Seconds, of a bucket that begins `elapsed` seconds after its job: a file of weeks stays small."""
    return max(10.0, tasks / 20.0, elapsed / 360.0)


def header(begun: float, tasks: Sequence[str]) -> str:
    """The line before buckets of these tasks."""
    return json.dumps({"metrics": 1, "begun": begun, "tasks": list(tasks)}, separators=(",", ":")) + "\n"


def sampled(lines: Iterable[bytes], wish: Wish, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The series of what is sampled, of these tasks."""
    wanted, buckets = [name for name in wish.names if name in UNITS], _buckets(lines, wish)
    if not wanted or not buckets:
        return []
    most = _most(wish, len(wanted) * len(tasks))
    found: Rows = {(task, name): [] for name in wanted for task in tasks}
    end = None if wish.end == float("inf") else wish.end
    for span in spans([bucket.time for bucket in buckets], most, wish.begin or None, end):
        merged: dict[tuple[str, str], list[Point]] = {}
        for bucket in buckets[span]:
            _collect(merged, bucket, wanted, tasks)
        for key, points in merged.items():
            found[key].append(_row(merge(points)))
    return [_series(task, name, rows) for (task, name), rows in found.items() if rows]


def told(view: JobView, wish: Wish, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """The series that programs tell of themselves."""
    named = [name for name in wish.names if name not in UNITS]
    most = _most(wish, len(wish.names) * len(tasks))
    found = []
    for name in named:
        for task in map(TaskId.parse, tasks):
            points = list(_curve(view.tasks[task], name, wish)) if task in view.tasks else []
            if points:
                found.append(_series(str(task), name, [_row(point) for point in downsample(points, most)]))
    return found


def _most(wish: Wish, series: int) -> int:
    return max(LEAST_POINTS, min(wish.points, MOST_IN_ALL // max(1, series)))


def tasks_of(view: JobView, wish: Wish) -> list[str]:
    """Those that are asked for.

    Raises:
        ValueError: one does not exist.
    """
    known = [str(task) for task in view.tasks]
    for task in wish.tasks:
        if task not in known:
            raise ValueError(f"the job has no task {task[:80]!r}")
    return [task for task in known if not wish.tasks or task in wish.tasks]


def names(view: JobView) -> list[dict[str, str]]:
    """What can be asked for: what is sampled of all, and what the programs tell."""
    gpus = any(task.gpus for task in view.tasks.values())
    sampled = [{"name": name, "unit": unit, "kind": "sampled"} for name, unit in UNITS.items()]
    told = sorted({name for task in view.tasks.values() for name in task.curves if name not in UNITS})
    kept = [one for one in sampled if gpus or not one["name"].startswith("gpu")]
    return [*kept, *({"name": name, "unit": "", "kind": "told"} for name in told)]


Rows = dict[tuple[str, str], list[list[float | None]]]


def _series(task: str, name: str, rows: list[list[float | None]]) -> dict[str, Any]:
    return {"task": task, "name": name, "unit": UNITS.get(name, ""), "points": rows}


def _row(point: Point) -> list[float | None]:
    return [round(point.x, 3), *map(_short, point[1:4])]


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


@dataclass(frozen=True)
class _Bucket:
    """A line that has not been parsed yet, and the header's tasks before it."""

    time: float
    line: bytes
    tasks: Sequence[str]


def _buckets(lines: Iterable[bytes], wish: Wish) -> list[_Bucket]:
    found: dict[float, _Bucket] = {}
    tasks: Sequence[str] = ()
    for line in lines:
        if start := _START.match(line):
            time = float(start[1])
            if wish.begin - bucket_length(0, len(tasks)) < time <= wish.end:
                found[time] = _Bucket(time, line, tasks)  # again: the open bucket of a master, which is over by now
        else:
            tasks = _parsed(line).get("tasks") or tasks
    return [found[time] for time in sorted(found)]


def _collect(
    merged: dict[tuple[str, str], list[Point]], bucket: _Bucket, names: Sequence[str], tasks: Collection[str]
) -> None:
    record = _parsed(bucket.line)
    weight = record.get("s", 1.0)
    for name in names:
        column = record.get(name)
        for task, value in zip(bucket.tasks, column if isinstance(column, list) else (), strict=False):
            if task in tasks and value is not None:
                three = value if isinstance(value, list) else [value] * 3
                if len(three) == 3 and all(isinstance(one, (int, float)) for one in three):
                    point = Point(bucket.time, three[0], three[1], three[2], weight)
                    merged.setdefault((task, name), []).append(point)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) and isinstance(record.get("tasks", []), list) else {}


def _curve(task: TaskView, name: str, wish: Wish) -> Iterator[Point]:
    for point in task.curves.get(name, ()):
        if wish.begin <= point.time <= wish.end:
            yield Point(point.time, point.value, point.value, point.value)


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
        yield from lines_of(files.pieces(uri))


def main() -> int:
    """`python -m howdah.web.series`: on stdin {"directory", "wish", "tasks", "unwritten"}, on stdout `sampled`'s JSON.
    Whoever has no memory or time to read weeks of buckets lets this do it."""
    request = json.load(sys.stdin)
    lines = [*read(request["directory"]), *(line.encode() for line in request["unwritten"])]
    json.dump(sampled(lines, decode(Wish, request["wish"]), request["tasks"]), sys.stdout, separators=(",", ":"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
