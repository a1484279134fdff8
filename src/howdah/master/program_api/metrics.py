"""Decides which points of the programs' metrics the event log keeps. The module is pure.

A metric keeps its first points, and then fewer the older it grows and the more metrics there are, so that a log of
weeks stays small. The last point of a program that ends is always kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from howdah.spec import TaskId
from howdah.spec.events import Measured
from howdah.spec.values import dataclass

MAX_METRICS = 500
MIN_INTERVAL_S = 1.0
POINTS = 200
"""Points kept of one metric while its age grows by a factor of e, as long as there are at most FEW metrics."""
FIRST_POINTS = 3000
"""How many of its first points a metric keeps, as long as there are at most FEW metrics."""
FEW = 10


@dataclass
class _Metric:
    """The recorded state of one metric of one task."""

    begun: float
    """When the first point came."""
    kept_at: float = float("-inf")
    """When a point was last kept."""
    kept: int = 0
    """How many points were kept."""
    last: Measured | None = None
    """The last point, if it was not kept."""


@dataclass
class MetricThinning:
    """The metrics of all tasks of a job."""

    _metrics: dict[tuple[TaskId, str], _Metric] = field(default_factory=dict)
    """The state of each metric, by task and name."""
    steps: dict[TaskId, int] = field(default_factory=dict)
    """The latest training step that each task reported."""

    def add(self, task: TaskId, points: Iterable[Any]) -> tuple[list[Measured], str]:
        """Take points `[name, step, value, time]`; return those to keep, and what is wrong with others.

        Raises:
            ValueError, TypeError: an item is no such point.
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
            metric = self._metrics.get((task, point.name))
            if metric is None:
                if len(self._metrics) >= MAX_METRICS:
                    refused.add(point.name)
                    continue
                metric = self._metrics[task, point.name] = _Metric(point.time)
            kept += self._points_to_keep(metric, point)
        few = ", ".join(sorted(refused)[:5])
        return kept, f"the job has {MAX_METRICS} metrics already: no room for {few} of {task}" if refused else ""

    def end(self, task: TaskId) -> list[Measured]:
        """Return the last points of a task that has ended, as far as they were not kept."""
        last = [metric.last for (owner, _), metric in self._metrics.items() if owner == task]
        for (owner, _), metric in self._metrics.items():
            if owner == task:
                metric.last = None
        return [point for point in last if point is not None]

    def restore(self, point: Measured) -> None:
        """Remember a point that an earlier master kept."""
        metric = self._metrics.setdefault((point.task, point.name), _Metric(point.time))
        metric.kept_at, metric.kept = point.time, metric.kept + 1

    def _points_to_keep(self, metric: _Metric, point: Measured) -> list[Measured]:
        share = 1.0 / max(1.0, len(self._metrics) / FEW)
        between = max(MIN_INTERVAL_S, (point.time - metric.begun) / (POINTS * share))
        if metric.kept >= FIRST_POINTS * share and point.time - metric.kept_at < between:
            metric.last = point
            return []
        metric.kept_at, metric.kept, metric.last = point.time, metric.kept + 1, None
        return [point]
