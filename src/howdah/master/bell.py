"""A bell wakes all who wait for it now. Waiting takes one future, for ten thousand executors wait at once."""

from __future__ import annotations

import asyncio


class Bell:
    """Belongs to the running loop; who comes after a ring waits for the next one."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake everyone."""
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        self._next = None

    async def rung(self, until: float) -> bool:
        """Wait; whether it rang before `until` (loop time)."""
        loop = asyncio.get_running_loop()
        left = until - loop.time()
        if left <= 0:
            return False
        if self._next is None:
            self._next = loop.create_future()
        done, _ = await asyncio.wait((self._next,), timeout=left)
        return bool(done)
