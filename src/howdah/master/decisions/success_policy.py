"""Decide when a job has succeeded, or cannot succeed any more, by the rule that its `success` names."""

from __future__ import annotations

import math
from fractions import Fraction

from howdah.master.decisions.actions import Action
from howdah.master.decisions.job_completion import stop
from howdah.master.state import GangState, TaskState
from howdah.spec import Outcome, State, chief


def end_if_decided(state: GangState, now: float, actions: list[Action]) -> bool:
    """End the job if its success is reached, or cannot be reached any more."""
    deciding = [task for task in state.tracked_tasks() if not _leads_to_others(state, task.id.role)]
    well = sum(task.exit is not None and task.exit.ok for task in deciding)
    left = sum(task.exit is None for task in state.tracked_tasks())
    rule = state.job.success
    if rule.endswith("%"):
        return _decide_by_share(state, deciding, well, left, now, actions)
    leader = state.tasks[chief(state.job)]
    led = leader.exit is not None and leader.exit.ok
    if rule == "chief" and led and left and _in_grace(state, now):
        return False
    if (rule == "any" and well) or (rule == "chief" and led) or (rule == "all" and not left and well):
        stop(state, Outcome(State.SUCCEEDED), "the job is done", now, actions)
    elif not left:
        stop(state, Outcome(State.FAILED, _reason_no_success(state)), "no task is left to wait for", now, actions)
    return not state.open


def _leads_to_others(state: GangState, role: str) -> bool:
    return any(role in other.after for other in state.job.roles.values())


def _in_grace(state: GangState, now: float) -> bool:
    """Return True while other tasks may go on after the chief is done."""
    state.done_at = state.done_at or now
    return now - state.done_at < state.job.timeouts.grace_s


def _decide_by_share(
    state: GangState, deciding: list[TaskState], well: int, left: int, now: float, actions: list[Action]
) -> bool:
    needed = math.ceil(len(deciding) * Fraction(state.job.success[:-1]) / 100)
    failed = [task for task in deciding if task.exit is not None and not task.exit.ok]
    if len(deciding) - len(failed) < needed:
        first = min(failed, key=lambda task: task.ended_at)
        reason = (
            f"{len(failed)} of {len(deciding)} tasks failed (success: {state.job.success}); "
            f"the first was {first.id}{on_node(first.node)}: {first.exit}"
        )
        stop(state, Outcome(State.FAILED, reason, first.id, first.exit), reason, now, actions)
    elif not left:
        stop(state, Outcome(State.SUCCEEDED), f"{well} of {len(deciding)} tasks ended well", now, actions)
    return not state.open


def _reason_no_success(state: GangState) -> str:
    wanted = str(chief(state.job)) if state.job.success == "chief" else "any task"
    return f"all tasks ended, and {wanted} had not ended well (success: {state.job.success})"


def on_node(node: str) -> str:
    """Return ` on NODE` for a sentence, "" where the node is not known."""
    return f" on {node}" if node else ""
