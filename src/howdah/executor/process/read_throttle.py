"""`ReadThrottle` pauses the reading of a program that prints very often, so that reading takes no time from it.

A program that prints a line each millisecond would otherwise wake up its executor as often, in the middle of its steps.
"""

from __future__ import annotations

BURST, REST_S = 25, 0.5
"""The number of reads without a pause, and seconds between two reads after that. Each REST_S of silence allows one more
read without a pause."""


class ReadThrottle:
    """Throttles the reading of a pipe that holds `room` bytes, which must not fill up during a pause."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._left, self._read_at = float(BURST), float("-inf")

    def pause_s(self, now: float, size: int) -> float:
        """Return how long to pause after `size` bytes were read at `now` and the pipe was empty."""
        passed, self._read_at = now - self._read_at, now
        self._left = max(-1.0, min(BURST, self._left + passed / REST_S) - 1.0)
        speed = size / max(passed, 0.001)
        return 0.0 if self._left >= 0.0 else min(REST_S, self.room / 4 / speed)
