"""`step(state, event) -> actions` makes every decision of the master, and does nothing else.

It touches no socket, clock, file or thread; time arrives with the event. The state passed in is changed in place
(docs/adr/0003): the result depends on state and event alone, so that a run can be replayed. `gang_formation` decides
how tasks come to run, `heartbeat_timeouts` when an executor counts as dead, `failure_policy` what follows from ends of
tasks, `restart_policy` what restarts then, `job_completion` how the job ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from howdah.master.decisions import (
    failed_outputs,
    failure_policy,
    gang_formation,
    job_completion,
    preemption_notices,
    time_shift,
)
from howdah.master.decisions.actions import (
    Action,
    CommitDone,
    RecordEvent,
    SnapshotPublished,
    StartRecorded,
    StatusReceived,
    Tick,
)
from howdah.master.decisions.gang_formation import deadline_passed
from howdah.master.decisions.heartbeat_timeouts import exit_of_unheard
from howdah.master.health import hang_detection
from howdah.master.preflight import results
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import GangState, Stage, TaskState
from howdah.spec import Exit, TaskId, events
from howdah.spec.message import Message, message
from howdah.spec.tracker_runs import public_address
from howdah.wire.messages import Phase, Status

MAX_WARNINGS = 200
"""The most warnings of executors that are recorded in the event log."""
MAX_TRACKER_RUNS = 16
"""The most runs of experiment trackers that are recorded of a task."""
_WARNING = "{task}: {warning}"


def step(state: GangState, event: events.Event) -> list[Action]:
    """Apply `event` to `state`; return the actions to carry out, in order."""
    actions: list[Action] = []
    if state.stage is Stage.DONE or state.handed_over:
        return actions
    HANDLERS[type(event)](state, event, actions)
    return actions


def _on_started(state: GangState, event: events.JobStarted, actions: list[Action]) -> None:
    actions.append(RecordEvent(event))
    state.begun_at = event.time
    for task in state.tasks.values():
        task.fenced_until = event.fenced_until
    state.preflight.has_other_nodes = not event.one_machine
    if bad := gang_formation.bad_nodes(state):
        text = message("{nodes} get no tasks: failures of earlier jobs were their fault", nodes=", ".join(bad))
        actions.append(RecordEvent(events.Noted(event.time, text)))
    gang_formation.begin_stages(state, event.time, actions)


# Status of executors


def _on_status(state: GangState, event: StatusReceived, actions: list[Action]) -> None:
    status = event.status
    task = state.tasks[TaskId.parse(status.task)]
    task.heard_at = max(task.heard_at, event.time)
    if status.sequence <= task.sequence or task.container is None:
        return
    task.sequence, task.idle_s = status.sequence, status.idle_s
    if task.phase is None:
        greeted = events.Greeted(
            event.time, task=task.id, attempt=status.attempt, host=status.host, pid=status.pid, python=status.python
        )
        actions.append(RecordEvent(greeted))
    task.phase = status.phase
    _note_usage(task, status, event.time, actions)
    if not state.replaying:  # the log has them as sentences
        _record_warnings(state, task, status, event.time, actions)
    snapshot_policy.on_status(state, task, status, event.time, actions)
    if status.epoch > state.epoch:
        failure_policy.advance_epoch(state, task, status.epoch, event.time, actions)
    if failed_outputs.on_reported(task, status):
        job_completion.commit_if_all_ended(state, event.time, actions)
    if status.phase is Phase.ENDED and status.exit is not None and status.epoch < task.epoch:
        failure_policy.late_exit(state, task, status, event.time, actions)
    if status.epoch == task.epoch and task.exit is None:
        results.on_status(state, task, status, event.time, actions)
    if status.epoch != task.epoch or task.exit is not None:
        return
    if status.phase not in (Phase.HELLO, Phase.LOCALISING) and task.joined != task.epoch and status.ports:
        _join(state, task, status, event.time, actions)
    if status.program_pid and task.started != task.epoch:
        task.started = task.epoch
        started = events.Started(
            event.time,
            task=task.id,
            attempt=task.attempt,
            epoch=task.epoch,
            pid=status.program_pid,
            python=status.program_python,
            gpus=status.program_gpus,
            log_offset=status.log_offset,
        )
        actions.append(RecordEvent(started))
    if status.yields != task.announced_values and status.yields:
        task.announced_values = status.yields
        actions.append(RecordEvent(events.Yielded(event.time, task.id, status.yields)))
    _record_tracker_runs(task, status, event.time, actions)
    if status.phase is Phase.ENDED and status.exit is not None:
        task.uploaded = status.uploaded
        failure_policy.task_ended(state, task, status.exit, event.time, actions)


def _record_tracker_runs(task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Record new runs of experiment trackers; a restarted program begins another one."""
    known, room = task.tracker_runs, MAX_TRACKER_RUNS - len(task.tracker_runs)
    fresh = [url for url in status.tracker_runs if url not in known]
    if not fresh or room <= 0:
        return
    public = dict.fromkeys(map(public_address, fresh))  # an executor of an older release sends addresses as printed
    if found := tuple(url for url in public if url and url not in known)[:room]:
        task.tracker_runs = (*task.tracker_runs, *found)
        actions.append(RecordEvent(events.TrackerRunsFound(now, task.id, found)))


def _record_warnings(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Record each new warning about files that could not be kept, up to MAX_WARNINGS in the whole job: of a large gang
    those of the first tasks. The tasks' logs have all of them."""
    for warning in status.warnings:
        if warning not in task.warnings and state.warnings < MAX_WARNINGS:
            state.warnings += 1
            text = message(_WARNING, task=status.task, warning=warning)
            actions.append(RecordEvent(events.Noted(now, text)))
    task.warnings = status.warnings


def _note_usage(task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Record a sample of the usage, more rarely as a task grows older (about a hundred while its age grows by a factor
    of e), so that logs stay small."""
    if status.phase is Phase.LOCALISING and status.data_total_bytes and _sample_is_due(task, now, 2.0):
        task.used_at = now
        sample = events.Used(now, task.id, data_bytes=status.data_bytes, data_total_bytes=status.data_total_bytes)
        actions.append(RecordEvent(sample))
    further = _percent(status.usage.progress) != _percent(task.usage.progress)
    ended = status.exit is not None and task.exit is None
    task.usage = status.usage
    if task.started and (further or ended or _sample_is_due(task, now, 5.0)):
        task.used_at = now
        actions.append(RecordEvent(events.Used(now, task.id, status.usage.without_rates())))


def _percent(progress: float | None) -> int | None:
    """Return the progress in whole percent: a step that is worth a line of the log."""
    return None if progress is None else int(progress * 100)


def _sample_is_due(task: TaskState, now: float, least_s: float) -> bool:
    return now - task.used_at >= max(least_s, (now - task.launched_at) / 100)


def _join(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    task.joined, task.host, task.ip, task.ports = task.epoch, status.host, status.ip, status.ports
    task.pair_port = status.pair_port
    joined = events.Joined(
        now,
        task=task.id,
        attempt=task.attempt,
        epoch=task.epoch,
        host=status.host,
        ports=dict(status.ports),
        data_files=status.data_files,
        data_bytes=status.data_bytes,
        data_seconds=status.data_seconds,
        ip=status.ip,
        data_cached_bytes=status.data_cached_bytes,
        pair_port=task.pair_port,
    )
    actions.append(RecordEvent(joined))
    if state.taken_over and failure_policy.peer_already_running(state, task):
        failure_policy.advance_epoch(state, task, task.epoch, now, actions)
    else:
        gang_formation.on_joined(state, task, now, actions)


def _on_noted(state: GangState, event: events.Noted, actions: list[Action]) -> None:
    if isinstance(event.text, Message) and event.text.template == _WARNING:  # an earlier master recorded it
        told, warning = event.text.values.get("task"), event.text.values.get("warning")
        for task in (task for task in state.tasks.values() if str(task.id) == told):
            state.warnings += 1
            task.warnings = (*task.warnings, str(warning))
    actions.append(RecordEvent(event))


def _on_master_ended(_: GangState, event: events.MasterEnded, actions: list[Action]) -> None:
    actions.append(RecordEvent(event))


# Deadlines


def _on_tick(state: GangState, event: Tick, actions: list[Action]) -> None:
    decide_by_time(state, event.time, actions)
    if state.open:
        _watch_silence(state, event.time, actions)
        hang_detection.check_for_hangs(state, event.time, actions)
    snapshot_policy.on_tick(state, event.time, actions)


def decide_by_time(state: GangState, now: float, actions: list[Action]) -> None:
    """Decide what follows from the time alone, except which executors are silent."""
    if state.open:
        gang_formation.check_formation_deadlines(state, now, actions)
    if state.open:
        gang_formation.check_spares(state, now, actions)
    if state.open and state.preflight.pair_tests:
        results.check_deadlines(state, now, actions)
    limits = state.job.timeouts
    if state.open and state.running_since and deadline_passed(limits.run_s, now - state.running_since):
        reason = message("still running after {seconds} s (timeouts.run)", seconds=f"{limits.run_s:.0f}")
        job_completion.fail(state, reason, now, actions, unrecorded=True)
    elif state.open and deadline_passed(limits.total_s, now - state.begun_at):
        reason = message("not done {seconds} s after it began (timeouts.total)", seconds=f"{limits.total_s:.0f}")
        job_completion.fail(state, reason, now, actions, unrecorded=True)
    elif state.stage is Stage.STOPPING and now > state.stop_by and not failed_outputs.is_awaited(state, now):
        job_completion.begin_commit(state, now, actions)
    if state.open:
        failure_policy.check_end_deadlines(state, now, actions)


def _watch_silence(state: GangState, now: float, actions: list[Action]) -> None:
    for task in list(state.tasks.values()):
        if task.live and state.open and (exit := _exit_of_late(state, task, now)):
            failure_policy.executor_unreachable(state, task, exit, now, actions)


def _exit_of_late(state: GangState, task: TaskState, now: float) -> Exit | None:
    limits = state.job.timeouts
    if exit := exit_of_unheard(task.phase, task.launched_at, task.heard_at, now, state.greet_s):
        return exit
    if task.phase and task.joined != task.epoch and deadline_passed(limits.localise_s, now - task.launched_at):
        template = "files and data not in place after {seconds} s (timeouts.localise)"
        return Exit("localise", detail=message(template, seconds=f"{limits.localise_s:.0f}"))
    return None


HANDLERS: dict[type[events.Event], Callable[[GangState, Any, list[Action]], None]] = {
    events.JobStarted: _on_started,
    events.Allocated: gang_formation.on_allocated,
    events.ContainerEnded: failure_policy.on_container_ended,
    events.CancelRequested: job_completion.on_cancel,
    events.AllocationLost: job_completion.on_allocation_lost,
    events.Noted: _on_noted,
    events.MasterEnded: _on_master_ended,
    events.LossAnnounced: preemption_notices.on_announced,
    events.Stalled: hang_detection.on_stalled,
    events.StacksTaken: hang_detection.on_stacks_collected,
    StatusReceived: _on_status,
    Tick: _on_tick,
    CommitDone: job_completion.on_committed,
    events.SaveRequested: snapshot_policy.on_requested,
    StartRecorded: gang_formation.on_start_recorded,
    SnapshotPublished: job_completion.on_save_published,
    events.Checked: results.on_checked,
    events.CheckpointFound: gang_formation.on_checkpoint_found,
    events.TimeLost: time_shift.on_time_lost,
}
