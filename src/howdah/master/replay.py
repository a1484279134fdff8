"""A master that takes over reads what the one before it wrote, and knows what that one knew.

The event log holds what `step` accepted and what it decided. Replaying feeds it the former again and finds the latter
made anew, word for word, for time comes with the events; a decision that the log lacks, because the old master was
killed before it could write, is made by the new one and carried out now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from howdah.master import saves, verdicts
from howdah.master.actions import Action, Heard, Launch, Notify, Record
from howdah.master.forming import ask, give_up_container
from howdah.master.state import GangState
from howdah.master.step import decide_by_time, step
from howdah.spec import events as e
from howdah.spec.events import to_line
from howdah.wire.messages import Phase, Status

_TOLD = (
    e.JobStarted,
    e.Allocated,
    e.CancelRequested,
    e.Checked,
    e.CheckpointFound,
    e.Noted,
    e.LossAnnounced,
    e.Stalled,
    e.StacksTaken,
)
"""What came from outside, as it is in the log."""


def replay(state: GangState, log: Iterable[e.Event], now: float) -> list[Action]:
    """Bring a new `state` to where `log` leaves it; what had been decided and was not written is still to be done.

    `now` begins every wait anew: nobody is late for what was said while no master listened.
    """
    decided: list[Action] = []
    for event in log:
        if isinstance(event, e.TookOver):
            _begin_waits_anew(state, event.time, decided)
        elif isinstance(event, saves.ASIDE):
            saves.remember(state, event)
        elif not isinstance(event, (e.Used, e.Measured, e.Straggling)) and not _expected(decided, event):
            decided += _fed(state, event)
            _expected(decided, event)
    _begin_waits_anew(state, now, decided)
    return [action for action in decided if not isinstance(action, (Notify, Launch))]


def _expected(decided: list[Action], event: e.Event) -> bool:
    """Whether `event` is the next that was recorded; it and what came before it are done, then."""
    for number, action in enumerate(decided):
        if isinstance(action, Record):
            if to_line(action.event) != to_line(event):
                return False
            del decided[: number + 1]
            return True
    return False


def _fed(state: GangState, event: e.Event) -> list[Action]:
    actions: list[Action] = []
    if isinstance(event, (e.Greeted, e.Joined, e.Started, e.Yielded)):
        actions = step(state, Heard(event.time, _status(state, event)))
    elif isinstance(event, e.Ended):
        verdicts.replay_end(state, event, actions)
    elif isinstance(event, _TOLD) and not (isinstance(event, e.Noted) and event.decided):
        actions = step(state, event)
    else:  # the time had come for it
        decide_by_time(state, event.time, actions)
    return [action for action in actions if not (isinstance(action, Record) and isinstance(action.event, e.Used))]


def _status(state: GangState, event: e.Greeted | e.Joined | e.Started | e.Yielded) -> Status:
    """What the executor must have said for `event` to be recorded."""
    task = state.tasks[event.task]
    fields: dict[str, Any] = {"host": task.host, "ip": task.ip, "pid": 0, "ports": task.ports, "yields": task.yields}
    if isinstance(event, e.Greeted):
        phase = Phase.HELLO
        fields |= {"host": event.host, "pid": event.pid, "python": event.python}
    elif isinstance(event, e.Joined):
        phase = Phase.JOINED
        fields |= {"host": event.host, "ip": event.ip, "ports": event.ports, "data_files": event.data_files}
        fields |= {"data_bytes": event.data_bytes, "data_seconds": event.data_seconds}
        fields |= {"data_cached_bytes": event.data_cached_bytes, "pair_port": event.pair_port}
    elif isinstance(event, e.Started):
        phase = Phase.RUNNING
        fields |= {"program_pid": event.pid, "program_python": event.python}
    else:
        phase = Phase.RUNNING
        fields |= {"yields": event.values}
    return Status(str(task.id), task.attempt, task.epoch, task.sequence + 1, phase, **fields)


def _begin_waits_anew(state: GangState, now: float, decided: list[Action]) -> None:
    """Nobody is late for what was said while no master listened. A container from which nothing was heard may never
    have been started: it goes back, and another is asked for, as is everything that is still missing."""
    for trial in state.fitness.trials.values():
        trial.began = now
    for task in state.tasks.values():
        task.sequence, task.heard_at, task.launched_at, task.adopted = 0, now, now, task.container is not None
        if task.live and task.phase is None and state.open:
            give_up_container(state, task, now, decided)
            if state.takes_part(task.id):
                state.unplaced[task.id.role][task.id] = None
        if task.container is None and task.exit is None and task.epoch:
            task.fence(now)  # it may have had one, and run there, and nobody wrote it down
    state.asked_at, state.taken_over = now, True
    if state.open and not state.ask_again_at:
        ask(state, now, decided)
