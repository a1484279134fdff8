"""Detects programs that run and do nothing, by the time since their last sign of progress.

Executors report for how long a program has shown no sign of progress. When that is too long for one program, the stacks
of all are dumped. The stacks name the tasks that the others seem to wait for (without stacks the longest time does),
and the `on_stall` of those tasks decides what follows.
"""

from __future__ import annotations

from collections.abc import Iterable

from howdah.master.decisions import failure_policy
from howdah.master.decisions.actions import Action, CollectStacks, NotifyExecutors, RecordEvent
from howdah.master.decisions.gang_formation import deadline_passed
from howdah.master.decisions.job_completion import stop
from howdah.master.decisions.success_policy import end_sentence
from howdah.master.state import GangState, TaskState
from howdah.spec import Exit, Outcome, State, TaskId
from howdah.spec.events import StacksTaken, Stalled
from howdah.spec.message import message

WAIT_S = 90.0
"""How long the master waits for the stacks."""


def check_for_hangs(state: GangState, now: float, actions: list[Action]) -> None:
    """Report the tasks whose time limit is over."""
    hangs, limit = state.hangs, state.job.timeouts.stall_s
    if hangs.awaited and now > hangs.until:
        problem = message("they did not arrive within {seconds} s", seconds=f"{WAIT_S:.0f}")
        on_stacks_collected(state, StacksTaken(now, problem=problem), actions)
    if hangs.awaited or not state.open:
        return
    late: list[TaskState] = []
    for task in state.tasks.values():
        epoch, reported_s = hangs.reported.get(task.id, (0, 0.0))
        if epoch and (task.epoch != epoch or task.idle_s < limit / 2):
            del hangs.reported[task.id]
            epoch, reported_s = 0, 0.0
        is_late = deadline_passed(limit, task.idle_s - reported_s) and (not epoch or _has_stall_action(state, task))
        if is_late and state.tracked(task.id) and _program_runs(task) and state.role(task.id).on_stall != "ignore":
            late.append(task)
    if late:
        longest = max(task.idle_s for task in late)
        on_stalled(state, Stalled(now, tuple(task.id for task in late), longest), actions)


def _has_stall_action(state: GangState, task: TaskState) -> bool:
    """Return whether more follows than a report: such a task is checked again once another task was restarted."""
    return state.role(task.id).on_stall in ("restart", "fail")


def _program_runs(task: TaskState) -> bool:
    return task.live and task.started == task.epoch and task.formed and not task.stopped


def on_stalled(state: GangState, event: Stalled, actions: list[Action]) -> None:
    """Collect the stacks of all programs."""
    hangs = state.hangs
    hangs.reported |= {id_: (state.tasks[id_].epoch, state.tasks[id_].idle_s) for id_ in event.tasks}
    hangs.awaited, hangs.idle_s, hangs.until = event.tasks, event.quiet_s, event.time + WAIT_S
    hangs.epochs = {id_: state.tasks[id_].epoch for id_ in tasks_with_programs(state)}
    actions += [RecordEvent(event), CollectStacks(tuple(hangs.epochs), event.tasks)]


def tasks_with_programs(state: GangState) -> Iterable[TaskId]:
    """Return the tasks whose program runs."""
    return (task.id for task in state.tasks.values() if _program_runs(task))


def on_stacks_collected(state: GangState, event: StacksTaken, actions: list[Action]) -> None:
    """Act on the stacks that a stall asked for, whether they came or not."""
    actions.append(RecordEvent(event))
    if event.by:
        return
    stalled, state.hangs.awaited = state.hangs.awaited, ()
    if not stalled or not state.open or state.done_at:
        return
    named = [state.tasks[id_] for id_ in (*event.suspects, *stalled) if id_ in state.tasks]
    candidates = [task.id for task in named if _program_runs(task) and state.hangs.epochs.get(task.id) == task.epoch]
    candidates = [id_ for id_ in candidates if _has_stall_action(state, state.tasks[id_])]
    if candidates:
        _restart_or_fail(state, candidates[0], stalled, event, actions)


def _restart_or_fail(
    state: GangState, id_: TaskId, stalled: tuple[TaskId, ...], event: StacksTaken, actions: list[Action]
) -> None:
    others = len({*stalled} - {id_})
    template = "no sign of progress for {seconds} s (timeouts.stall)"
    if others and event.reason:
        template = "no sign of progress for {seconds} s (timeouts.stall), with {count} more; {reason}"
    elif others:
        template = "no sign of progress for {seconds} s (timeouts.stall), with {count} more"
    elif event.reason:
        template = "no sign of progress for {seconds} s (timeouts.stall); {reason}"
    detail = message(template, seconds=f"{state.hangs.idle_s:.0f}", count=others, reason=event.reason)
    exit, task = Exit("stalled", detail=detail), state.tasks[id_]
    if state.role(id_).on_stall == "fail":
        reason = end_sentence(id_, task.node, exit)
        stop(state, Outcome(State.FAILED, reason, id_, exit), reason, event.time, actions)
        return
    failure_policy.task_ended(state, task, exit, event.time, actions)
    if state.open and task.exit is not None:  # its failure does not matter, but its program must not go on
        task.stopped = True
        actions.append(NotifyExecutors((id_,)))
