"""A master that takes over reads what the one before it wrote, and knows what that one knew.

The event log holds what `step` accepted and what it decided. Replaying feeds it the former again and finds the latter
made anew, word for word, for time comes with the events; a decision that the log lacks, because the old master was
killed before it could write, is made by the new one and carried out now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from howdah.master.decisions import failure_policy, job_completion, time_shift
from howdah.master.decisions.actions import Action, Commit, FindCheckpoint, Heard, Launch, Notify, Record
from howdah.master.decisions.gang_formation import ask, form_if_complete, form_world, give_up_container
from howdah.master.decisions.step import decide_by_time, step
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import TAKEOVER_S, GangState, Stage
from howdah.spec import events as e
from howdah.spec.event_lines import to_line
from howdah.wire.messages import Phase, Status

_TOLD = (
    e.JobStarted,
    e.Allocated,
    e.ContainerEnded,
    e.CancelRequested,
    e.AllocationLost,
    e.Checked,
    e.CheckpointFound,
    e.Noted,
    e.MasterEnded,
    e.LossAnnounced,
    e.Stalled,
    e.StacksTaken,
    e.TimeLost,
)
"""What came from outside, as it is in the log."""


def replay(state: GangState, log: Sequence[e.Event], now: float) -> list[Action]:
    """Bring a new `state` to where `log` leaves it; what had been decided and was not written is still to be done. Once
    the end of the job is written, nothing is but to tell the engine.

    `now` begins every wait anew: nobody is late for what was said while no master listened.
    """
    decided: list[Action] = []
    last = now
    state.replaying = True
    for event in log:
        before, last = last, event.time
        if isinstance(event, e.JobFinished):
            state.unrecorded.clear()
            state.replaying = False
            return job_completion.finish_again(state, event.outcome)
        if isinstance(event, e.TookOver):
            _begin_waits_anew(state, before, event.time, decided)
        elif isinstance(event, snapshot_policy.ASIDE):
            snapshot_policy.remember(state, event)
        elif isinstance(event, e.AllocationLost) and event.comes_back:
            continue  # this is the master to which the job was left
        elif not isinstance(event, (e.Used, e.Measured, e.Straggling)) and not _expected(decided, event):
            decided += _fed(state, event)
            _expected(decided, event)
    _begin_waits_anew(state, last, now, decided)
    state.unrecorded -= {event.epoch for event in log if isinstance(event, e.WorldFormed)}
    state.replaying = False
    left = [action for action in decided if not isinstance(action, (Notify, Launch, Commit, FindCheckpoint))]
    return [*left, *_unanswered(state)]


def _unanswered(state: GangState) -> Iterator[Action]:
    """What helpers of the master before this one were doing; whatever was recorded since, nobody brings an answer."""
    if state.looks.looking:
        yield FindCheckpoint(state.looks.looking)
    if state.stage is Stage.COMMITTING and state.outcome is not None:
        yield job_completion.commit(state.outcome)


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
        failure_policy.replay_end(state, event, actions)
    elif isinstance(event, e.GangRestarted) and event.epoch > state.epoch + 1:  # an executor was ahead of the log
        first = event.tasks[0] if event.tasks else next(iter(state.tasks))
        failure_policy.catch_up(state, state.tasks[first], event.epoch - 1, event.time, actions)
    elif isinstance(event, _TOLD) and not (isinstance(event, e.Noted) and event.decided):
        if isinstance(event, e.Checked) and event.pairs:
            _begin_pair_tests(state, event, actions)
        actions += step(state, event)
    else:  # the time had come for it
        decide_by_time(state, event.time, actions)
    if isinstance(event, e.WorldFormed):
        _form_as_recorded(state, event, actions)
    elif isinstance(event, e.Stopping) and event.outcome is not None and state.open:
        job_completion.stop(state, event.outcome, event.reason, event.time, actions, unrecorded=True)
    return [action for action in actions if not (isinstance(action, Record) and isinstance(action.event, e.Used))]


def _begin_pair_tests(state: GangState, event: e.Checked, actions: list[Action]) -> None:
    """The master before this one had begun the tests whose results `event` has, when the time came: that is not in the
    log."""
    formation = state.formations.get(event.epoch)
    if formation is not None and event.epoch not in state.fitness.trials:
        form_if_complete(state, formation, event.time, actions)


def _form_as_recorded(state: GangState, event: e.WorldFormed, actions: list[Action]) -> None:
    """Programs were started in this epoch, whatever this master would have waited for; what the same message made end
    the job comes after it in the log, and may have been decided already."""
    formation, stage = state.formations.get(event.epoch), state.stage
    if formation is None or formation.waiting:
        return
    is_open = state.open
    made: list[Action] = []
    form_world(state, formation, event.time, made)
    actions += [action for action in made if not isinstance(action, Record)]
    if not is_open:
        state.stage = stage


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


def _begin_waits_anew(state: GangState, last: float, now: float, decided: list[Action]) -> None:
    """Nobody is late for what was said while no master listened. A container from which nothing was heard may never
    have been started: it goes back, and another is asked for, as is everything that is still missing."""
    if now < last:  # the clock of the master before this one was ahead
        time_shift.move(state, now - last)
    else:  # or behind: only what must not end too soon is as far from now as it was from its last event
        time_shift.move_fences(state, now - last)
    for trial in state.fitness.trials.values():
        trial.began = now
    for task in state.tasks.values():
        task.sequence, task.launched_at, task.adopted = 0, now, task.container is not None
        task.heard_at = now + TAKEOVER_S  # by the master before this one, which may have lived till then
        if task.live and task.phase is None and state.open:
            give_up_container(state, task, now, decided)
            if state.takes_part(task.id):
                state.unplaced[task.id.role][task.id] = None
        if task.container is None and task.exit is None and task.epoch:
            task.fence(now + TAKEOVER_S)  # it may have had one, and run there, and nobody wrote it down
    state.asked_at, state.taken_over = now, True
    if state.open and not state.ask_again_at:
        ask(state, now, decided)
