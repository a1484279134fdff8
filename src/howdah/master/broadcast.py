"""Wakes every current waiter at once. A waiter costs one future and one timer, because ten thousand executors wait at
the same time, each of them anew every other second."""

from __future__ import annotations

import asyncio
import time


class Broadcast:
    """Wakes its waiters, on the running loop. A waiter that begins to wait after a call of `notify_all` waits for the
    next call."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: tuple[asyncio.Future[bool], ...] = ()

    def notify_all(self) -> None:
        """Wake every current waiter."""
        waiting, self._waiting = self._waiting, ()
        for one in waiting:
            _answer(one, True)

    async def wait_until(self, until: float) -> bool:
        """Wait for `notify_all`; return True if it came before `until` (of `time.monotonic`, which is an event loop's
        time)."""
        if until <= time.monotonic():
            return False
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[bool] = loop.create_future()
        self._waiting = (*self._waiting, mine)
        timer = loop.call_at(until, _answer, mine, False)
        try:
            return await mine
        finally:
            timer.cancel()
            if self._waiting:
                self._waiting = tuple(one for one in self._waiting if one is not mine)


def _answer(waiting: asyncio.Future[bool], notified: bool) -> None:
    if not waiting.done():
        waiting.set_result(notified)
