"""Tracks the pages of the job that are open in a browser: the master stays after the end until they have shown it.

A page's requests say whether its tab is visible: then they come every two seconds. Those of a hidden tab come once a
minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

VISIBLE_S, HIDDEN_S = 10.0, 75.0
"""Seconds without a request after which a page counts as closed, while its tab is visible and while it is hidden."""
MAX_LINGER_S = 300.0
"""The longest time for which open pages are answered after the end: users read why a job failed."""
SEEN_S = 5.0
"""Seconds that cover two requests of a visible page; the limit where the master cannot stay longer."""


class OpenPages:
    """Remembers when open pages sent their last request. Times are those of `time.monotonic`."""

    def __init__(self) -> None:
        self._visible_at = self._hidden_at = float("-inf")
        self._dismissed = asyncio.Event()

    def note_request(self, hidden: bool, now: float) -> None:
        """Remember that an open page has sent a request."""
        if hidden:
            self._hidden_at = now
        else:
            self._visible_at = now

    def visible_until(self) -> float:
        """Return when the last visible page counts as closed, unless it sends another request."""
        return self._visible_at + VISIBLE_S

    def open_until(self) -> float:
        """Return when the last page counts as closed, unless it sends another request."""
        return max(self.visible_until(), self._hidden_at + HIDDEN_S)

    async def wait_until_seen(self) -> None:
        """Wait until visible pages, if there are any, have sent two requests; `dismiss` ends the wait."""
        if self.visible_until() > time.monotonic():
            await self._wait(SEEN_S)

    async def wait_until_closed(self) -> None:
        """Wait while pages are open, `MAX_LINGER_S` seconds at most; `dismiss` ends the wait."""
        now, last = time.monotonic(), time.monotonic() + MAX_LINGER_S
        while not self._dismissed.is_set() and min(self.open_until(), last) > now:
            await self._wait(min(self.open_until(), last) - now)
            now = time.monotonic()

    def dismiss(self) -> None:
        """End the wait now, because a signal has asked the process to end."""
        self._dismissed.set()

    async def _wait(self, limit_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._dismissed.wait(), limit_s)
