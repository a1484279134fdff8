"""Answers `curves/…` with JSON from event files. Names of runs and tags are never used as code or paths."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from howdah.errors import InvalidRequest, NotFound
from howdah.eventfiles import events
from howdah.eventfiles.event_batch import Histogram, Media
from howdah.eventfiles.event_directory import EventDirectory
from howdah.eventfiles.run_store import Run, ScalarSeries
from howdah.eventfiles.sampling import Sample, evenly_spread, number_name, sample
from howdah.spec.values import dataclass
from howdah.storage.files_of_owner import files_of

MAX_CURVES = 400
MAX_POINTS = 200_000
"""The most points of one answer, which needs 250 bytes for each while it is made."""
MAX_NAMES, MAX_COMMAS = 1000, 50
IMAGE_TYPES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"RIFF....WEBP", "image/webp"),
)
AUDIO_TYPES = (
    (b"RIFF....WAVE", "audio/wav"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
)
"""The first bytes of images and audio clips, by type; a dot is any byte."""
# TensorBoard's basis points: the standard normal's cumulated shares at -1.5, -1, ... 1.5, and both ends.
PERCENTS = (0.0, 6.68, 15.87, 30.85, 50.0, 69.15, 84.13, 93.32, 100.0)
T = TypeVar("T")
Query = Mapping[str, Sequence[str]]
_ALL: Query = {}


@dataclass(frozen=True)
class Curve:
    """Holds one scalar of one run in few points."""

    run: str
    tag: str
    sample: Sample
    last: tuple[int, float, float] | None
    """Step, wall time and value of the last point."""
    count: int
    """How many points were read."""
    started: float
    """The wall time of the first point."""


@dataclass(frozen=True)
class TagHistograms:
    """Holds the histograms of one tag of one run."""

    run: str
    tag: str
    steps: Sequence[Histogram]
    """The histograms by step."""
    started: float
    """The wall time of the first histogram that is kept."""


@dataclass(frozen=True)
class ContentKind:
    """The way in which the images, or the audio clips, of event files are found."""

    values: str
    """The attribute of a run that has them."""
    noun: str
    done: str
    """The participle for what a browser does with one."""
    content_of: Callable[[bytes, bytes, int], bytes]
    types: Sequence[tuple[bytes, str]]


class JobEventFiles:
    """Answers queries about the runs of one job."""

    def __init__(self, directories: Sequence[tuple[str, EventDirectory]], first_version: int) -> None:
        self._directories = directories
        self.version = first_version + sum(directory.version for _, directory in directories)

    @property
    def complete(self) -> bool:
        """Return whether all files were read."""
        return all(directory.complete for _, directory in self._directories)

    def runs_by_name(self) -> dict[str, tuple[EventDirectory, Run]]:
        """Return all runs by name."""
        found: dict[str, tuple[EventDirectory, Run]] = {}
        for prefix, directory in self._directories:
            with directory.lock:
                runs = dict(directory.runs)
            for path, run in runs.items():
                name = "/".join(part for part in (prefix, path if path != "." else "") if part) or "."
                found.setdefault(name, (directory, run))
        return dict(sorted(found.items()))

    def runs(self, query: Query = _ALL) -> dict[str, Any]:
        """Return all runs with their tags."""
        rows = []
        for name, (directory, run) in self.runs_by_name().items():
            with directory.lock:
                tags = {
                    "scalar": _names(run.scalars),
                    "histogram": _names(run.histograms),
                    "image": _names(run.images),
                    "audio": _names(run.audio),
                    "pr_curve": _names(run.pr_curves),
                    "text": _names(run.texts),
                    "hparams": run.session is not None,
                }
                begin, end, steps = run.span()
            rows.append({"run": name, "tags": tags, "from": begin, "to": end, "steps": steps})
        errors = [error for _, directory in self._directories for error in directory.errors()]
        return {"version": self.version, "runs": rows, "complete": self.complete, "errors": errors}

    def curves(self, query: Query) -> Iterator[Curve]:
        """Yield the scalars that the query selects by run and tag, by default all."""
        all_runs = self.runs_by_name()
        names = _select_names(query, "run", list(all_runs))
        tags = _select_names(query, "tag", sorted({tag for name in names for tag in _names(all_runs[name][1].scalars)}))
        existing = ((tag, name) for tag in tags for name in names if _has_scalar(*all_runs[name], tag))
        pairs = list(islice(existing, MAX_CURVES + 1))
        if len(pairs) > MAX_CURVES:
            raise InvalidRequest(f"more than {MAX_CURVES} curves at once: name fewer by run= and tag=")
        max_points = min(_number(query, "points", 1000, 4, 100_000), MAX_POINTS // max(1, len(pairs)))
        for tag, name in pairs:
            directory, run = all_runs[name]
            with directory.lock:
                series = _find(run.scalars, tag)
                found = _curve(name, tag, series, max_points) if series is not None else None
            if found is not None:
                yield found

    def scalars(self, query: Query) -> dict[str, Any]:
        """Return the points of the scalars that the query selects."""
        series = [
            {
                "run": curve.run,
                "tag": curve.tag,
                "points": curve.sample.points,
                "last": curve.last and [*curve.last[:2], _json_number(curve.last[2])],
                "count": curve.count,
                "started": curve.started,
                "nan": curve.sample.nan,
                "infinite": curve.sample.infinite,
                "odd": curve.sample.non_finite,
            }
            for curve in self.curves(query)
        ]
        return {"version": self.version, "complete": self.complete, "series": series}

    def histograms(self, query: Query) -> dict[str, Any]:
        """Return the histograms of one tag of one run, by step."""
        return self._by_step(
            query,
            "histograms",
            "steps",
            lambda each: {"buckets": _group_by_three([_json_number(edge) for edge in each.buckets])},
        )

    def distributions(self, query: Query) -> dict[str, Any]:
        """Return the percentiles of the histograms of one tag of one run, by step."""
        return self._by_step(query, "histograms", "steps", lambda each: {"percentiles": percentiles(each)})

    def tag_histograms(self, query: Query) -> TagHistograms:
        """Return the histograms of one tag of one run, as a chart shows them; only one step's if the query names it.

        Raises:
            NotFound: there is no such run, tag or step.
        """
        name, tag, found = self._values_of_tag(query, "histograms", every=True)
        step = _last_value(query, "step")
        started = found[0].wall if found else 0.0
        if step is None:
            return TagHistograms(name, tag, evenly_spread(found, _number(query, "steps", 50, 1, 1000)), started)
        chosen = [each for each in found if str(each.step) == step]
        if not chosen:
            raise NotFound(f"no histogram {tag!r} of run {name!r} at step {step[:40]}")
        return TagHistograms(name, tag, chosen, started)

    def texts(self, query: Query) -> dict[str, Any]:
        """Return the texts of one tag of one run, by step."""
        return self._by_step(query, "texts", "texts", lambda each: {"text": each.text})

    def images(self, query: Query) -> dict[str, Any]:
        """Return which images one tag of one run has, by step."""
        return self._by_step(
            query, "images", "images", lambda each: {"width": each.width, "height": each.height, "count": each.count}
        )

    def image(self, query: Query) -> tuple[str, bytes]:
        """Return the type and bytes of one image; of the last step if the query names none.

        Raises:
            NotFound: there is no such image, or its format is not one that a browser shows without running code in it.
        """
        return self._content(query, ContentKind("images", "image", "shown", events.image, IMAGE_TYPES))

    def audio(self, query: Query) -> dict[str, Any]:
        """Return which audio clips one tag of one run has, by step."""
        return self._by_step(query, "audio", "steps", lambda each: {"count": each.count})

    def audio_clip(self, query: Query) -> tuple[str, bytes]:
        """Return the type and bytes of one audio clip; of the last step if the query names none.

        Raises:
            NotFound: there is no such clip, or browsers do not play its format.
        """
        return self._content(query, ContentKind("audio", "audio clip", "played", events.audio_clip, AUDIO_TYPES))

    def pr_curves(self, query: Query) -> dict[str, Any]:
        """Return the curves of precision and recall of one tag of one run, by step."""
        return self._by_step(
            query,
            "pr_curves",
            "steps",
            lambda each: {"points": _group_by_three([_json_number(number) for number in each.points])},
        )

    def hparams(self, query: Query) -> dict[str, Any]:
        """Return the hyperparameters of all runs that have some, with the last values of their metrics."""
        rows = []
        for name, (directory, run) in self.runs_by_name().items():
            with directory.lock:
                session = run.session
                if session is None:
                    continue
                series = {tag: _find(run.scalars, tag) for tag in session.metrics or _names(run.scalars)[:50]}
                metrics = {tag: _json_number(each.values[-1]) for tag, each in series.items() if each and each.values}
            rows.append(
                {
                    "run": name,
                    "values": {key: _json_number(value) for key, value in session.values.items()},
                    "metrics": metrics,
                    "group": session.group,
                    "started": session.started,
                    "ended": session.ended,
                    "status": session.status,
                }
            )
        return {"version": self.version, "runs": rows}

    def _by_step(self, query: Query, kind: str, key: str, fields: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return an answer with a row for each value of one tag of one run."""
        name, tag, found = self._values_of_tag(query, kind)
        rows = [{"step": each.step, "time": each.wall, **fields(each)} for each in found]
        return {"version": self.version, "run": name, "tag": tag, key: rows}

    def _content(self, query: Query, kind: ContentKind) -> tuple[str, bytes]:
        """Return the type and bytes of the image or audio clip that the query selects, by step and index."""
        name, tag, found = self._values_of_tag(query, kind.values, every=True)
        step, number = _last_value(query, "step"), _number(query, "index", 0, 0, 1 << 20)
        chosen: list[Media] = [each for each in found if step is None or str(each.step) == step]
        if not chosen:
            raise NotFound(f"no {kind.noun} {tag!r} of run {name!r} at step {step}")
        media = chosen[-1]
        if number >= media.count:
            raise NotFound(f"{kind.noun} {tag!r} of run {name!r} has {media.count} at step {media.step}, no {number}")
        frame = b""
        owner = self.runs_by_name()[name][0].owner
        for piece in files_of(owner, media.uri).iter_chunks(media.uri, media.offset):
            frame += piece
            if len(frame) >= media.length:
                break
        body = kind.content_of(frame[: media.length][12:-4], media.tag, number)
        for beginning, type_ in kind.types:
            if re.match(re.escape(beginning).replace(rb"\.", b"."), body, re.S):
                return type_, body
        raise NotFound(f"{kind.noun} {tag!r} of run {name!r} at step {media.step} can't be {kind.done}")

    def _values_of_tag(self, query: Query, kind: str, every: bool = False) -> tuple[str, str, list[Any]]:
        """Return the run and the tag that the query names, and the tag's values. A name may be missing in the query if
        only one exists."""
        all_runs = self.runs_by_name()
        name = _last_value(query, "run")
        if name is None and len(all_runs) == 1:
            (name,) = all_runs
        if name is None or name not in all_runs:
            raise NotFound(f"no run {name!r}" if name is not None else "say which run: run=NAME")
        directory, run = all_runs[name]
        values: Mapping[bytes, list[Any]] = getattr(run, kind)
        tag = _last_value(query, "tag")
        with directory.lock:
            tags = _names(values)
            tag = tags[0] if tag is None and len(tags) == 1 else tag
            found = _find(values, tag) if tag is not None else None
            if found is None or tag is None:
                raise NotFound(f"run {name!r} has no {kind} {tag!r}" if tag is not None else "say which: tag=NAME")
            return name, tag, list(found) if every else evenly_spread(found, _number(query, "steps", 50, 1, 1000))


def _has_scalar(directory: EventDirectory, run: Run, tag: str) -> bool:
    with directory.lock:
        return _find(run.scalars, tag) is not None


def _curve(name: str, tag: str, series: ScalarSeries, max_points: int) -> Curve:
    steps, walls, values = series.steps, series.walls, series.values
    last = (steps[-1], walls[-1], values[-1]) if values else None
    return Curve(name, tag, sample(steps, walls, values, max_points), last, series.seen, walls[0] if walls else 0.0)


def percentiles(histogram: Histogram) -> list[list[float]]:
    """Return percentiles of a histogram, as if values were evenly spread within each bucket."""
    buckets = _group_by_three(histogram.buckets)
    total = sum(count for _, _, count in buckets)
    if not total > 0:
        return []
    found, below, index = [], 0.0, 0
    for percent in PERCENTS:
        wanted = total * percent / 100
        while index < len(buckets) - 1 and below + buckets[index][2] < wanted:
            below += buckets[index][2]
            index += 1
        left, right, count = buckets[index]
        part = min(1.0, max(0.0, (wanted - below) / count)) if count > 0 else 0.0
        found.append([percent, _json_number(left + (right - left) * part)])
    return found


def _group_by_three(numbers: Sequence[Any]) -> list[list[Any]]:
    return [list(numbers[first : first + 3]) for first in range(0, len(numbers) - 2, 3)]


def _json_number(value: Any) -> Any:
    """Return a value, or the name of a number that JSON cannot express."""
    return number_name(value) if isinstance(value, float) and not math.isfinite(value) else value


def _name(tag: bytes) -> str:
    return tag.decode("utf-8", "backslashreplace")


def _names(tags: Mapping[bytes, object]) -> list[str]:
    return sorted(map(_name, tags))


def _find(values: Mapping[bytes, T], name: str) -> T | None:
    """Return the value of the tag with a name; the tag may not be UTF-8."""
    plain = name.encode("utf-8", "replace")
    if plain in values:
        return values[plain]
    return next((value for tag, value in values.items() if _name(tag) == name), None)


def _last_value(query: Query, name: str) -> str | None:
    values = query.get(name)
    return values[-1] if values else None


def _select_names(query: Query, name: str, existing: list[str]) -> list[str]:
    """Return the names that a parameter selects, by default or for `*` all names.

    The parameter may be repeated and may have several names with commas between them. Names may have commas, too: the
    longest existing name counts.
    """
    values = query.get(name)
    if not values or "*" in values:
        return existing
    known = set(existing)
    return list(dict.fromkeys(name for value in values for name in _split_names(value, known)))


def _split_names(value: str, known: set[str]) -> Iterator[str]:
    """Yield the known names in a comma-separated list."""
    if value in known:
        yield value
        return
    parts = value.split(",")[:MAX_NAMES]
    max_parts = 1 + min(MAX_COMMAS, max((name.count(",") for name in known), default=0))
    start = 0
    while start < len(parts):
        ends = range(min(len(parts), start + max_parts), start, -1)
        end = next((end for end in ends if ",".join(parts[start:end]) in known), start)
        if end > start:
            yield ",".join(parts[start:end])
        start = max(end, start + 1)


def _number(query: Query, name: str, default: int, minimum: int, maximum: int) -> int:
    text = _last_value(query, name)
    if text is None:
        return default
    if not text.isdigit() or not minimum <= int(text[:12]) <= maximum:
        raise InvalidRequest(f"{name}={text[:40]}: a whole number from {minimum} to {maximum}")
    return int(text)
