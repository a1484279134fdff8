"""Reduces a long curve to few points, each with the minimum, mean and maximum of a section of the curve. Pure.

The result is deterministic: a section has a power of two of points and begins at a multiple of it, so that a growing
curve keeps its points until there are too many. The first and the last point stay as they are. NaNs and infinities are
counted and listed apart from the rest.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import field
from typing import TypeVar

from howdah.spec.values import dataclass

MAX_NON_FINITE = 100
T = TypeVar("T")
Point = tuple[int, float, "float | None", "float | None", "float | None"]
"""Step, wall time, minimum, mean, maximum; None where no value is finite."""


@dataclass
class Sample:
    """A curve reduced to few points."""

    points: list[Point] = field(default_factory=list)
    nan: int = 0
    """How many values are NaN."""
    infinite: int = 0
    """How many values are infinite."""
    non_finite: list[tuple[int, float, str]] = field(default_factory=list)
    """The first values that are not finite: step, wall time, name of the value."""


def sample(steps: array[int], walls: array[float], values: array[float], limit: int) -> Sample:
    """Return a curve in at most about `limit` points, four at least."""
    count, found = len(values), Sample()
    if count <= 2:
        sections = [(number, number + 1) for number in range(count)]
    else:
        size = 1
        while (count - 2) / size > max(2, limit - 2):
            size *= 2
        inner = [(max(1, at), min(at + size, count - 1)) for at in range(0, count - 1, size)]
        sections = [(0, 1), *(pair for pair in inner if pair[0] < pair[1]), (count - 1, count)]
    for start, end in sections:
        middle = (start + end) // 2 if end - start > 1 else start
        found.points.append((steps[middle], walls[middle], *_summary(steps, walls, values, start, end, found)))
    return found


def _summary(
    steps: array[int], walls: array[float], values: array[float], start: int, end: int, sample: Sample
) -> tuple[float | None, float | None, float | None]:
    part: array[float] | list[float] = values[start:end]
    total = sum(part)
    if not math.isfinite(total):
        for number in range(start, end):
            if not math.isfinite(values[number]):
                _add_non_finite(steps[number], walls[number], values[number], sample)
        part = [value for value in part if math.isfinite(value)]
        if not part:
            return None, None, None
        total = sum(part)
    minimum, maximum = min(part), max(part)
    mean = total / len(part) if math.isfinite(total) else sum(value / len(part) for value in part)
    return minimum, min(max(mean, minimum), maximum), maximum


def _add_non_finite(step: int, wall: float, value: float, sample: Sample) -> None:
    if math.isnan(value):
        sample.nan += 1
    else:
        sample.infinite += 1
    if len(sample.non_finite) < MAX_NON_FINITE:
        sample.non_finite.append((step, wall, number_name(value)))


def number_name(value: float) -> str:
    """Return the name of a number that JSON cannot express."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def kept_when_halved(values: array[float]) -> list[int]:
    """Return the numbers of the values to keep when half of them must go: minimum and maximum of each four, one
    non-finite value among them, and always the first and the last value."""
    kept = {0, len(values) - 1}
    for start in range(0, len(values), 4):
        four = range(start, min(start + 4, len(values)))
        numbers = [number for number in four if math.isfinite(values[number])]
        odd = [number for number in four if not math.isfinite(values[number])]
        if numbers:
            kept |= {min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)}
        kept |= set(odd[:1])
    return sorted(kept)


def evenly_spread(items: Sequence[T], limit: int) -> list[T]:
    """Return at most `limit` items, evenly spread, with the first and the last."""
    if len(items) <= limit:
        return list(items)
    if limit < 2:
        return [items[-1]]
    return [items[round(number * (len(items) - 1) / (limit - 1))] for number in range(limit)]
