"""Points of the programs' curves: which are kept. Pure.

The older a curve grows the fewer, and the fewer the more curves there are, so that a log of weeks stays small; the last
point of a program that ends is always kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from howdah.spec import TaskId
from howdah.spec.events import Measured
from howdah.spec.values import dataclass

MAX_CURVES = 500
LEAST_S = 1.0
POINTS = 200
"""Of one curve in the time in which its age grows by a factor of e, as long as there are few."""
FEW = 10


@dataclass
class _Metric:
    begun: float
    kept_at: float = float("-inf")
    last: Measured | None = None


@dataclass
class MetricThinning:
    """All curves of a job."""

    _curves: dict[tuple[TaskId, str], _Metric] = field(default_factory=dict)
    steps: dict[TaskId, int] = field(default_factory=dict)
    """The latest that each task told of."""

    def take(self, task: TaskId, points: Iterable[Any]) -> tuple[list[Measured], str]:
        """Points as they came, `[name, step, value, time]`; those to keep, and what is wrong with others.

        Raises:
            ValueError, TypeError: they are no points.
        """
        kept, refused = [], set()
        for name, step, value, at in points:
            point = Measured(
                float(at),
                task=task,
                name=str(name),
                value=None if value is None else float(value),
                step=None if step is None else int(step),
            )
            if point.step is not None:
                self.steps[task] = point.step
            curve = self._curves.get((task, point.name))
            if curve is None:
                if len(self._curves) >= MAX_CURVES:
                    refused.add(point.name)
                    continue
                curve = self._curves[task, point.name] = _Metric(point.time)
            kept += self._keep(curve, point)
        few = ", ".join(sorted(refused)[:5])
        return kept, f"the job has {MAX_CURVES} curves already: no room for {few} of {task}" if refused else ""

    def end(self, task: TaskId) -> list[Measured]:
        """The last points of its curves, as far as they were not kept."""
        last = [curve.last for (whose, _), curve in self._curves.items() if whose == task]
        for (whose, _), curve in self._curves.items():
            if whose == task:
                curve.last = None
        return [point for point in last if point is not None]

    def restore(self, point: Measured) -> None:
        """It was kept by the master before this one."""
        curve = self._curves.setdefault((point.task, point.name), _Metric(point.time))
        curve.kept_at = point.time

    def _keep(self, curve: _Metric, point: Measured) -> list[Measured]:
        points = POINTS / max(1.0, len(self._curves) / FEW)
        between = max(LEAST_S, (point.time - curve.begun) / points)
        if point.time - curve.kept_at < between:
            curve.last = point
            return []
        curve.kept_at, curve.last = point.time, None
        return [point]
