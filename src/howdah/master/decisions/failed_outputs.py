"""Keeps the outputs of a failed job aside, where an output asks for it (`keep_failed`): tasks upload them before they
end.

The module is pure. The end of the job waits for the uploads, but not for a silent task, and not without limit.
"""

from __future__ import annotations

from howdah.master.decisions.heartbeat_timeouts import FENCE_S
from howdah.master.decisions.outputs import is_uploaded_by, keeps_failed
from howdah.master.state import GangState, TaskState
from howdah.spec import State
from howdah.wire.messages import Status

MAX_KEEPING_S = 600.0
"""How long the uploads may take after all programs have stopped."""


def is_keeping(state: GangState) -> bool:
    """Return whether the job has failed and keeps an output."""
    failed = state.outcome is not None and state.outcome.state is State.FAILED
    return failed and any(map(keeps_failed, state.job.outputs))


def is_awaited(state: GangState, now: float) -> bool:
    """Return whether some task that can still be heard has not uploaded."""
    if not is_keeping(state) or now >= state.stop_by + MAX_KEEPING_S:
        return False
    return any(_is_upload_missing(state, task, now) for task in state.tasks.values())


def on_reported(task: TaskState, status: Status) -> bool:
    """Note that the task has uploaded; return True if that is new."""
    if not status.kept or task.kept or task.exit is None or status.epoch != task.epoch:
        return False
    task.kept, task.uploaded = True, status.uploaded
    return True


def _is_upload_missing(state: GangState, task: TaskState, now: float) -> bool:
    if task.container is None or task.phase is None or task.kept or (task.exit is not None and task.exit.ok):
        return False
    makes = any(keeps_failed(output) and is_uploaded_by(state.job, output, task.id) for output in state.job.outputs)
    return makes and now - task.heard_at < FENCE_S
