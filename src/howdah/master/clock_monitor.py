"""Whether the master stood still, or its clock was set: a stopped process, a machine that slept, an NTP step."""

from __future__ import annotations

import time

STOOD_S, JUMP_S = 2.0, 1.0
"""A loop that did not come round for so long stood still; a clock that left the steady one by so much was set."""


class ClockMonitor:
    """Looks at both clocks; asked before every event, at least every `tick_s` seconds."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s, self._begun = tick_s, False

    def begin(self) -> None:
        """From now on time is watched."""
        self._wall, self._steady, self._begun = time.time(), time.monotonic(), True

    def since_begin(self) -> float:
        """Seconds since `begin`, whatever the wall's clock says."""
        return time.monotonic() - self._steady

    def elapsed_gap(self) -> float:
        """Seconds on the wall's clock, since it was asked before, that count for nobody; below 0: it was set back."""
        if not self._begun:
            return 0.0
        wall, steady = time.time(), time.monotonic()
        ran, passed = steady - self._steady, wall - self._wall
        self._wall, self._steady = wall, steady
        stood = ran - self._tick_s if ran > STOOD_S + self._tick_s else 0.0
        jump = passed - ran if abs(passed - ran) > JUMP_S else 0.0
        return stood + jump
