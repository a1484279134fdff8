"""Rivals take turns in one run, so that a busy machine slows both; what counts is the ratio within a round."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
QUIET_LOAD, QUIET_LIMIT_S = 1.5, 120.0


def alternate(subjects: Mapping[str, Callable[[], T]], rounds: int, warm_ups: int = 1) -> dict[str, list[T]]:
    """What each subject returned in each round, the order turned about every time; warm-ups are thrown away."""
    results: dict[str, list[T]] = {name: [] for name in subjects}
    for number in range(-warm_ups, rounds):
        names = list(subjects) if number % 2 == 0 else list(reversed(list(subjects)))
        for name in names:
            result = subjects[name]()
            if number >= 0:
                results[name].append(result)
    return results


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours over theirs, round by round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def wait_for_quiet() -> None:
    """Wait until other people's work is done, within limits, and say how busy the machine is then."""
    deadline = time.monotonic() + QUIET_LIMIT_S
    while os.getloadavg()[0] > QUIET_LOAD and time.monotonic() < deadline:
        time.sleep(2.0)
    print(f"  load {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", flush=True)


class Report:
    """Prints figures as they come and remembers which targets were missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def figure(self, label: str, values: Sequence[float], unit: str = "s") -> float:
        """Median, least and most; the median is returned."""
        middle = statistics.median(values)
        spread = f"[{min(values):.3f} - {max(values):.3f}]  n={len(values)}"
        print(f"  {label:58s} {middle:9.3f} {unit:5s} {spread}", flush=True)
        return middle

    def target(self, label: str, value: float, limit: float, unit: str = "", *, at_least: bool = False) -> None:
        """Compare with the project's target."""
        met = value >= limit if at_least else value <= limit
        sign = ">=" if at_least else "<="
        print(
            f"  {'met   ' if met else 'MISSED'} {label}: {value:.3f}{unit}, wanted {sign} {limit:g}{unit}", flush=True
        )
        if not met:
            self.missed.append(label)
