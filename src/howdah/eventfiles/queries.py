"""Answer `curves/…` with JSON values made of what was read. Names of runs and tags are never used as code or paths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from howdah.eventfiles import events, oom_priority
from howdah.eventfiles.errors import Absent, Wrong
from howdah.eventfiles.event_batch import Histogram
from howdah.eventfiles.event_directory import EventDirectory
from howdah.eventfiles.memory_budget import Budget
from howdah.eventfiles.run_store import POINTS, Run, ScalarSeries
from howdah.eventfiles.sampling import Sample, sample
from howdah.storage.factory import filesystem

COLD_S, WARM_S = 12.0, 1.0
"""The longest wait for a directory that was never read, and for one that was; then the answer has what is known."""
MOST_ROOTS, MOST_SERIES = 256, 400
MOST_POINTS = 200_000
"""The points of one answer, which needs 250 bytes for each while it is made."""
MOST_NAMES, MOST_COMMAS = 1000, 50
IMAGE_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)
# TensorBoard's basis points: the standard normal's cumulated shares at -1.5, -1, ... 1.5, and both ends.
PERCENTS = (0.0, 6.68, 15.87, 30.85, 50.0, 69.15, 84.13, 93.32, 100.0)
T = TypeVar("T")
Places = Sequence[tuple[str, str]]
Query = Mapping[str, Sequence[str]]
_ALL: Query = {}


@dataclass(frozen=True)
class Curve:
    """Hold one scalar of one run in few points."""

    run: str
    tag: str
    sample: Sample
    last: tuple[int, float, float] | None
    count: int
    started: float


@dataclass(frozen=True)
class TagHistograms:
    """Hold the histograms of one tag of one run, by step; `started` is the wall time of the first that is kept."""

    run: str
    tag: str
    steps: Sequence[Histogram]
    started: float


class EventDirectories:
    """Keep the event directories that were requested, and drop the least recently used when there are too many."""

    def __init__(self) -> None:
        self._roots: dict[str, EventDirectory] = {}
        self._budget = Budget(self._roots, oom_priority.budget())
        # A service that was started again must not give out a version that it gave before.
        self._base = int(time.time()) * 1000

    def board(self, places: Places) -> JobEventFiles:
        """Return what is in some places, as recent as it can be read at once."""
        roots = [(prefix, self._root(uri)) for prefix, uri in places[:MOST_ROOTS]]
        for _, root in roots:
            root.refresh(0)
        deadline = time.monotonic() + COLD_S
        for _, root in roots:
            root.refresh(min(WARM_S, COLD_S) if root.version else max(0.0, deadline - time.monotonic()))
        self._forget({root.uri for _, root in roots})
        return JobEventFiles(roots, self._base)

    def _root(self, uri: str) -> EventDirectory:
        return self._roots.setdefault(uri, EventDirectory(uri, self._budget.enforce))

    def _forget(self, used: set[str]) -> None:
        for root in sorted(self._roots.values(), key=lambda root: root.used_at):
            if len(self._roots) <= MOST_ROOTS and sum(each.points for each in self._roots.values()) <= POINTS:
                return
            if root.uri not in used:
                self._roots.pop(root.uri, None)


class JobEventFiles:
    """Answer queries about the runs of one job."""

    def __init__(self, roots: Sequence[tuple[str, EventDirectory]], base: int) -> None:
        self.roots = roots
        self.version = base + sum(root.version for _, root in roots)

    def named(self) -> dict[str, tuple[EventDirectory, Run]]:
        """Return all runs by name."""
        found: dict[str, tuple[EventDirectory, Run]] = {}
        for prefix, root in self.roots:
            with root.lock:
                runs = dict(root.runs)
            for folder, run in runs.items():
                name = "/".join(part for part in (prefix, folder if folder != "." else "") if part) or "."
                found.setdefault(name, (root, run))
        return dict(sorted(found.items()))

    def run(self, query: Query) -> tuple[str, EventDirectory, Run]:
        """Return the run that the query names; if there is only one run, the query need not name it."""
        named, wanted = self.named(), _one(query, "run")
        name = wanted if wanted is not None or len(named) != 1 else next(iter(named))
        if name not in named:
            raise Absent(f"no run {name!r}" if name is not None else "say which run: run=NAME")
        return name, *named[name]

    def runs(self, query: Query = _ALL) -> dict[str, Any]:
        """Return all runs with their tags."""
        rows = []
        for name, (root, run) in self.named().items():
            with root.lock:
                tags = {
                    "scalar": _names(run.scalars),
                    "histogram": _names(run.histograms),
                    "image": _names(run.images),
                    "text": _names(run.texts),
                    "hparams": run.session is not None,
                }
                begin, end, steps = run.span()
            rows.append({"run": name, "tags": tags, "from": begin, "to": end, "steps": steps})
        errors = [error for _, root in self.roots for error in root.errors()]
        complete = all(root.complete for _, root in self.roots)
        return {"version": self.version, "runs": rows, "complete": complete, "errors": errors}

    def curves(self, query: Query) -> Iterator[Curve]:
        """Yield the scalars that the query selects by run and tag, by default all."""
        named = self.named()
        runs = _several(query, "run", list(named))
        tags = sorted({tag for name in runs for tag in _names(named[name][1].scalars)})
        wanted = _several(query, "tag", tags)
        there = ((tag, name) for tag in wanted for name in runs if _has(named[name], tag))
        pairs = list(islice(there, MOST_SERIES + 1))
        if len(pairs) > MOST_SERIES:
            raise Wrong(f"more than {MOST_SERIES} curves at once: name fewer by run= and tag=")
        most = min(_number(query, "points", 1000, 4, 100_000), MOST_POINTS // max(1, len(pairs)))
        for tag, name in pairs:
            root, run = named[name]
            with root.lock:
                series = _find(run.scalars, tag)
                found = _curve(name, tag, series, most) if series is not None else None
            if found is not None:
                yield found

    def scalars(self, query: Query) -> dict[str, Any]:
        """Return the points of the scalars that the query selects."""
        series = [
            {
                "run": curve.run,
                "tag": curve.tag,
                "points": curve.sample.points,
                "last": curve.last and [*curve.last[:2], _plain(curve.last[2])],
                "count": curve.count,
                "started": curve.started,
                "nan": curve.sample.nan,
                "infinite": curve.sample.infinite,
                "odd": curve.sample.odd,
            }
            for curve in self.curves(query)
        ]
        return {"version": self.version, "complete": all(root.complete for _, root in self.roots), "series": series}

    def histograms(self, query: Query) -> dict[str, Any]:
        """Return the histograms of one tag of one run, by step."""
        name, tag, found = self._runs_with(query, "histograms")
        steps = [
            {"step": one.step, "time": one.wall, "buckets": _triples([_plain(number) for number in one.buckets])}
            for one in found
        ]
        return {"version": self.version, "run": name, "tag": tag, "steps": steps}

    def distributions(self, query: Query) -> dict[str, Any]:
        """Return the percentiles of the histograms of one tag of one run, by step."""
        name, tag, found = self._runs_with(query, "histograms")
        steps = [{"step": one.step, "time": one.wall, "percentiles": percentiles(one)} for one in found]
        return {"version": self.version, "run": name, "tag": tag, "steps": steps}

    def tag_histograms(self, query: Query) -> TagHistograms:
        """Return the histograms of one tag of one run, as a chart shows them; only one step's if the query names it.

        Raises:
            Absent: there is no such run, tag or step.
        """
        name, tag, found = self._runs_with(query, "histograms", every=True)
        step = _one(query, "step")
        started = found[0].wall if found else 0.0
        if step is None:
            return TagHistograms(name, tag, evenly(found, _number(query, "steps", 50, 1, 1000)), started)
        chosen = [one for one in found if str(one.step) == step]
        if not chosen:
            raise Absent(f"no histogram {tag!r} of run {name!r} at step {step[:40]}")
        return TagHistograms(name, tag, chosen, started)

    def texts(self, query: Query) -> dict[str, Any]:
        """Return the texts of one tag of one run, by step."""
        name, tag, found = self._runs_with(query, "texts")
        texts = [{"step": one.step, "time": one.wall, "text": one.text} for one in found]
        return {"version": self.version, "run": name, "tag": tag, "texts": texts}

    def images(self, query: Query) -> dict[str, Any]:
        """Return which images one tag of one run has, by step."""
        name, tag, found = self._runs_with(query, "images")
        keys = ("step", "time", "width", "height", "count")
        rows = [dict(zip(keys, (one.step, one.wall, one.width, one.height, one.count), strict=True)) for one in found]
        return {"version": self.version, "run": name, "tag": tag, "images": rows}

    def image(self, query: Query) -> tuple[str, bytes]:
        """Return the type and bytes of one image; of the last step if the query names none.

        Raises:
            Absent: there is no such image, or its format is not one that a browser shows without running code in it.
        """
        name, tag, found = self._runs_with(query, "images", every=True)
        step, number = _one(query, "step"), _number(query, "index", 0, 0, 1 << 20)
        chosen = [one for one in found if step is None or str(one.step) == step]
        if not chosen:
            raise Absent(f"no image {tag!r} of run {name!r} at step {step}")
        one = chosen[-1]
        frame = b""
        for piece in filesystem(one.uri).iter_chunks(one.uri, one.offset):
            frame += piece
            if len(frame) >= one.length:
                break
        frame = frame[: one.length]
        body = events.image(frame[12:-4], one.tag, number)
        for mark, kind in IMAGE_TYPES:
            if body.startswith(mark):
                return kind, body
        if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
            return "image/webp", body
        raise Absent(f"image {tag!r} of run {name!r} at step {one.step} is none that can be shown")

    def hparams(self, query: Query) -> dict[str, Any]:
        """Return the hyperparameters of all runs that have some, with the last values of their metrics."""
        rows = []
        for name, (root, run) in self.named().items():
            with root.lock:
                session = run.session
                if session is None:
                    continue
                last = {tag: _last(_find(run.scalars, tag)) for tag in session.metrics or _names(run.scalars)[:50]}
            rows.append(
                {
                    "run": name,
                    "values": {key: _plain(value) for key, value in session.values.items()},
                    "metrics": {tag: value for tag, value in last.items() if value is not None},
                    "group": session.group,
                    "started": session.started,
                    "ended": session.ended,
                    "status": session.status,
                }
            )
        return {"version": self.version, "runs": rows}

    def _runs_with(self, query: Query, kind: str, every: bool = False) -> tuple[str, str, list[Any]]:
        name, root, run = self.run(query)
        held: Mapping[bytes, list[Any]] = getattr(run, kind)
        tag = _one(query, "tag")
        with root.lock:
            tags = _names(held)
            tag = tags[0] if tag is None and len(tags) == 1 else tag
            found = _find(held, tag) if tag is not None else None
            if found is None or tag is None:
                raise Absent(f"run {name!r} has no {kind} {tag!r}" if tag is not None else "say which: tag=NAME")
            return name, tag, list(found) if every else evenly(found, _number(query, "steps", 50, 1, 1000))


def evenly(items: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return [items[-1]]
    return [items[round(number * (len(items) - 1) / (most - 1))] for number in range(most)]


def _has(one: tuple[EventDirectory, Run], tag: str) -> bool:
    with one[0].lock:
        return _find(one[1].scalars, tag) is not None


def _curve(name: str, tag: str, series: ScalarSeries, most: int) -> Curve:
    last = _last_point(series)
    started = series.walls[0] if len(series.walls) else 0.0
    return Curve(name, tag, sample(series.steps, series.walls, series.values, most), last, series.seen, started)


def _last_point(series: ScalarSeries) -> tuple[int, float, float] | None:
    return (series.steps[-1], series.walls[-1], series.values[-1]) if len(series.values) else None


def _last(series: ScalarSeries | None) -> Any:
    return _plain(series.values[-1]) if series is not None and len(series.values) else None


def percentiles(histogram: Histogram) -> list[list[float]]:
    """Return percentiles of a histogram, as if values were evenly spread within each bucket."""
    buckets = _triples(histogram.buckets)
    total = sum(count for _, _, count in buckets)
    if not total > 0:
        return []
    found, below, place = [], 0.0, 0
    for percent in PERCENTS:
        wanted = total * percent / 100
        while place < len(buckets) - 1 and below + buckets[place][2] < wanted:
            below += buckets[place][2]
            place += 1
        left, right, count = buckets[place]
        part = min(1.0, max(0.0, (wanted - below) / count)) if count > 0 else 0.0
        found.append([percent, _plain(left + (right - left) * part)])
    return found


def _triples(numbers: Sequence[Any]) -> list[list[Any]]:
    return [list(numbers[first : first + 3]) for first in range(0, len(numbers) - 2, 3)]


def _plain(value: Any) -> Any:
    """Return a value, or the name of a number that JSON cannot express."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _name(tag: bytes) -> str:
    return tag.decode("utf-8", "backslashreplace")


def _names(tags: Mapping[bytes, object]) -> list[str]:
    return sorted(map(_name, tags))


def _key(among: Mapping[bytes, object], name: str) -> bytes | None:
    """Return the tag with a name; the tag may not be UTF-8."""
    plain = name.encode("utf-8", "replace")
    return plain if plain in among else next((tag for tag in among if _name(tag) == name), None)


def _find(among: Mapping[bytes, T], name: str) -> T | None:
    key = _key(among, name)
    return among[key] if key is not None else None


def _one(query: Query, name: str) -> str | None:
    values = query.get(name)
    return values[-1] if values else None


def _several(query: Query, name: str, there: list[str]) -> list[str]:
    """Return the names that a parameter selects, by default or for `*` all names.

    The parameter may be repeated and may have several names with commas between them. Names may have commas, too: the
    longest existing name counts.
    """
    values = query.get(name)
    if not values or "*" in values:
        return there
    known = set(there)
    return list(dict.fromkeys(name for value in values for name in _named(value, known)))


def _named(value: str, known: set[str]) -> Iterator[str]:
    """Yield the names in a comma-separated list."""
    if value in known:
        yield value
        return
    parts = value.split(",")[:MOST_NAMES]
    most = 1 + min(MOST_COMMAS, max((one.count(",") for one in known), default=0))
    start = 0
    while start < len(parts):
        ends = range(min(len(parts), start + most), start, -1)
        end = next((end for end in ends if ",".join(parts[start:end]) in known), start)
        if end > start:
            yield ",".join(parts[start:end])
        start = max(end, start + 1)


def _number(query: Query, name: str, default: int, least: int, most: int) -> int:
    text = _one(query, name)
    if text is None:
        return default
    if not text.isdigit() or not least <= int(text[:12]) <= most:
        raise Wrong(f"{name}={text[:40]}: a whole number from {least} to {most}")
    return int(text)
