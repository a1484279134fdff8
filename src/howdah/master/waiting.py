"""Records for which containers the job waits, and why, while it waits for longer than a moment."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from howdah.engines import Allocator
from howdah.master.state import GangState
from howdah.spec.events import Event, Waiting

CHECK_S = 0.5
FIRST_S = 3.0
"""A job that waits for less is not said to wait."""
EVERY_S, SHARE = 10.0, 0.05
"""The engine is asked again after EVERY_S seconds, or after SHARE of the time that the job has waited, if that is
more: the log of a job that waits for days stays short."""
CHANGED_S = 2.0
"""It is asked again after these seconds when another number of containers is missing."""
LIMIT_S = 30.0
"""How long an engine may take to say why."""


async def record_waits(
    state: GangState, allocator: Allocator, record: Callable[[Event], None], recorded: Waiting | None = None
) -> None:
    """Record a `Waiting` when the job has begun to wait, when that or the reasons change, and when it waits no more;
    return when the job is over or stops. `recorded` is what an earlier master recorded last."""
    waiting, next_at, asked_at = recorded or Waiting(0.0), 0.0, 0.0
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
            since = next_at = 0.0
            continue
        since = since or now
        if missing != waiting.missing:
            next_at = min(next_at, asked_at + CHANGED_S)
        if now - since < FIRST_S or now < next_at:
            continue
        asked_at = now
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
    except Exception as error:  # an engine's answer may be wrong in any way: the job goes on without it
        print(f"why the job waits is not known: {error!r}", file=sys.stderr, flush=True)
        return ()
    finally:
        asked.cancel()
