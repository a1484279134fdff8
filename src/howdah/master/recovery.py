"""A master that takes over reads what the one before it wrote, and knows what that one knew.

The event log holds what `step` accepted and what it decided. Replaying feeds it the former again and finds the latter
made anew, word for word, for time comes with the events; a decision that the log lacks, because the old master was
killed before it could write, is made by the new one and carried out now.
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
"""What came from outside, as it is in the log."""


def replay(state: GangState, log: Sequence[Event], now: float) -> list[Action]:
    """Bring a new `state` to where `log` leaves it; what had been decided and was not written is still to be done. Once
    the end of the job is written, nothing is but to tell the engine.

    `now` begins every wait anew: nobody is late for what was said while no master listened.
    """
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
            snapshot_policy.remember(state, event)
        elif isinstance(event, AllocationLost) and event.comes_back:
            continue  # this is the master to which the job was left
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
    """What helpers of the master before this one were doing; whatever was recorded since, nobody brings an answer."""
    if state.checkpoint_lookups.looking:
        yield FindCheckpoint(state.checkpoint_lookups.looking)
    if state.stage is Stage.COMMITTING and state.outcome is not None:
        yield job_completion.commit(state.outcome)


def _expected(decided: list[Action], event: Event) -> bool:
    """Whether `event` is the next that was recorded; it and what came before it are done, then."""
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
    else:  # the time had come for it
        decide_by_time(state, event.time, actions)
    if isinstance(event, WorldFormed):
        _form_as_recorded(state, event, actions)
    elif isinstance(event, Stopping) and event.outcome is not None and state.open:
        job_completion.stop(state, event.outcome, event.reason, event.time, actions, unrecorded=True)
    return [action for action in actions if not (isinstance(action, RecordEvent) and isinstance(action.event, Used))]


def _begin_pair_tests(state: GangState, event: Checked, actions: list[Action]) -> None:
    """The master before this one had begun the tests whose results `event` has, when the time came: that is not in the
    log."""
    formation = state.formations.get(event.epoch)
    if formation is not None and event.epoch not in state.preflight.pair_tests:
        start_if_all_joined(state, formation, event.time, actions)


def _form_as_recorded(state: GangState, event: WorldFormed, actions: list[Action]) -> None:
    """Programs were started in this epoch, whatever this master would have waited for; what the same message made end
    the job comes after it in the log, and may have been decided already."""
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
    """What the executor must have said for `event` to be recorded."""
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
    """Nobody is late for what was said while no master listened. A container from which nothing was heard may never
    have been started: it goes back, and another is asked for, as is everything that is still missing."""
    if now < last:  # the clock of the master before this one was ahead
        time_shift.shift_deadlines(state, now - last)
    else:  # or behind: only what must not end too soon is as far from now as it was from its last event
        time_shift.shift_fences(state, now - last)
    for trial in state.preflight.pair_tests.values():
        trial.began = now
    for task in state.tasks.values():
        task.sequence, task.launched_at, task.adopted = 0, now, task.container is not None
        task.heard_at = now + TAKEOVER_S  # by the master before this one, which may have lived till then
        if task.live and task.phase is None and state.open:
            give_up_container(state, task, now, decided)
            if state.takes_part(task.id):
                state.pending_tasks[task.id.role][task.id] = None
        if task.container is None and task.exit is None and task.epoch:
            task.fence(now + TAKEOVER_S)  # it may have had one, and run there, and nobody wrote it down
    state.asked_at, state.taken_over = now, True
    if state.open and not state.ask_again_at:
        request_containers(state, now, decided)
