"""What a failed job's tasks made is kept aside, where an output says so (`keep_failed`): they upload it before they go.

Pure. The job's end waits for them, but not for one that is silent, and not without limit.
"""

from __future__ import annotations

from howdah.master.decisions.outputs import keeps_failed, uploads
from howdah.master.state import FENCE_S, GangState, TaskState
from howdah.spec import State
from howdah.wire.messages import Status

LIMIT_S = 600.0
"""For the uploads, after everything has stopped."""


def is_keeping(state: GangState) -> bool:
    """Whether the job has failed, and has an output of which something is to be kept then."""
    failed = state.outcome is not None and state.outcome.state is State.FAILED
    return failed and any(map(keeps_failed, state.job.outputs))


def is_awaited(state: GangState, now: float) -> bool:
    """Whether some task that can still be heard has not uploaded yet."""
    if not is_keeping(state) or now >= state.stop_by + LIMIT_S:
        return False
    return any(_missing(state, task, now) for task in state.tasks.values())


def on_reported(task: TaskState, status: Status) -> bool:
    """Take note that the task has uploaded; whether that is news."""
    if not status.kept or task.kept or task.exit is None or status.epoch != task.epoch:
        return False
    task.kept, task.uploaded = True, status.uploaded
    return True


def _missing(state: GangState, task: TaskState, now: float) -> bool:
    if task.container is None or task.phase is None or task.kept or (task.exit is not None and task.exit.ok):
        return False
    makes = any(keeps_failed(output) and uploads(state.job, output, task.id) for output in state.job.outputs)
    return makes and now - task.heard_at < FENCE_S
