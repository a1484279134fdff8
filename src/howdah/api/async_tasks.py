"""Cancels tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any


async def cancel_all(tasks: Callable[[], Collection[asyncio.Task[Any]]]) -> None:
    """Cancel the tasks that `tasks()` returns, except the calling task, until none is left.

    One cancellation is not enough: before Python 3.12 `asyncio.wait_for` loses it when its result comes at that moment.
    """
    while left := {*tasks()} - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=0.1)
