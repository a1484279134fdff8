"""Waits until a job's TensorBoard is open; its container may take minutes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from howdah.errors import EngineUnavailable, RequestRefused
from howdah.spec.events import BoardChanged, Event

OPENS_S = 330.0
"""The master gives up after five minutes, and reports that a little later."""


def wait_until_open(job_id: str, ask: Callable[[], Mapping[str, str]], changes: Iterator[Iterable[Event]]) -> str:
    """Return the address of a job's TensorBoard once it is open. `ask` starts it. `changes` yields the job's events
    from a moment before the start on.

    Raises:
        RequestRefused: TensorBoard ended before.
        EngineUnavailable: it is not open after `OPENS_S`.
    """
    until = time.monotonic() + OPENS_S
    next(changes)
    url = ask()["url"]
    while not url and time.monotonic() < until:
        changed = [event for event in next(changes) if isinstance(event, BoardChanged)]
        if changed and changed[-1].state == "ended":
            raise RequestRefused(f"no TensorBoard for {job_id}: {changed[-1].detail}")
        if changed and changed[-1].state == "open":
            url = ask()["url"]
    if not url:
        raise EngineUnavailable(f"TensorBoard of {job_id} is not open after {OPENS_S:.0f} s")
    return url
