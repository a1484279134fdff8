"""Shifts all deadlines and timestamps in the state after the master was suspended or its clock was set."""

from __future__ import annotations

from howdah.master.decisions.actions import Action, RecordEvent
from howdah.master.state import GangState
from howdah.spec.events import TimeLost


def on_time_lost(state: GangState, event: TimeLost, actions: list[Action]) -> None:
    """Shift the state by the lost time. Otherwise executors would count as silent or late, and fences as over, only
    because the master did not run or its clock was set."""
    actions.append(RecordEvent(event))
    shift_deadlines(state, event.seconds)


def shift_deadlines(state: GangState, seconds: float) -> None:
    """Shift every moment that a deadline counts from, or ends at."""
    _shift(state, seconds, "begun_at", "requested_at", "granted_at", "request_again_at", "running_since", "formed_at")
    _shift(state, seconds, "done_at", "stop_by")
    _shift(state.hangs, seconds, "until")
    if state.last_restart_cause is not None:
        _shift(state.last_restart_cause, seconds, "seen_at")
    for task in state.tasks.values():
        _shift(task, seconds, "launched_at", "heard_at", "used_at", "ended_at")
    for formation in state.formations.values():
        _shift(formation, seconds, "not_before")
    for test in state.preflight.pair_tests.values():
        _shift(test, seconds, "began")
    for run in state.snapshots.running.values():
        _shift(run, seconds, "started_at", "reported_at")
    for request in state.snapshots.requested.values():
        _shift(request, seconds, "not_before")
    state.snapshots.due = {number: moment + seconds for number, moment in state.snapshots.due.items()}
    state.free_restarts = [moment + seconds for moment in state.free_restarts]
    shift_fences(state, seconds)


def shift_fences(state: GangState, seconds: float) -> None:
    """Shift the fences of programs that may still run."""
    for task in state.tasks.values():
        _shift(task, seconds, "fenced_until")


def _shift(what: object, seconds: float, *moments: str) -> None:
    for name in moments:
        if moment := getattr(what, name):
            setattr(what, name, moment + seconds)
