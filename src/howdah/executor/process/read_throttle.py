"""How often what a program prints is read: at once, unless it prints so often that reading would take its time.

A program that prints a line each millisecond would have its executor wake up as often, in the middle of its steps.
"""

from __future__ import annotations

BURST, REST_S = 25, 0.5
"""So many reads at once; after that one each `REST_S`, and one more at once for each `REST_S` of silence."""


class ReadThrottle:
    """Of a program whose pipe holds `room` bytes: what it prints during a rest must not fill that."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._left, self._read_at = float(BURST), float("-inf")

    def pause_s(self, now: float, size: int) -> float:
        """`size` bytes were read at `now`, and no more were there: how long to let it be."""
        passed, self._read_at = now - self._read_at, now
        self._left = max(-1.0, min(BURST, self._left + passed / REST_S) - 1.0)
        speed = size / max(passed, 0.001)
        return 0.0 if self._left >= 0.0 else min(REST_S, self.room / 4 / speed)
