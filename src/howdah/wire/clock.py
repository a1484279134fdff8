"""Clocks that do not change when another program sets the clock: one for signatures, one for leases."""

from __future__ import annotations

import time


class SignatureClock:
    """Counts epoch seconds from the wall clock at its start, so that setting that clock makes no signature invalid."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def time(self) -> float:
        """Return the epoch seconds."""
        return self._epoch + time.monotonic()


def since_boot() -> float:
    """Return the seconds since the machine was started, including those in which it slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
