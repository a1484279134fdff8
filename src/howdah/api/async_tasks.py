"""Tasks of an event loop, brought to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any


async def cancel_all(tasks: Callable[[], Collection[asyncio.Task[Any]]]) -> None:
    """Cancel what `tasks()` gives, but for the caller, until that is nothing more.

    Once is not enough: before Python 3.12 `asyncio.wait_for` forgets it when what it waits for comes just then.
    """
    while left := {*tasks()} - {asyncio.current_task()}:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=0.1)
