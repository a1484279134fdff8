"""Time for signatures, and for leases."""

from __future__ import annotations

import time


class SignatureClock:
    """Epoch seconds, by the wall's clock as it was at first: who has begun to speak is understood when one is set."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def time(self) -> float:
        """Now."""
        return self._epoch + time.monotonic()


def since_boot() -> float:
    """Seconds since the machine was started, those included in which it slept: for others time went on."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
