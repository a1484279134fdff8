"""`ProgressDetector` measures for how long a program has shown no sign of progress.

A program that reports by itself (progress, a metric, `howdah.program.heartbeat`) is judged by its reports and its
output: one that waits in a spinning collective uses a whole core for ever. Of a program that never reported, CPU, GPU
and input count as well.
"""

from __future__ import annotations

import time
from typing import Callable, Optional, Tuple

from howdah.spec.usage import Usage

MIN_CPU = 0.05
"""Cores; threads that only monitor others use less."""
MIN_GPU = 0.05
"""Share of the time in which a GPU is in use."""


class ProgressDetector:
    """Watches one run of a program. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_sign_at = clock()
        self._output: Tuple[int, int] = (-1, -1)
        self._reported_at: Optional[float] = None
        self._progress: Optional[float] = None
        self._reports = False

    @property
    def idle_s(self) -> float:
        """Return the seconds since the last sign of progress."""
        return self._clock() - self._last_sign_at

    def update(self, usage: Usage, printed: int, reported_at: float, is_automatic: bool = False) -> None:
        """Take a sample. `printed` is the number of bytes in the logs; `reported_at` changes with each report of the
        program.

        If `is_automatic`, the program's library makes the reports by itself, and they cease while it evaluates or
        saves.
        """
        output = (printed, usage.streamed_bytes)
        reported = (
            self._reported_at is not None and reported_at != self._reported_at
        ) or usage.progress != self._progress
        works = usage.cpu >= MIN_CPU or any((gpu.use or 0.0) >= MIN_GPU for gpu in usage.gpus)
        self._reports = self._reports or (reported and not is_automatic)
        if output != self._output or reported or (works and not self._reports):
            self._last_sign_at = self._clock()
        self._output, self._reported_at, self._progress = output, reported_at, usage.progress
