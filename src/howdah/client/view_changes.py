"""Chooses the views of a job that differ from the view before."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from howdah.spec.view import JobView

MIN_INTERVAL_S = 1.0


def changes(views: Iterable[JobView], clock: Callable[[], float] = time.monotonic) -> Iterator[JobView]:
    """Yield the first of `views`, then each that differs from the one yielded before, `MIN_INTERVAL_S` apart at least,
    and at once the first that has an outcome, which is the last."""
    shown, shown_at = None, -math.inf
    for view in views:
        state = _fingerprint(view)
        if view.outcome is not None or (state != shown and clock() - shown_at >= MIN_INTERVAL_S):
            yield view
            shown, shown_at = state, clock()
        if view.outcome is not None:
            return


def _fingerprint(view: JobView) -> Any:
    """Return a value that differs whenever the view does: the view itself is one object that is updated. A client of an
    address reads usage beside the events, so usage does not change `updated`."""
    used = [(task.progress, task.cpu, task.memory_mib, task.peak_mib) for task in view.tasks.values()]
    return view.updated, view.state, len(view.tasks), used
