"""Rebuilds the state of an earlier master from the event log that it wrote.

The event log holds the events that `step` accepted and the events that it decided. A replay feeds it the accepted
events and obtains the same decisions again, word for word, because time comes with the events. A decision that the log
lacks, because the earlier master was killed before it could write, is made by the new master and carried out now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from howdah.master.decisions import failure_policy, job_completion, time_shift
from howdah.master.decisions.actions import (
    Action,
    Commit,
    FindCheckpoint,
    Finish,
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
from howdah.master.decisions.heartbeat_timeouts import TAKEOVER_S
from howdah.master.decisions.step import HANDLERS, decide_by_time, step
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import GangState, Stage
from howdah.spec import events
from howdah.spec.event_lines import to_line
from howdah.wire.messages import Phase, Status

_FROM_STATUS = (events.Greeted, events.Joined, events.Started, events.Yielded, events.TrackerRunsFound)
_SAMPLES = (events.Used, events.Measured, events.Straggling, events.Waiting)
"""Events that decide nothing."""


def replay(state: GangState, log: Sequence[events.Event], now: float, fences: bool = True) -> list[Action]:
    """Bring a new `state` to the point where `log` ends; return the actions that were decided and not written, which
    are still to be done. Once the end of the job is written, the only action is to tell the engine. All timers restart
    at `now`, because no executor could reach a master meanwhile. Without `fences` no task waits for programs of
    containers that the log does not name, because the engine kills them."""
    decided: list[Action] = []
    last = now
    state.replaying = True
    for event in log:
        before, last = last, event.time
        if isinstance(event, events.JobFinished):
            # The end is final: users know of it, and may have moved the outputs. Only the engine does not know of it.
            state.unrecorded.clear()
            state.replaying, state.stage, state.outcome = False, Stage.DONE, event.outcome
            return [Finish(event.outcome)]
        if isinstance(event, events.TookOver):
            _restart_timers(state, before, event.time, decided, fences)
        elif isinstance(event, snapshot_policy.SNAPSHOT_EVENTS):
            snapshot_policy.replay(state, event)
        elif isinstance(event, events.AllocationLost) and event.comes_back:
            continue  # the job was left to this master
        elif not isinstance(event, _SAMPLES) and not _is_next_recorded(decided, event):
            decided += _replay_input(state, event)
            _is_next_recorded(decided, event)
    _restart_timers(state, last, now, decided, fences)
    state.unrecorded -= {event.epoch for event in log if isinstance(event, events.WorldFormed)}
    state.replaying = False
    done_otherwise = (NotifyExecutors, LaunchTask, Commit, FindCheckpoint)
    return [
        *(action for action in decided if not isinstance(action, done_otherwise)),
        *_unanswered_requests(state),
        *snapshot_policy.give_up_started(state, now),
    ]


def _unanswered_requests(state: GangState) -> Iterator[Action]:
    """Yield the requests that helper processes of the earlier master were working on: their answers are lost."""
    if state.checkpoint_lookups.looking:
        yield FindCheckpoint(state.checkpoint_lookups.looking)
    if state.stage is Stage.COMMITTING and state.outcome is not None:
        yield job_completion.commit(state.outcome)


def _is_next_recorded(decided: list[Action], event: events.Event) -> bool:
    """Return whether `event` is the next event that was recorded; then it and the actions before it are done."""
    for number, action in enumerate(decided):
        if isinstance(action, RecordEvent):
            if to_line(action.event) != to_line(event):
                return False
            del decided[: number + 1]
            return True
    return False


def _replay_input(state: GangState, event: events.Event) -> list[Action]:
    actions: list[Action] = []
    if isinstance(event, _FROM_STATUS):
        actions = step(state, StatusReceived(event.time, _status(state, event)))
    elif isinstance(event, events.Ended):
        failure_policy.replay_end(state, event, actions)
    elif isinstance(event, events.GangRestarted) and event.epoch > state.epoch + 1:  # an executor was ahead of the log
        first = event.tasks[0] if event.tasks else next(iter(state.tasks))
        failure_policy.advance_epoch(state, state.tasks[first], event.epoch - 1, event.time, actions)
    elif type(event) in HANDLERS and not (isinstance(event, events.Noted) and event.decided):
        if isinstance(event, events.Checked) and event.pairs:
            _begin_pair_tests(state, event, actions)
        actions += step(state, event)
    else:  # a deadline had passed
        decide_by_time(state, event.time, actions)
        if isinstance(event, events.GangRestarted) and event.epoch == state.epoch + 1 and state.open:
            failure_policy.restart_as_recorded(state, event, actions)  # a decision of an earlier version
    if isinstance(event, events.WorldFormed):
        _form_as_recorded(state, event, actions)
    elif isinstance(event, events.Stopping) and event.outcome is not None and state.open:
        job_completion.stop(state, event.outcome, event.reason, event.time, actions, unrecorded=True)
    return [action for action in actions if not (isinstance(action, RecordEvent) and type(action.event) is events.Used)]


def _begin_pair_tests(state: GangState, event: events.Checked, actions: list[Action]) -> None:
    """Begin the pair tests whose results `event` holds. The earlier master began them when their time came, which the
    log does not say."""
    formation = state.formations.get(event.epoch)
    if formation is not None and event.epoch not in state.preflight.pair_tests:
        start_if_all_joined(state, formation, event.time, actions)


def _form_as_recorded(state: GangState, event: events.WorldFormed, actions: list[Action]) -> None:
    """Form the world of this epoch, whatever this master would have waited for: programs were started in it. If the
    same message made the job end, that end comes later in the log, and may have been decided already."""
    formation, stage, is_open = state.formations.get(event.epoch), state.stage, state.open
    if formation is None or formation.waiting:
        return
    decided: list[Action] = []
    form_world(state, formation, event.time, decided)
    actions += [action for action in decided if not isinstance(action, RecordEvent)]
    if not is_open:
        state.stage = stage


def _status(state: GangState, event: events.Event) -> Status:
    """Return the status that the executor must have sent for `event` to be recorded."""
    assert isinstance(event, _FROM_STATUS)
    task = state.tasks[event.task]
    phase = {events.Greeted: Phase.HELLO, events.Joined: Phase.JOINED}.get(type(event), Phase.RUNNING)
    status = Status(
        str(task.id),
        attempt=task.attempt,
        epoch=task.epoch,
        sequence=task.sequence + 1,
        phase=phase,
        host=task.host,
        pid=0,
        ip=task.ip,
        ports=task.ports,
        yields=task.announced_values,
    )
    if isinstance(event, events.Greeted):
        return replace(status, host=event.host, pid=event.pid, python=event.python)
    if isinstance(event, events.Joined):
        fields = ("host", "ip", "ports", "data_files", "data_bytes", "data_seconds", "data_cached_bytes", "pair_port")
        return replace(status, **{name: getattr(event, name) for name in fields})
    if isinstance(event, events.Started):
        status = replace(status, program_pid=event.pid, program_python=event.python, program_gpus=event.gpus)
        return replace(status, log_offset=event.log_offset)
    if isinstance(event, events.TrackerRunsFound):
        return replace(status, tracker_runs=event.urls)
    return replace(status, yields=event.values)


def _restart_timers(state: GangState, last: float, now: float, decided: list[Action], fences: bool) -> None:
    """Restart all timers, because no executor could reach a master meanwhile. A container from which nothing was heard
    may never have been started: it is released, and everything that is missing is asked for again."""
    if now < last:  # the clock of the earlier master was ahead
        time_shift.shift_deadlines(state, now - last)
    else:  # or behind: only deadlines that must not end too soon keep their distance from the last event
        time_shift.shift_fences(state, now - last)
    for test in state.preflight.pair_tests.values():
        test.began = now
    for task in state.tasks.values():
        task.sequence, task.launched_at, task.adopted = 0, now, task.container is not None
        task.heard_at = now + TAKEOVER_S  # by the earlier master, which may have lived until then
        if task.live and task.phase is None and state.open:
            give_up_container(state, task, now, decided)
            if state.takes_part(task.id):
                state.pending_tasks[task.id.role][task.id] = None
        if fences and task.container is None and task.exit is None and task.epoch:
            task.fence(now + TAKEOVER_S)  # it may have run in a container that the log does not name
    state.requested_at, state.taken_over = now, True
    if state.open and not state.request_again_at:
        request_containers(state, now, decided)
