"""Runs competitors in turns, so that a busy machine slows all of them, and reports ratios within a round."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
QUIET_SHARE, QUIET_LIMIT_S = 0.85, 60.0


def alternate(
    subjects: Mapping[str, Callable[[], T]], rounds: int, warm_ups: int = 1, quiet_limit_s: float = QUIET_LIMIT_S / 4
) -> dict[str, list[T]]:
    """Run subjects in rounds, in reversed order each time; return each one's results without warm-ups. Before each
    round, wait up to `quiet_limit_s` for idle cores; with 0, do not look."""
    results: dict[str, list[T]] = {name: [] for name in subjects}
    for number in range(-warm_ups, rounds):
        if quiet_limit_s:
            wait_for_quiet(quiet_limit_s)
        names = list(subjects) if number % 2 == 0 else list(reversed(list(subjects)))
        for name in names:
            result = subjects[name]()
            if number >= 0:
                results[name].append(result)
    return results


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return howdah's figures over the competitor's, round by round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def wait_for_quiet(limit_s: float = QUIET_LIMIT_S) -> float:
    """Wait until other work leaves the cores idle, within limits; the share that was idle in the last second."""
    deadline = time.monotonic() + limit_s
    while (share := _idle_share()) < QUIET_SHARE and time.monotonic() < deadline:
        continue
    return share


def _idle_share() -> float:
    """Return all cores' idle share over a second: fields 4 and 5 of /proc/stat are idle and waiting for disks."""
    before = _cpu_times()
    time.sleep(1.0)
    spent = [now - then for now, then in zip(_cpu_times(), before, strict=True)]
    return sum(spent[3:5]) / max(1, sum(spent))


def _cpu_times() -> list[int]:
    return [int(text) for text in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


class Report:
    """Prints figures as they come and remembers which targets were missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def figure(self, label: str, values: Sequence[float], unit: str = "s") -> float:
        """Print median, minimum and maximum; return the median."""
        middle = statistics.median(values)
        spread = f"[{min(values):.3f} - {max(values):.3f}]  n={len(values)}"
        print(f"  {label:58s} {middle:9.3f} {unit:5s} {spread}", flush=True)
        return middle

    def target(self, label: str, value: float, limit: float, unit: str = "", *, at_least: bool = False) -> None:
        """Compare a figure with the project's target."""
        met = value >= limit if at_least else value <= limit
        sign = ">=" if at_least else "<="
        print(
            f"  {'met   ' if met else 'MISSED'} {label}: {value:.3f}{unit}, wanted {sign} {limit:g}{unit}", flush=True
        )
        if not met:
            self.missed.append(label)
