"""Whether a status is that of the container and the attempt that a task has now. Pure."""

from __future__ import annotations

from howdah.master.state import GangState
from howdah.spec import TaskId
from howdah.wire.messages import Goal, Orders, Status


def reassignment(state: GangState, status: Status) -> Orders | None:
    """The orders for an executor whose container is that of another attempt now; None for any other executor."""
    become = state.reassigned_to.get(f"{status.task}/{status.attempt}")
    if become is None:
        return None
    return Orders(epoch=status.epoch, goal=Goal.REASSIGN, stop_s=state.job.timeouts.stop_s, become=become)


def refusal(state: GangState, status: Status) -> str:
    """Why the executor that sent `status` is to end; "" when it is the one that the task has."""
    task = state.tasks.get(TaskId.parse(status.task))
    if task is None or task.attempt != status.attempt or task.container is None:
        return f"attempt {status.attempt} of {status.task} is not wanted any more"
    if status.container not in ("", task.container.id):  # of a master before this one, who could not write it down
        return f"{status.task} runs in {task.container.id}, not in {status.container}"
    return ""
