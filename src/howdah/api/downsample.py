"""Fewer points of a line, always the same ones for the same line: neighbours are merged, and no extreme is lost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class SampledPoint(NamedTuple):
    """At `x` (a time, a step) the values between `x` and the next point: least, mean and greatest of `weight` ones.

    None is a gap: nothing was told, or no number.
    """

    x: float
    least: float | None
    mean: float | None
    most: float | None
    weight: float = 1.0


def downsample(
    points: Iterable[SampledPoint], most: int, begin: float | None = None, end: float | None = None
) -> list[SampledPoint]:
    """At most `most` points of `points`, which are in the order of `x`.

    Points of one span become one, at the `x` of its first, with the least, the weighted mean and the greatest of all.
    A span of gaps is a gap; what is not finite is a gap.
    """
    kept = list(points)
    return [merge(kept[span]) for span in spans([point.x for point in kept], most, begin, end)]


def spans(xs: Sequence[float], most: int, begin: float | None = None, end: float | None = None) -> list[slice]:
    """Which neighbours become one: the range from `begin` to `end` (else of all) is cut into `most` equal parts; none
    do if there are not more than `most`."""
    if len(xs) <= most:
        return [slice(number, number + 1) for number in range(len(xs))]
    first = xs[0] if begin is None else begin
    width = max(((xs[-1] if end is None else end) - first) / most, 1e-9)
    places = [max(0, min(most - 1, int((x - first) / width))) for x in xs]
    starts = [number for number, place in enumerate(places) if number == 0 or place != places[number - 1]]
    return [slice(start, following) for start, following in zip(starts, [*starts[1:], len(xs)], strict=True)]


def merge(span: Sequence[SampledPoint]) -> SampledPoint:
    """One point for all of these."""
    if len(span) == 1:
        return _finite(span[0])
    known = [point for point in map(_finite, span) if point.mean is not None]
    if not known:
        return SampledPoint(span[0].x, None, None, None, 0.0)
    weight = math.fsum(point.weight for point in known) or 1.0
    mean = math.fsum((point.mean or 0.0) * point.weight for point in known) / weight
    least = min(point.least for point in known if point.least is not None)
    return SampledPoint(span[0].x, least, mean, max(point.most for point in known if point.most is not None), weight)


def _finite(point: SampledPoint) -> SampledPoint:
    told = all(value is not None and math.isfinite(value) for value in point[1:4])
    return point if told else SampledPoint(point.x, None, None, None, 0.0)
