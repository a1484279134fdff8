"""Detects that the master was suspended or that its clock was set: a stopped process, a machine that slept, an NTP
step."""

from __future__ import annotations

import time

STOOD_S, JUMP_S = 2.0, 1.0
"""A pause of the loop longer than STOOD_S seconds means that the process was suspended; a difference above JUMP_S
seconds between the wall clock and the steady clock means that the clock was set."""


class ClockMonitor:
    """Compares the wall clock with a steady clock before every event, at least every `tick_s` seconds."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s, self._begun = tick_s, False

    def begin(self) -> None:
        """Begin to watch the time."""
        self._wall, self._steady, self._begun = time.time(), time.monotonic(), True

    def since_begin(self) -> float:
        """Return the seconds since `begin`, whatever the wall clock says."""
        return time.monotonic() - self._steady

    def elapsed_gap(self) -> float:
        """Return the seconds on the wall clock, since the last call, that must not count for any deadline; below 0 when
        the clock was set back."""
        if not self._begun:
            return 0.0
        wall, steady = time.time(), time.monotonic()
        ran, passed = steady - self._steady, wall - self._wall
        self._wall, self._steady = wall, steady
        stood = ran - self._tick_s if ran > STOOD_S + self._tick_s else 0.0
        jump = passed - ran if abs(passed - ran) > JUMP_S else 0.0
        return stood + jump
