"""Records for which containers the job waits, and why, while it waits for longer than a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from howdah.engines import Allocator
from howdah.errors import HowdahError
from howdah.master.state import GangState
from howdah.spec.events import Event, Waiting

CHECK_S = 0.5
FIRST_S = 3.0
"""A job that waits for less is not said to wait."""
EVERY_S, SHARE = 10.0, 0.05
"""The engine is asked again after EVERY_S seconds, or after SHARE of the time that the job has waited, if that is
more: the log of a job that waits for days stays short."""
LIMIT_S = 30.0
"""How long an engine may take to say why."""


async def record_waits(
    state: GangState, allocator: Allocator, record: Callable[[Event], None], recorded: Waiting | None = None
) -> None:
    """Record a `Waiting` when the job has begun to wait, when that or the reasons change, and when it waits no more;
    return when the job is over or stops. `recorded` is what an earlier master recorded last."""
    waiting, next_at = recorded or Waiting(0.0), 0.0
    since = waiting.since
    while True:
        await asyncio.sleep(CHECK_S)
        if not state.open:
            return
        now = time.time()
        missing = _missing(state)
        if not missing:
            if waiting.missing:
                waiting = Waiting(now)
                record(waiting)
            since = 0.0
            continue
        since = since or now
        if now - since < FIRST_S or now < next_at:
            continue
        news = Waiting(now, since, missing, await _reasons(state, allocator, missing))
        next_at = time.time() + max(EVERY_S, SHARE * (now - since))
        if replace(news, time=waiting.time) != waiting and missing == _missing(state) and state.open:
            waiting = news
            record(waiting)


def _missing(state: GangState) -> dict[str, int]:
    """Return how many containers the job waits for, by role."""
    return {role: len(tasks) for role, tasks in state.pending_tasks.items() if tasks}


async def _reasons(state: GangState, allocator: Allocator, missing: Mapping[str, int]) -> tuple[str, ...]:
    roles = {name: role.grown(state.restarted.get(name, 0)) for name, role in state.job.roles.items()}
    asked = asyncio.ensure_future(allocator.pending_reasons(replace(state.job, roles=roles), missing))
    try:
        # Not `wait_for`: up to Python 3.11 it loses a cancellation that comes together with the answer.
        await asyncio.wait({asked}, timeout=LIMIT_S)
        return tuple(reason.sentence for reason in asked.result()) if asked.done() else ()
    except (HowdahError, OSError):
        return ()
    finally:
        asked.cancel()
