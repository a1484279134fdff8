"""Keeps the values of each run: columns of scalars, and a bounded number of histograms, images, texts and others.

A program that restarts from an earlier step invalidates the later steps. TensorBoard notices a restart by a START in
the file; this module also notices it by a later file that begins after the one before has ended.
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field
from itertools import chain
from operator import le
from typing import Any, TypeVar, cast

from howdah.eventfiles.event_batch import (
    Batch,
    Histogram,
    HyperparameterSession,
    Image,
    Media,
    Points,
    PrecisionRecallCurve,
    TextValue,
)
from howdah.eventfiles.sampling import kept_when_halved
from howdah.spec.values import dataclass

POINTS = int(os.environ.get("HOWDAH_CURVES_POINTS", "") or 8_000_000)
"""The points kept in memory, of all scalars together: 24 bytes each."""
MAX_POINTS_OF_TAG, MIN_POINTS_OF_TAG = 1 << 20, 2_000
MAX_TAGS = 20_000
"""The scalars of one run that are kept."""
MAX_HISTOGRAMS, MAX_OTHERS = 200, 100
"""The histograms of a tag that are kept, and the images, audio clips, texts, or curves of precision and recall."""
MIN_KEPT_POINTS, MIN_KEPT_OTHERS = 64, 4
"""The points of a tag, and its histograms, images or others, that are kept even if there is little memory."""
POINT, TAG, OTHER = 24, 800, 400
"""The bytes of a point; of a tag without its points; of a histogram, an image or the like without its content."""
Value = Histogram | Image | Media | PrecisionRecallCurve | TextValue
T = TypeVar("T", Histogram, Image, Media, PrecisionRecallCurve, TextValue)


@dataclass
class ScalarSeries:
    """Keeps the points of one scalar of a run."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    walls: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))
    seen: int = 0
    """The number of points that were read, whether they are still kept or not."""
    source: str = ""
    """The file of the last point."""

    def extend(self, points: Points, source: str) -> None:
        """Add points of file `source` in the order of the file."""
        is_next_file = source != self.source and self.steps and points.steps
        if is_next_file and points.steps[0] <= self.steps[-1] and points.walls[0] >= self.walls[-1]:
            self.cut(points.steps[0])  # the program started again
        self.source = source
        self.steps += points.steps
        self.walls += points.walls
        self.values += points.values
        self.seen += len(points.steps)

    def cut(self, step: int) -> None:
        """Remove the points from `step` on."""
        if all(map(le, self.steps, self.steps[1:])):
            end = bisect_left(self.steps, step)
            del self.steps[end:], self.walls[end:], self.values[end:]
        else:
            self._keep_points([number for number, each in enumerate(self.steps) if each < step])

    def thin(self) -> None:
        """Keep half of the points, the extremes among them."""
        self._keep_points(kept_when_halved(self.values))

    def _keep_points(self, numbers: list[int]) -> None:
        self.steps = array("q", [self.steps[number] for number in numbers])
        self.walls = array("d", [self.walls[number] for number in numbers])
        self.values = array("d", [self.values[number] for number in numbers])


class Run:
    """Keeps all values that were read of one directory. The caller must lock it against readers while a batch is
    added."""

    def __init__(self) -> None:
        self._halvings, self._full = 0, False
        self.clear()

    def clear(self) -> None:
        """Remove everything."""
        self.scalars: dict[bytes, ScalarSeries] = {}
        self.histograms: dict[bytes, list[Histogram]] = {}
        self.images: dict[bytes, list[Image]] = {}
        self.audio: dict[bytes, list[Media]] = {}
        self.pr_curves: dict[bytes, list[PrecisionRecallCurve]] = {}
        self.texts: dict[bytes, list[TextValue]] = {}
        self.session: HyperparameterSession | None = None
        self.kinds: dict[bytes, bytes] = {}
        """The plugin of each tag."""
        self.left_out = 0
        """The number of values that were read of tags beyond the limits."""
        self.size = 0
        """The approximate bytes of memory that the values need."""

    def add(self, batch: Batch, share: int, halvings: int = 0, full: bool = False) -> None:
        """Add the values of a section of a file.

        Each scalar may keep `share` points. To save memory, this number and the limits of all other values are halved
        `halvings` times. If `full`, new tags are left out.
        """
        self.kinds.update(batch.kinds)
        self._halvings, self._full = halvings, full
        start, sections = 0, [*sorted(batch.restarts), (sys.maxsize, None)]
        for end, step in sections:
            for tag, points in batch.scalars.items():
                part = points
                if batch.restarts:
                    first, last = bisect_left(points.offsets, start), bisect_left(points.offsets, end)
                    part = Points([], points.steps[first:last], points.walls[first:last], points.values[first:last])
                self._add_points(tag, part, batch.uri, share)
            if step is not None:
                self._drop_from_step(step)
            start = end
        for tag, histogram in batch.histograms:
            self._add(self.histograms, tag, histogram, MAX_HISTOGRAMS)
        for tag, image in batch.images:
            self._add(self.images, tag, image, MAX_OTHERS)
        for tag, clips in batch.audio:
            self._add(self.audio, tag, clips, MAX_OTHERS)
        for tag, curve in batch.pr_curves:
            self._add(self.pr_curves, tag, curve, MAX_OTHERS)
        for tag, text in batch.texts:
            self._add(self.texts, tag, text, MAX_OTHERS)
        for session in batch.sessions:
            self._merge(session)

    def _add_points(self, tag: bytes, points: Points, source: str, share: int) -> None:
        if tag not in self.scalars:
            if self._full or len(self.scalars) >= MAX_TAGS or not points.steps:
                self.left_out += len(points.steps)
                return
            self.scalars[tag] = ScalarSeries()
            self.size += TAG
        series = self.scalars[tag]
        before = len(series.values)
        series.extend(points, source)
        limit = max(MIN_KEPT_POINTS, max(share, MIN_POINTS_OF_TAG) >> self._halvings)
        while len(series.values) > limit:
            series.thin()
        self.size += POINT * (len(series.values) - before)

    def _drop_from_step(self, step: int) -> None:
        for series in self.scalars.values():
            before = len(series.values)
            series.cut(step)
            self.size += POINT * (len(series.values) - before)

    def halve(self) -> None:
        """Keep half of each tag's points, histograms, images and others, unless only few are left."""
        for series in self.scalars.values():
            if (before := len(series.values)) > MIN_KEPT_POINTS:
                series.thin()
                self.size += POINT * (len(series.values) - before)
        for values in self._values_beside_scalars():
            if len(values) > MIN_KEPT_OTHERS:
                self._drop_half(values)

    def _values_beside_scalars(self) -> Iterator[list[Any]]:
        """Yield the values of each tag that is not a scalar."""
        for values_of in (self.histograms, self.images, self.audio, self.pr_curves, self.texts):
            yield from cast("dict[bytes, list[Any]]", values_of).values()

    def _drop_half(self, values: list[Any]) -> None:
        self.size -= sum(map(_bytes, values[1:-1:2]))
        del values[1:-1:2]

    def _add(self, values_of: dict[bytes, list[T]], tag: bytes, value: T, limit: int) -> None:
        if tag not in values_of:
            if self._full or len(values_of) >= MAX_TAGS // 10:
                self.left_out += 1
                return
            values_of[tag] = []
            self.size += TAG
        values = values_of[tag]
        values.append(value)
        self.size += _bytes(value)
        if len(values) > max(MIN_KEPT_OTHERS, limit >> self._halvings):
            self._drop_half(values)

    def _merge(self, session: HyperparameterSession) -> None:
        known = self.session = self.session or HyperparameterSession()
        known.values.update(session.values)
        known.metrics += [name for name in session.metrics if name not in known.metrics]
        known.group, known.status = session.group or known.group, session.status or known.status
        known.started, known.ended = session.started or known.started, session.ended or known.ended

    @property
    def points(self) -> int:
        """Return how many points are in memory."""
        return sum(len(series.values) for series in self.scalars.values())

    def span(self) -> tuple[float, float, int]:
        """Return the first and last wall time and the greatest step; zeros if nothing was read."""
        scalars = [series for series in self.scalars.values() if series.values]
        others: list[Value] = list(chain.from_iterable(self._values_beside_scalars()))
        walls = [wall for series in scalars for wall in (series.walls[0], series.walls[-1])]
        walls += [value.wall for value in others]
        steps = [series.steps[-1] for series in scalars] + [value.step for value in others]
        return min(walls, default=0.0), max(walls, default=0.0), max(steps, default=0)


def _bytes(value: Value) -> int:
    if isinstance(value, Histogram):
        return OTHER + 8 * len(value.buckets)
    if isinstance(value, PrecisionRecallCurve):
        return OTHER + 8 * len(value.points)
    return OTHER + 4 * len(value.text) if isinstance(value, TextValue) else OTHER


def points_per_scalar(count: int) -> int:
    """Return how many points each of `count` scalars may keep."""
    return min(MAX_POINTS_OF_TAG, max(MIN_POINTS_OF_TAG, POINTS // max(1, count)))
