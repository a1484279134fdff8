"""Waits until a job's first program runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from howdah.client.follow import Follower, Update
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobFailed
from howdah.spec import State
from howdah.spec.view import TaskView

START_LIMIT_S, POLL_S = 900.0, 0.5


def require_running(job_id: str, update: Update) -> None:
    """Raise JobFailed, with the reason and the last lines, if the job has ended."""
    outcome = update.view.outcome
    if outcome is None and not update.report.state.ended:
        return
    lines = "\n".join(outcome.exit.lines) if outcome is not None and outcome.exit is not None else ""
    why = outcome.diagnostics if outcome is not None else update.report.diagnostics
    raise JobFailed(f"the job {job_id} has ended: {why}\n{lines}".rstrip())


def wait_until_running(
    engine: Engine, job_id: str, say: Callable[[str], None], limit_s: float = START_LIMIT_S
) -> TaskView:
    """Return the first task whose program runs. `say` is called with each reason for which the job waits, once.

    Raises:
        JobFailed: the job has ended before.
        EngineUnavailable: no program runs after `limit_s` seconds.
    """
    deadline, said = time.monotonic() + limit_s, ""
    for update in Follower(engine, job_id).updates(POLL_S):
        require_running(job_id, update)
        for task in update.view.tasks.values():
            if task.state is State.RUNNING:
                return task
        if update.report.diagnostics not in ("", said):
            said = update.report.diagnostics
            say(f"{job_id}: {said}")
        if time.monotonic() > deadline:
            break
    raise EngineUnavailable(f"{job_id} has not started within {limit_s:.0f} s: {said}")
