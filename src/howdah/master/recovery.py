"""Rebuild the state of an earlier master from the event log that it wrote.

The event log holds the events that `step` accepted and the events that it decided. A replay feeds it the accepted
events and obtains the same decisions again, word for word, because time comes with the events. A decision that the log
lacks, because the earlier master was killed before it could write, is made by the new master and carried out now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from howdah.master.decisions import failure_policy, job_completion, time_shift
from howdah.master.decisions.actions import (
    Action,
    Commit,
    FindCheckpoint,
    LaunchTask,
    NotifyExecutors,
    RecordEvent,
    StatusReceived,
)
from howdah.master.decisions.gang_formation import (
    form_world,
    give_up_container,
    request_containers,
    start_if_all_joined,
)
from howdah.master.decisions.step import decide_by_time, step
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import TAKEOVER_S, GangState, Stage
from howdah.spec.event_lines import to_line
from howdah.spec.events import (
    Allocated,
    AllocationLost,
    CancelRequested,
    Checked,
    CheckpointFound,
    ContainerEnded,
    Ended,
    Event,
    GangRestarted,
    Greeted,
    JobFinished,
    JobStarted,
    Joined,
    LossAnnounced,
    MasterEnded,
    Measured,
    Noted,
    StacksTaken,
    Stalled,
    Started,
    Stopping,
    Straggling,
    TimeLost,
    TookOver,
    Used,
    WorldFormed,
    Yielded,
)
from howdah.wire.messages import Phase, Status

_INPUT_EVENTS = (
    JobStarted,
    Allocated,
    ContainerEnded,
    CancelRequested,
    AllocationLost,
    Checked,
    CheckpointFound,
    Noted,
    MasterEnded,
    LossAnnounced,
    Stalled,
    StacksTaken,
    TimeLost,
)
"""Events that came from outside, as they are in the log."""


def replay(state: GangState, log: Sequence[Event], now: float) -> list[Action]:
    """Bring a new `state` to the point where `log` ends; return the actions that were decided and not written, which
    are still to be done. Once the end of the job is written, the only action is to tell the engine. All timers restart
    at `now`, because no executor could reach a master meanwhile."""
    decided: list[Action] = []
    last = now
    state.replaying = True
    for event in log:
        before, last = last, event.time
        if isinstance(event, JobFinished):
            state.unrecorded.clear()
            state.replaying = False
            return job_completion.finish_again(state, event.outcome)
        if isinstance(event, TookOver):
            _restart_timers(state, before, event.time, decided)
        elif isinstance(event, snapshot_policy.SNAPSHOT_EVENTS):
            snapshot_policy.replay(state, event)
        elif isinstance(event, AllocationLost) and event.comes_back:
            continue  # the job was left to this master
        elif not isinstance(event, (Used, Measured, Straggling)) and not _expected(decided, event):
            decided += _replay_input(state, event)
            _expected(decided, event)
    _restart_timers(state, last, now, decided)
    state.unrecorded -= {event.epoch for event in log if isinstance(event, WorldFormed)}
    state.replaying = False
    left = [
        action for action in decided if not isinstance(action, (NotifyExecutors, LaunchTask, Commit, FindCheckpoint))
    ]
    return [*left, *_unanswered(state)]


def _unanswered(state: GangState) -> Iterator[Action]:
    """Return the requests that helper processes of the earlier master were working on: nobody will bring their
    answers."""
    if state.checkpoint_lookups.looking:
        yield FindCheckpoint(state.checkpoint_lookups.looking)
    if state.stage is Stage.COMMITTING and state.outcome is not None:
        yield job_completion.commit(state.outcome)


def _expected(decided: list[Action], event: Event) -> bool:
    """Return True if `event` is the next event that was recorded; then it and the actions before it are done."""
    for number, action in enumerate(decided):
        if isinstance(action, RecordEvent):
            if to_line(action.event) != to_line(event):
                return False
            del decided[: number + 1]
            return True
    return False


def _replay_input(state: GangState, event: Event) -> list[Action]:
    actions: list[Action] = []
    if isinstance(event, (Greeted, Joined, Started, Yielded)):
        actions = step(state, StatusReceived(event.time, _status(state, event)))
    elif isinstance(event, Ended):
        failure_policy.replay_end(state, event, actions)
    elif isinstance(event, GangRestarted) and event.epoch > state.epoch + 1:  # an executor was ahead of the log
        first = event.tasks[0] if event.tasks else next(iter(state.tasks))
        failure_policy.advance_epoch(state, state.tasks[first], event.epoch - 1, event.time, actions)
    elif isinstance(event, _INPUT_EVENTS) and not (isinstance(event, Noted) and event.decided):
        if isinstance(event, Checked) and event.pairs:
            _begin_pair_tests(state, event, actions)
        actions += step(state, event)
    else:  # a deadline had passed
        decide_by_time(state, event.time, actions)
    if isinstance(event, WorldFormed):
        _form_as_recorded(state, event, actions)
    elif isinstance(event, Stopping) and event.outcome is not None and state.open:
        job_completion.stop(state, event.outcome, event.reason, event.time, actions, unrecorded=True)
    return [action for action in actions if not (isinstance(action, RecordEvent) and isinstance(action.event, Used))]


def _begin_pair_tests(state: GangState, event: Checked, actions: list[Action]) -> None:
    """Begin the pair tests whose results `event` holds. The earlier master began them when their time came, which the
    log does not say."""
    formation = state.formations.get(event.epoch)
    if formation is not None and event.epoch not in state.preflight.pair_tests:
        start_if_all_joined(state, formation, event.time, actions)


def _form_as_recorded(state: GangState, event: WorldFormed, actions: list[Action]) -> None:
    """Form the world of this epoch, whatever this master would have waited for: programs were started in it. If the
    same message made the job end, that end comes later in the log, and may have been decided already."""
    formation, stage = state.formations.get(event.epoch), state.stage
    if formation is None or formation.waiting:
        return
    is_open = state.open
    made: list[Action] = []
    form_world(state, formation, event.time, made)
    actions += [action for action in made if not isinstance(action, RecordEvent)]
    if not is_open:
        state.stage = stage


def _status(state: GangState, event: Greeted | Joined | Started | Yielded) -> Status:
    """Return the status that the executor must have sent for `event` to be recorded."""
    task = state.tasks[event.task]
    fields: dict[str, Any] = {
        "host": task.host,
        "ip": task.ip,
        "pid": 0,
        "ports": task.ports,
        "yields": task.announced_values,
    }
    if isinstance(event, Greeted):
        phase = Phase.HELLO
        fields |= {"host": event.host, "pid": event.pid, "python": event.python}
    elif isinstance(event, Joined):
        phase = Phase.JOINED
        fields |= {"host": event.host, "ip": event.ip, "ports": event.ports, "data_files": event.data_files}
        fields |= {"data_bytes": event.data_bytes, "data_seconds": event.data_seconds}
        fields |= {"data_cached_bytes": event.data_cached_bytes, "pair_port": event.pair_port}
    elif isinstance(event, Started):
        phase = Phase.RUNNING
        fields |= {"program_pid": event.pid, "program_python": event.python}
    else:
        phase = Phase.RUNNING
        fields |= {"yields": event.values}
    return Status(
        str(task.id), attempt=task.attempt, epoch=task.epoch, sequence=task.sequence + 1, phase=phase, **fields
    )


def _restart_timers(state: GangState, last: float, now: float, decided: list[Action]) -> None:
    """Restart all timers, because no executor could reach a master meanwhile. A container from which nothing was heard
    may never have been started: it is released, and everything that is missing is asked for again."""
    if now < last:  # the clock of the earlier master was ahead
        time_shift.shift_deadlines(state, now - last)
    else:  # or behind: only deadlines that must not end too soon keep their distance from the last event
        time_shift.shift_fences(state, now - last)
    for trial in state.preflight.pair_tests.values():
        trial.began = now
    for task in state.tasks.values():
        task.sequence, task.launched_at, task.adopted = 0, now, task.container is not None
        task.heard_at = now + TAKEOVER_S  # by the earlier master, which may have lived until then
        if task.live and task.phase is None and state.open:
            give_up_container(state, task, now, decided)
            if state.takes_part(task.id):
                state.pending_tasks[task.id.role][task.id] = None
        if task.container is None and task.exit is None and task.epoch:
            task.fence(now + TAKEOVER_S)  # it may have run in a container that the log does not name
    state.asked_at, state.taken_over = now, True
    if state.open and not state.ask_again_at:
        request_containers(state, now, decided)
