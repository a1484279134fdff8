"""Signs that a program makes progress: for how long there has been none.

A program that speaks for itself (its progress, a metric, `howdah.program.alive`) is judged by that and by what it
prints: one that waits in a spinning collective uses a whole core for ever. Of one that never spoke, CPU, GPU and
input count."""

from __future__ import annotations

import time
from typing import Callable, Optional, Tuple

from howdah.wire.messages import Usage

LEAST_CPU = 0.05
"""Cores; threads that only watch over others use less."""
LEAST_GPU = 0.05
"""Share of the time."""


class ProgressDetector:
    """Of one run of a program. `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._said: Tuple[object, ...] = ()
        self._spoke: Optional[float] = None
        self._progress: Optional[float] = None
        self._speaks = False

    @property
    def idle_s(self) -> float:
        """Since the last sign."""
        return self._clock() - self._last

    def look(self, usage: Usage, printed: int, spoke_at: float) -> None:
        """`printed` bytes are in its logs so far; `spoke_at` changes when it says by itself that it goes on."""
        said = (printed, usage.streamed_bytes)
        spoke = (self._spoke is not None and spoke_at != self._spoke) or usage.progress != self._progress
        works = usage.cpu >= LEAST_CPU or any((gpu.use or 0.0) >= LEAST_GPU for gpu in usage.gpus)
        self._speaks = self._speaks or spoke
        if said != self._said or spoke or (works and not self._speaks):
            self._last = self._clock()
        self._said, self._spoke, self._progress = said, spoke_at, usage.progress
