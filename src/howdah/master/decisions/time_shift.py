"""Time that counts for nobody: every moment that the state waits from, or for, moves by it."""

from __future__ import annotations

from howdah.master.decisions.actions import Action, Record
from howdah.master.state import GangState
from howdah.spec import events as e


def on_time_lost(state: GangState, event: e.TimeLost, actions: list[Action]) -> None:
    """Nobody is silent, late, or fenced for long enough, because the master did not run or its clock was set."""
    actions.append(Record(event))
    move(state, event.seconds)


def move(state: GangState, seconds: float) -> None:
    """Every moment that is waited from, or for, is so much later."""
    _move(state, seconds, "begun_at", "asked_at", "granted_at", "ask_again_at", "running_since", "formed_at")
    _move(state, seconds, "done_at", "stop_by")
    _move(state.stalls, seconds, "until")
    if state.blame is not None:
        _move(state.blame, seconds, "seen_at")
    for task in state.tasks.values():
        _move(task, seconds, "launched_at", "heard_at", "used_at", "ended_at")
    for formation in state.formations.values():
        _move(formation, seconds, "not_before")
    for trial in state.fitness.trials.values():
        _move(trial, seconds, "began")
    for run in state.saves.running.values():
        _move(run, seconds, "started_at", "told_at")
    for wish in state.saves.wanted.values():
        _move(wish, seconds, "not_before")
    state.saves.due = {number: moment + seconds for number, moment in state.saves.due.items()}
    state.uncounted = [moment + seconds for moment in state.uncounted]
    move_fences(state, seconds)


def move_fences(state: GangState, seconds: float) -> None:
    """What may still run has so much longer to end."""
    for task in state.tasks.values():
        _move(task, seconds, "fenced_until")


def _move(what: object, seconds: float, *moments: str) -> None:
    for name in moments:
        if moment := getattr(what, name):
            setattr(what, name, moment + seconds)
