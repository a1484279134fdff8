"""Makes Python's garbage collector fit a master of many tasks."""

from __future__ import annotations

import gc

MIN_THRESHOLD, GARBAGE_EACH = 2000, 20
"""The least threshold of the garbage collector, and the objects that each task's pending request keeps alive."""


def tune(tasks: int) -> None:
    """Raise the threshold of the garbage collector: each pending long poll keeps some twenty objects alive, and
    scanning them would take a third of the time of a master of ten thousand executors, half a second at once."""
    gc.freeze()
    gc.set_threshold(max(MIN_THRESHOLD, GARBAGE_EACH * tasks), 10, 10)
