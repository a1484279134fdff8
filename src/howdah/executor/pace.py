"""How often a stream is read: at once, unless it is written to so often that reading would take the writer's time.

A program that prints a line each millisecond would have its executor wake up as often, in the middle of its steps. The
order between its two streams is known to `REST_S` then, else to the line.
"""

from __future__ import annotations

BUSY, REST_S = 50, 0.02


class Pace:
    """Of one stream: after `BUSY` reads in a second the others wait for `REST_S` each."""

    def __init__(self) -> None:
        self._since, self._count = float("-inf"), 0

    def rest(self, now: float) -> float:
        """It was read at `now`: how long to let it be."""
        if now - self._since >= 1.0:
            self._since, self._count = now, 0
        self._count += 1
        return REST_S if self._count > BUSY else 0.0
