"""Reduces the points of a line: neighbours are merged, no extreme is lost, and the same line gives the same points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class SampledPoint(NamedTuple):
    """Sums up the values from `x` to the next point; None is a gap: there was no value, or it was not a number."""

    x: float
    """A time or a step."""
    minimum: float | None
    """The least of the values."""
    mean: float | None
    """The mean of the values."""
    maximum: float | None
    """The greatest of the values."""
    weight: float = 1.0
    """The number of the values."""


def downsample(
    points: Iterable[SampledPoint], max_points: int, begin: float | None = None, end: float | None = None
) -> list[SampledPoint]:
    """Return at most `max_points` points of `points`, which are in the order of `x`.

    Points of one span become one, at the `x` of its first, with the least, the weighted mean and the greatest of all.
    A span of gaps is a gap; what is not finite is a gap.
    """
    kept = list(points)
    return [merge(kept[span]) for span in group_neighbours([point.x for point in kept], max_points, begin, end)]


def group_neighbours(
    xs: Sequence[float], max_points: int, begin: float | None = None, end: float | None = None
) -> list[slice]:
    """Return which neighbours become one point: the range from `begin` to `end` (by default of all `xs`) is cut into
    `max_points` equal parts. Nothing is merged if there are no more than `max_points` points."""
    if len(xs) <= max_points:
        return [slice(number, number + 1) for number in range(len(xs))]
    first = xs[0] if begin is None else begin
    width = max(((xs[-1] if end is None else end) - first) / max_points, 1e-9)
    parts = [max(0, min(max_points - 1, int((x - first) / width))) for x in xs]
    starts = [number for number, part in enumerate(parts) if number == 0 or part != parts[number - 1]]
    return [slice(start, following) for start, following in zip(starts, [*starts[1:], len(xs)], strict=True)]


def merge(span: Sequence[SampledPoint]) -> SampledPoint:
    """Return one point for all points of a span."""
    if len(span) == 1:
        return drop_non_finite(span[0])
    known = [point for point in map(drop_non_finite, span) if point.mean is not None]
    if not known:
        return SampledPoint(span[0].x, None, None, None, 0.0)
    weight = math.fsum(point.weight for point in known) or 1.0
    mean = math.fsum((point.mean or 0.0) * point.weight for point in known) / weight
    minimum = min(point.minimum for point in known if point.minimum is not None)
    maximum = max(point.maximum for point in known if point.maximum is not None)
    return SampledPoint(span[0].x, minimum, mean, maximum, weight)


def drop_non_finite(point: SampledPoint) -> SampledPoint:
    """Return the point, as a gap if one of its values is not finite."""
    finite = all(value is not None and math.isfinite(value) for value in point[1:4])
    return point if finite else SampledPoint(point.x, None, None, None, 0.0)
