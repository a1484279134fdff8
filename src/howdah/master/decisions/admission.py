"""Checks that a status comes from the container and the attempt that a task has now. The module is pure."""

from __future__ import annotations

from howdah.master.state import GangState
from howdah.spec import TaskId
from howdah.wire.messages import Goal, Orders, Status


def reassign_orders(state: GangState, status: Status) -> Orders | None:
    """Return the orders for an executor whose container was reassigned to another attempt; None for any other
    executor."""
    reassign_to = state.reassigned_to.get(f"{status.task}/{status.attempt}")
    if reassign_to is None:
        return None
    return Orders(epoch=status.epoch, goal=Goal.REASSIGN, stop_s=state.job.timeouts.stop_s, reassign_to=reassign_to)


def explain_refusal(state: GangState, status: Status) -> str:
    """Return why the executor that sent `status` must end; "" when it is the one that the task has."""
    task = state.tasks.get(TaskId.parse(status.task))
    if task is None or task.attempt != status.attempt or task.container is None:
        return f"attempt {status.attempt} of {status.task} is not wanted any more"
    if status.container not in ("", task.container.id):  # an earlier master launched it and could not write it down
        return f"{status.task} runs in {task.container.id}, not in {status.container}"
    return ""
