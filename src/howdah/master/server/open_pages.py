"""Track the pages of the job that are open in a browser: the master stays after the end until they have shown it.

A page says with its requests whether its tab is visible, in which case it asks every two seconds, or hidden: once a
minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

VISIBLE_S, HIDDEN_S = 10.0, 75.0
"""A page that has not asked for so long is closed."""
LONGEST_S = 300.0
"""So long at most an open page is answered after the end: time to read why a job failed."""
SEEN_S = 5.0
"""Two questions of a visible page, where the master can't stay longer."""


class OpenPages:
    """Remember when pages asked last, on the running loop. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._visible_at = self._hidden_at = float("-inf")
        self._dismissed = asyncio.Event()

    def note_question(self, hidden: bool, now: float) -> None:
        """Remember that an open page asked."""
        if hidden:
            self._hidden_at = now
        else:
            self._visible_at = now

    def visible_until(self) -> float:
        """When the last page that asked from a visible tab counts as closed, unless it asks again."""
        return self._visible_at + VISIBLE_S

    def open_until(self) -> float:
        """When the last page counts as closed, unless it asks again."""
        return max(self.visible_until(), self._hidden_at + HIDDEN_S)

    async def wait_until_seen(self) -> None:
        """Wait until visible pages, if there are any, have asked twice; `dismiss` ends the wait."""
        if self.visible_until() > time.monotonic():
            await self._wait(SEEN_S)

    async def wait_until_closed(self) -> None:
        """Wait while pages are open, `LONGEST_S` at most; `dismiss` ends the wait."""
        now, last = time.monotonic(), time.monotonic() + LONGEST_S
        while not self._dismissed.is_set() and min(self.open_until(), last) > now:
            await self._wait(min(self.open_until(), last) - now)
            now = time.monotonic()

    def dismiss(self) -> None:
        """End the wait now: the process was told to end."""
        self._dismissed.set()

    async def _wait(self, limit_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._dismissed.wait(), limit_s)
