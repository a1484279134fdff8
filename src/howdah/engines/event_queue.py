"""The events that an allocator's next `poll` returns, and the means to wake a waiting `poll`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from howdah.spec.events import Event, Noted


class EventQueue:
    """Holds the events of one allocator. All calls come from the event loop."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._topics: set[str] = set()

    def put(self, event: Event) -> None:
        """Let `next_events` return an event."""
        self._events.append(event)
        self._changed.set()

    def note(self, text: str, topic: str) -> None:
        """Put a note for the event log, once for each `topic`."""
        if topic not in self._topics:
            self._topics.add(topic)
            self.put(Noted(time.time(), text))

    def forget_note(self, topic: str) -> None:
        """Let `note` write about a topic once more."""
        self._topics.discard(topic)

    def wake(self) -> None:
        """Let `next_events` call `advance` again, because something has changed that is not an event yet."""
        self._changed.set()

    async def next_events(self, advance: Callable[[], Awaitable[float]], within_s: float) -> list[Event]:
        """Return the events as soon as there are any, after `within_s` seconds at the latest.

        `advance` is called first, and after each change. It may put events, and returns the seconds after which it is
        to be called again.
        """
        deadline = time.monotonic() + within_s
        while True:
            self._changed.clear()
            again_s = await advance()
            left = deadline - time.monotonic()
            if self._events or left <= 0:
                events, self._events = self._events, []
                return events
            await self._wait(min(left, again_s))

    async def wait_while(self, holds: Callable[[], object], limit_s: float, every_s: float) -> None:
        """Return when `holds` returns something false, after `limit_s` seconds at the latest. It is called after each
        change, and every `every_s` seconds."""
        deadline = time.monotonic() + limit_s
        while holds() and (left := deadline - time.monotonic()) > 0:
            self._changed.clear()
            await self._wait(min(left, every_s))

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
