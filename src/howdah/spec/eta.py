"""Estimates when a job will be done, from the progress of its tasks."""

from __future__ import annotations

from typing import Optional

from howdah.spec.task import State
from howdah.spec.view import JobView, ProgressRate

MIN_ADVANCE_S, MIN_ADVANCE = 2.0, 0.002
"""A shorter or smaller advance allows no estimate."""


def eta(view: JobView, now: float) -> Optional[float]:
    """Return the seconds until the last of the tasks that report progress is done; None while no estimate is possible.
    The estimate uses the rate of a program since it began, because a program that resumed from a checkpoint begins with
    some progress."""
    if view.state is not State.RUNNING:
        return None
    left = [_remaining_s(task.pace, now) for task in view.tasks.values() if task.state is State.RUNNING and task.pace]
    known = [seconds for seconds in left if seconds is not None]
    return round(max(known), 1) if known else None


def _remaining_s(pace: ProgressRate, now: float) -> Optional[float]:
    seconds, done = pace.last_at - pace.first_at, pace.last - pace.first
    if pace.last >= 1.0:
        return 0.0
    if seconds < MIN_ADVANCE_S or done < MIN_ADVANCE:
        return None
    return max(0.0, (1.0 - pace.last) * seconds / done - (now - pace.last_at))
