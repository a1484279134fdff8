"""Keep what was read of each run: columns of scalars, and a bounded number of histograms, images and texts.

A program that restarts from an earlier step invalidates the later steps. TensorBoard learns this from a START in the
file; here a later file that begins after the one before has ended says it, too.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import le
from typing import Any, TypeVar

from howdah.eventfiles.event_batch import Batch, Histogram, HyperparameterSession, Image, Points, TextValue
from howdah.eventfiles.sampling import kept_when_halved

POINTS = int(os.environ.get("HOWDAH_CURVES_POINTS", "") or 8_000_000)
"""The points kept in memory, of all scalars together: 24 bytes each."""
MOST_OF_ONE, FEWEST_OF_ONE = 1 << 20, 2_000
MOST_TAGS = 20_000
"""The scalars of one run that are kept."""
MOST_HISTOGRAMS, MOST_IMAGES, MOST_TEXTS = 200, 100, 100
LEFT_OF_ONE, LEFT_OF_OTHERS = 64, 4
"""The points of a tag, and the histograms, images or texts of a tag, that are kept however little memory there is."""
POINT, TAG, OTHER = 24, 800, 400
"""The bytes of a point; of a tag without its points; of a histogram, image or text without its content."""
T = TypeVar("T", Histogram, Image, TextValue)


@dataclass
class ScalarSeries:
    """Keep the points of one scalar."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    walls: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    seen: int = 0
    """How many points were read, whether they are still kept or not."""
    source: str = ""
    """The file of the last point."""

    def extend(self, points: Points, source: str) -> None:
        """Add points of file `source` in the order of the file."""
        if source != self.source and len(self.steps) and len(points.steps):
            starts_again = points.steps[0] <= self.steps[-1] and points.walls[0] >= self.walls[-1]
            if starts_again:
                self.cut(points.steps[0])
        self.source = source
        self.steps += points.steps
        self.walls += points.walls
        self.values += points.values
        self.seen += len(points.steps)

    def cut(self, step: int) -> None:
        """Remove the points from `step` on."""
        if all(map(le, self.steps, self.steps[1:])):
            kept: Any = slice(bisect_left(self.steps, step))
            self._keep(self.steps[kept], self.walls[kept], self.values[kept])
        else:
            self._pick([number for number, own in enumerate(self.steps) if own < step])

    def thin(self) -> None:
        """Keep half of the points, the extremes among them."""
        self._pick(kept_when_halved(self.values))

    def _pick(self, numbers: list[int]) -> None:
        self._keep(
            array("q", [self.steps[number] for number in numbers]),
            array("d", [self.walls[number] for number in numbers]),
            array("d", [self.values[number] for number in numbers]),
        )

    def _keep(self, steps: array[int], walls: array[float], values: array[float]) -> None:
        self.steps, self.walls, self.values = steps, walls, values


class Run:
    """Keep all that was read of one directory; `size` is about its bytes. The caller must lock it against readers while
    a batch is added."""

    def __init__(self) -> None:
        self._halvings, self._full = 0, False
        self.clear()

    def clear(self) -> None:
        """Remove everything."""
        self.scalars: dict[bytes, ScalarSeries] = {}
        self.histograms: dict[bytes, list[Histogram]] = {}
        self.images: dict[bytes, list[Image]] = {}
        self.texts: dict[bytes, list[TextValue]] = {}
        self.session: HyperparameterSession | None = None
        self.kinds: dict[bytes, bytes] = {}
        self.left_out = 0
        self.size = 0

    def add(self, batch: Batch, share: int, halvings: int = 0, full: bool = False) -> None:
        """Add what a stretch of a file says.

        Each scalar may keep `share` points; this and the number of all else are halved `halvings` times to save memory.
        If `full`, new tags are left out.
        """
        self.kinds.update(batch.kinds)
        self._halvings, self._full = halvings, full
        begun = 0
        for at, step in [*sorted(batch.restarts), (-1, 0)]:
            for tag, points in batch.scalars.items():
                part, begun_at = points, begun
                if batch.restarts:
                    first = bisect_left(points.ats, begun_at)
                    last = bisect_left(points.ats, at) if at >= 0 else len(points.ats)
                    part = Points([], points.steps[first:last], points.walls[first:last], points.values[first:last])
                self._scalar(tag, part, batch.uri, share)
            if at >= 0:
                self._cut(step)
            begun = at
        for tag, histogram in batch.histograms:
            self._add(self.histograms, tag, histogram, MOST_HISTOGRAMS)
        for tag, image in batch.images:
            self._add(self.images, tag, image, MOST_IMAGES)
        for tag, text in batch.texts:
            self._add(self.texts, tag, text, MOST_TEXTS)
        for session in batch.sessions:
            self._join(session)

    def _scalar(self, tag: bytes, points: Points, source: str, share: int) -> None:
        if tag not in self.scalars:
            if self._full or len(self.scalars) >= MOST_TAGS or not len(points.steps):
                self.left_out += len(points.steps)
                return
            self.scalars[tag] = ScalarSeries()
            self.size += TAG
        series = self.scalars[tag]
        before = len(series.values)
        series.extend(points, source)
        most = max(LEFT_OF_ONE, max(share, FEWEST_OF_ONE) >> self._halvings)
        while len(series.values) > most:
            series.thin()
        self.size += POINT * (len(series.values) - before)

    def _cut(self, step: int) -> None:
        for series in self.scalars.values():
            before = len(series.values)
            series.cut(step)
            self.size += POINT * (len(series.values) - before)

    def halve(self) -> None:
        """Keep half of each tag's points, histograms, images and texts, unless only few are left."""
        for series in self.scalars.values():
            if (before := len(series.values)) > LEFT_OF_ONE:
                series.thin()
                self.size += POINT * (len(series.values) - before)
        for among in (self.histograms, self.images, self.texts):
            for held in among.values():
                if len(held) > LEFT_OF_OTHERS:
                    self._drop(held)

    def _drop(self, held: list[Any]) -> None:
        self.size -= sum(map(_bytes, held[1:-1:2]))
        del held[1:-1:2]

    def _add(self, among: dict[bytes, list[T]], tag: bytes, one: T, most: int) -> None:
        if tag not in among:
            if self._full or len(among) >= MOST_TAGS // 10:
                self.left_out += 1
                return
            among[tag] = []
            self.size += TAG
        held = among[tag]
        held.append(one)
        self.size += _bytes(one)
        if len(held) > max(LEFT_OF_OTHERS, most >> self._halvings):
            self._drop(held)

    def _join(self, session: HyperparameterSession) -> None:
        held = self.session = self.session or HyperparameterSession()
        held.values.update(session.values)
        held.metrics = [*held.metrics, *(name for name in session.metrics if name not in held.metrics)]
        held.group, held.status = session.group or held.group, session.status or held.status
        held.started, held.ended = session.started or held.started, session.ended or held.ended

    @property
    def points(self) -> int:
        """Return how many points are in memory."""
        return sum(len(series.values) for series in self.scalars.values())

    def span(self) -> tuple[float, float, int]:
        """Return the first and last wall time and the greatest step; zeros if nothing was read."""
        some = [series for series in self.scalars.values() if len(series.values)]
        others = [
            one for held in (self.histograms, self.images, self.texts) for items in held.values() for one in items
        ]
        walls = [wall for series in some for wall in (series.walls[0], series.walls[-1])]
        walls += [one.wall for one in others]
        steps = [series.steps[-1] for series in some] + [one.step for one in others]
        return min(walls, default=0.0), max(walls, default=0.0), max(steps, default=0)


def _bytes(one: Histogram | Image | TextValue) -> int:
    if isinstance(one, Histogram):
        return OTHER + 8 * len(one.buckets)
    return OTHER + 4 * len(one.text) if isinstance(one, TextValue) else OTHER


def share(count: int) -> int:
    """Return how many points each of `count` scalars may keep."""
    return min(MOST_OF_ONE, max(FEWEST_OF_ONE, POINTS // max(1, count)))
