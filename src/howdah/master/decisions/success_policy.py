"""Decides when a job has succeeded, or cannot succeed any more, by the rule that its `success` names."""

from __future__ import annotations

import math
from fractions import Fraction

from howdah.master.decisions.actions import Action
from howdah.master.decisions.job_completion import fail, stop
from howdah.master.state import GangState, TaskState
from howdah.spec import Exit, Outcome, State, TaskId, chief
from howdah.spec.message import Message, message


def end_if_decided(state: GangState, now: float, actions: list[Action]) -> bool:
    """End the job if its success is reached, or cannot be reached any more."""
    leading = {name for role in state.job.roles.values() for name in role.after}
    deciding = [task for task in state.tracked_tasks() if task.id.role not in leading]
    well = sum(task.exit is not None and task.exit.ok for task in deciding)
    left = sum(task.exit is None for task in state.tracked_tasks())
    rule = state.job.success
    if rule.endswith("%"):
        return _decide_by_share(state, deciding, well, left, now, actions)
    leader = state.tasks[chief(state.job)]
    led = leader.exit is not None and leader.exit.ok
    if rule == "chief" and led and left and _grace_lasts(state, now):
        return False
    if (rule == "any" and well) or (rule == "chief" and led) or (rule == "all" and not left and well):
        stop(state, Outcome(State.SUCCEEDED), message("the job is done"), now, actions)
    elif not left:
        reason = message("no task is left to wait for")
        stop(state, _without_success(state), reason, now, actions)
    return not state.open


def _grace_lasts(state: GangState, now: float) -> bool:
    """Return whether other tasks may go on after the chief is done."""
    state.done_at = state.done_at or now
    return now - state.done_at < state.job.timeouts.grace_s


def _decide_by_share(
    state: GangState, deciding: list[TaskState], well: int, left: int, now: float, actions: list[Action]
) -> bool:
    needed = math.ceil(len(deciding) * Fraction(state.job.success[:-1]) / 100)
    failed = [task for task in deciding if task.exit is not None and not task.exit.ok]
    if len(deciding) - len(failed) < needed:
        first = min(failed, key=lambda task: task.ended_at)
        assert first.exit is not None
        reason = message(
            "{count} of {all} tasks failed (success: {rule}); the first was {first}",
            count=len(failed),
            all=len(deciding),
            rule=state.job.success,
            first=end_sentence(first.id, first.node, first.exit),
        )
        fail(state, reason, now, actions, first.id, first.exit)
    elif not left:
        reason = message("{count} of {all} tasks ended well", count=well, all=len(deciding))
        stop(state, Outcome(State.SUCCEEDED), reason, now, actions)
    return not state.open


def _without_success(state: GangState) -> Outcome:
    """Return the outcome of a job whose tasks have all ended, and of which no failure matters."""
    wanted = str(chief(state.job)) if state.job.success == "chief" else message("any task")
    template = "all tasks ended, and {wanted} had not ended well (success: {rule})"
    reason = message(template, wanted=wanted, rule=state.job.success)
    failed = [task for task in state.tracked_tasks() if task.exit is not None and not task.exit.ok]
    if not failed:
        return Outcome(State.FAILED, reason)
    first = min(failed, key=lambda task: task.ended_at)
    assert first.exit is not None
    end = end_sentence(first.id, first.node, first.exit)
    return Outcome(State.FAILED, message("{reason}; the first was {end}", reason=reason, end=end), first.id, first.exit)


def end_sentence(task: TaskId, node: str, exit: Exit) -> Message:
    """Return the sentence that says how a task ended, with its node where that is known."""
    if not node:
        return message("{task}: {what}", task=task, what=exit)
    return message("{task} on {node}: {exit}", task=task, node=node, exit=exit)
