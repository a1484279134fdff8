"""A long curve in few points: each stands for a stretch of it, with its least, mean and greatest value. Pure.

Deterministic: stretches are a power of two long and begin at multiples of it, so that a curve that grows keeps its
points until there are too many. The first and the last point stand for themselves. What is no number is counted and
named, and has no part in the rest.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field

MOST_ODD = 100
Point = tuple[int, float, "float | None", "float | None", "float | None"]
"""Step, wall time, least, mean, greatest; None where no value is a number."""


@dataclass
class Sample:
    """`odd` are the first NaNs and infinities: step, wall time, which."""

    points: list[Point] = field(default_factory=list)
    nan: int = 0
    infinite: int = 0
    odd: list[tuple[int, float, str]] = field(default_factory=list)


def sample(steps: array[int], walls: array[float], values: array[float], most: int) -> Sample:
    """At most about `most` points of a curve, four at least."""
    count, found = len(values), Sample()
    if count <= 2:
        stretches = [(number, number + 1) for number in range(count)]
    else:
        size = 1
        while (count - 2) / size > max(2, most - 2):
            size *= 2
        inner = [(max(1, at), min(at + size, count - 1)) for at in range(0, count - 1, size)]
        stretches = [(0, 1), *(pair for pair in inner if pair[0] < pair[1]), (count - 1, count)]
    for start, end in stretches:
        middle = (start + end) // 2 if end - start > 1 else start
        found.points.append((steps[middle], walls[middle], *_summary(steps, walls, values, start, end, found)))
    return found


def _summary(
    steps: array[int], walls: array[float], values: array[float], start: int, end: int, found: Sample
) -> tuple[float | None, float | None, float | None]:
    part: array[float] | list[float] = values[start:end]
    total = sum(part)
    if not math.isfinite(total):
        for number in range(start, end):
            _odd(steps[number], walls[number], values[number], found)
        part = [value for value in part if math.isfinite(value)]
        if not part:
            return None, None, None
        total = sum(part)
    least, greatest = min(part), max(part)
    mean = total / len(part) if math.isfinite(total) else sum(value / len(part) for value in part)
    return least, min(max(mean, least), greatest), greatest


def _odd(step: int, wall: float, value: float, found: Sample) -> None:
    if math.isfinite(value):
        return
    if math.isnan(value):
        found.nan += 1
    else:
        found.infinite += 1
    if len(found.odd) < MOST_ODD:
        found.odd.append((step, wall, name(value)))


def name(value: float) -> str:
    """What JSON has no number for."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def thinned(values: array[float]) -> list[int]:
    """Which points are to stay when half of them must go: of each four the least and the greatest, or what is no number
    in their place; the first and the last in any case."""
    kept = {0, len(values) - 1}
    for start in range(0, len(values), 4):
        four = range(start, min(start + 4, len(values)))
        numbers = [number for number in four if math.isfinite(values[number])]
        odd = [number for number in four if not math.isfinite(values[number])]
        if numbers:
            kept |= {min(numbers, key=values.__getitem__), max(numbers, key=values.__getitem__)}
        kept |= set(odd[:1])
    return sorted(kept)
