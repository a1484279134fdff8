"""The GPU hours that a job's containers have held, from its view. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.spec.attempt import AttemptView
from howdah.spec.view import JobView


def gpu_hours(view: JobView, now: float) -> float:
    """Return the GPU hours that the job's containers have held up to its end, or up to `now` in epoch seconds.

    A view keeps only the latest attempts of a task (`MAX_ATTEMPTS`); earlier ones are not counted.
    """
    if view.job is None:
        return 0.0
    seconds = 0.0
    for task in view.tasks.values():
        gpus = view.job.roles[task.id.role].resources.gpus
        if gpus:
            seconds += gpus * _held_s(task.attempts, view.finished or now)
    return seconds / 3600


def _held_s(attempts: Sequence[AttemptView], until: float) -> float:
    """Return the seconds for which the containers of these attempts were held. Several attempts may share one
    container, and only the last attempt may still be running at `until`."""
    spans: dict[int, tuple[float, float]] = {}
    for attempt in attempts:
        begin = attempt.launched or attempt.running
        if not begin:
            continue
        end = attempt.finished or (until if attempt is attempts[-1] else begin)
        first, last = spans.get(attempt.attempt, (begin, end))
        spans[attempt.attempt] = min(first, begin), max(last, end)
    return sum(max(0.0, end - begin) for begin, end in spans.values())
