"""Applies events to a job's view."""

from __future__ import annotations

import dataclasses
from typing import Callable, Dict, Iterable, Optional, Type

from howdah.spec import events
from howdah.spec.attempt import MAX_ATTEMPTS, MAX_TRIES, AttemptView
from howdah.spec.event_sentences import detailed_sentence, deviation, restart_note, sentence, skipped_checkpoint
from howdah.spec.message import message
from howdah.spec.task import Exit, State, TaskId
from howdah.spec.view import MAX_SNAPSHOTS, JobView, MetricPoint, ProgressRate, SnapshotView, TaskView


def fold(recorded: Iterable[events.Event], view: Optional[JobView] = None) -> JobView:
    """Apply the events in order to `view` (a new one by default) and return it."""
    view = view or JobView()
    for event in recorded:
        view.updated = max(view.updated, event.time)
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(view, event)
    return view


def fold_recorded(recorded: Iterable[Optional[events.Event]], view: Optional[JobView] = None) -> JobView:
    """Apply the events of a log that may be damaged (`event_lines.read_log`). Events that cannot be read, or do not
    fit, are ignored and counted. A line that was cut short because its writer was killed is not counted."""
    view = view or JobView()
    unread = 0
    for event in recorded:
        if event is None:
            unread += 1
            continue
        view.unfitting += max(0, unread - isinstance(event, (events.TookOver, events.JobFinished)))
        unread = 0
        try:
            fold([event], view)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError):
            view.unfitting += 1
    view.unfitting += max(0, unread - 1)
    return view


def _on_started(view: JobView, event: events.JobStarted) -> None:
    view.id, view.engine, view.user = event.id, event.engine, event.user
    view.job, view.python, view.host, view.started = event.job, event.python, event.host, event.time
    view.submission, view.one_machine = event.submission, event.one_machine
    for name, role in event.job.roles.items():
        for index in range(role.replicas):
            task = TaskId(name, index)
            view.tasks.setdefault(task, TaskView(task))


def _on_asked(view: JobView, event: events.Asked) -> None:
    view.asked[event.role] = event.time


def _on_waiting(view: JobView, event: events.Waiting) -> None:
    view.waiting = event if event.missing else None


def _on_allocated(view: JobView, event: events.Allocated) -> None:
    view.allocated[event.container.id] = event.time


def _on_launched(view: JobView, event: events.Launched) -> None:
    known, container = view.tasks.get(event.task), event.container
    attempt = AttemptView(
        event.attempt, container=container.id, node=container.node, log_url=container.log_url, launched=event.time
    )
    attempt.engine_facts = container.engine_facts
    attempt.try_number = (known.tries if known else 0) + 1
    attempt.asked = view.asked.get(event.task.role, 0.0)
    attempt.allocated = view.allocated.pop(container.id, 0.0)
    giver = view.tasks.get(event.giver) if event.giver not in (None, event.task) else None
    if giver is not None:
        view.tasks[giver.id] = TaskView(giver.id, attempt=giver.attempt, attempts=giver.attempts, tries=giver.tries)
    view.tasks[event.task] = TaskView(
        event.task,
        phase="launched",
        attempt=event.attempt,
        container=event.container.id,
        node=event.container.node,
        log_url=event.container.log_url,
        metrics=known.metrics if known else {},
        attempts=[*(known.attempts if known else [])[1 - MAX_ATTEMPTS :], attempt],
        tries=attempt.try_number,
    )


def _attempt(view: JobView, task: TaskId, number: int) -> AttemptView:
    """Return the latest try in an attempt's container. For an unknown attempt return a new view that is not kept."""
    known = view.tasks[task].attempts
    return next((attempt for attempt in reversed(known) if attempt.attempt == number), AttemptView(number))


def _next_try(task: TaskView, before: AttemptView, now: float) -> AttemptView:
    """Return a new try in the container of the one `before`, which has ended."""
    before.finished = before.finished or now
    if before.exit is None:  # its end is reported with the failure of another task
        before.exit, before.stopped = Exit("stopped", detail=message("the tasks start again")), True
    again = AttemptView(before.attempt, container=before.container, node=before.node, log_url=before.log_url)
    again.engine_facts = before.engine_facts
    task.tries += 1
    again.try_number = task.tries
    here = [each for each in task.attempts if each.attempt == before.attempt]
    dropped = here[: 1 - MAX_TRIES]  # so that earlier containers stay
    task.attempts = [*(each for each in task.attempts if each not in dropped), again]
    return again


def _on_greeted(view: JobView, event: events.Greeted) -> None:
    task = view.tasks[event.task]
    task.phase, task.host, task.python = "localising", event.host, event.python
    _attempt(view, event.task, event.attempt).greeted = event.time


def _on_joined(view: JobView, event: events.Joined) -> None:
    task = view.tasks[event.task]
    task.phase, task.host, task.ports, task.state, task.exit = "joined", event.host, event.ports, State.PENDING, None
    attempt = _attempt(view, event.task, event.attempt)
    if (attempt.running or attempt.exit is not None) and event.epoch != task.started_epoch:
        attempt = _next_try(task, attempt, event.time)
    attempt.joined = attempt.joined or event.time


def _mark_event(view: JobView, event: events.Event) -> None:
    """Mark an event that changes nothing in the view."""
    view.mark(event.time, sentence(event))


def _on_formed(view: JobView, event: events.WorldFormed) -> None:
    view.epoch, view.state = event.epoch, State.RUNNING
    view.running = view.running or event.time
    view.formed[event.epoch] = event.time


def _on_running(view: JobView, event: events.Started) -> None:
    task = view.tasks[event.task]
    task.phase, task.state, task.pid, task.started = "running", State.RUNNING, event.pid, event.time
    task.program, task.pace = event.python, None
    attempt = _attempt(view, event.task, event.attempt)
    if task.started_epoch not in (0, event.epoch) and attempt.running:
        attempt = _next_try(task, attempt, event.time)
    task.started_epoch = event.epoch
    attempt.pid, attempt.gpus, attempt.host, attempt.log_offset = event.pid, event.gpus, task.host, event.log_offset
    attempt.running, attempt.finished = attempt.running or event.time, 0.0


def _on_used(view: JobView, event: events.Used) -> None:
    task = view.tasks[event.task]
    if event.data_total_bytes:
        task.data_bytes, task.data_total_bytes = event.data_bytes, event.data_total_bytes
        return
    before, usage, task.used = task.usage, event.usage, event.time
    if usage.progress is not None and (usage.progress != before.progress or task.pace is None):
        first_at, first = task.pace[:2] if task.pace is not None else (event.time, usage.progress)
        if usage.first_at:  # for readers that have not seen all samples
            first_at, first = usage.first_at, usage.first_progress
        task.pace = ProgressRate(first_at=first_at, first=first, last_at=event.time, last=usage.progress)
    if (usage.progress is None and before.progress is not None) or (before.gpus and not usage.gpus):
        progress = before.progress if usage.progress is None else usage.progress
        usage = dataclasses.replace(usage, progress=progress, gpus=usage.gpus or before.gpus)
    task.usage = usage


def _on_measured(view: JobView, event: events.Measured) -> None:
    points = view.tasks[event.task].metrics.setdefault(event.name, [])
    if not points or points[-1].time < event.time:  # a client that follows a job gets the latest point repeatedly
        points.append(MetricPoint(event.time, event.step, event.value))


def _on_tracker_runs_found(view: JobView, event: events.TrackerRunsFound) -> None:
    runs = view.tasks[event.task].tracker_runs
    runs.extend(url for url in event.urls if url not in runs)


def _on_ended(view: JobView, event: events.Ended) -> None:
    task = view.tasks[event.task]
    task.exit, task.finished, task.phase = event.exit, event.time, "ended"
    if event.exit.ok:
        task.state = State.SUCCEEDED
    else:
        task.state = State.FAILED if event.counts else view.ends_as or State.STOPPED
        if event.counts:
            kind = "lost" if event.lost or event.exit.cause in ("lost", "silent") else "failed"
            view.mark(event.time, str(event.exit), kind, event.task)
    attempt = _attempt(view, event.task, event.attempt)
    attempt.exit, attempt.finished, attempt.node = event.exit, event.time, attempt.node or event.node
    attempt.stopped = not event.counts


def _on_released(view: JobView, event: events.GangReleased) -> None:
    for task, old in view.tasks.items():
        for attempt in old.attempts[-1:]:
            attempt.finished = attempt.finished or event.time
        kept = TaskView(task, attempt=old.attempt, metrics=old.metrics, attempts=old.attempts, tries=old.tries)
        view.tasks[task] = kept
    view.mark(event.time, sentence(event))


def _on_restarted(view: JobView, event: events.GangRestarted) -> None:
    if not event.tasks:
        view.state = State.PENDING
    view.mark(event.time, restart_note(event), "restarted", event.tasks[0] if len(event.tasks) == 1 else None)


def _on_took_over(view: JobView, event: events.TookOver) -> None:
    view.host, view.python = event.host, event.python
    view.mark(event.time, sentence(event), "takeover")


def _on_resized(view: JobView, event: events.Resized) -> None:
    view.sizes = {**view.sizes, event.role: event.replicas}


def _on_loss_announced(view: JobView, event: events.LossAnnounced) -> None:
    for task in view.tasks.values():
        if task.container == event.container_id and not task.state.ended:
            task.notice = event.text
            view.mark(event.time, sentence(dataclasses.replace(event, task=task.id)))


def _on_stacks_taken(view: JobView, event: events.StacksTaken) -> None:
    if event.uri:
        view.stacks = [*view.stacks[-19:], event.uri]
    if event.problem or not event.by:
        view.mark(event.time, sentence(event))


def _on_straggling(view: JobView, event: events.Straggling) -> None:
    text = deviation(event)
    if text and not view.tasks[event.task].straggler:
        view.mark(event.time, sentence(event))
    view.tasks[event.task].straggler = text


def _on_task_entered(view: JobView, event: events.TaskEntered) -> None:
    view.mark(event.time, detailed_sentence(event))


def _on_board_changed(view: JobView, event: events.BoardChanged) -> None:
    view.tensorboard = event
    if event.state == "ended":
        view.mark(event.time, sentence(event))


def _on_cancel_requested(view: JobView, _: events.CancelRequested) -> None:
    view.waiting = None
    view.ends_as = view.ends_as or State.CANCELLED


def _on_stopping(view: JobView, event: events.Stopping) -> None:
    view.ends_as, view.waiting = view.ends_as or State.STOPPED, None
    view.mark(event.time, event.reason)


def _on_committed(view: JobView, event: events.Committed) -> None:
    view.outputs.append(event.uri)


def _on_save_started(view: JobView, event: events.SaveStarted) -> None:
    save = SnapshotView(
        event.number, output=event.output, uri=event.uri, tasks=event.tasks, by=event.by, started=event.time
    )
    view.snapshots = [*view.snapshots[1 - MAX_SNAPSHOTS :], save]


def _find_snapshot(view: JobView, number: int) -> SnapshotView:
    """Return the view of a snapshot. If the snapshot is not kept any more, return a new view that is discarded."""
    return next(
        (save for save in view.snapshots if save.number == number), SnapshotView(number, output=0, uri="", tasks=0)
    )


def _on_save_advanced(view: JobView, event: events.SaveAdvanced) -> None:
    _find_snapshot(view, event.number).done = event.done


def _on_save_done(view: JobView, event: events.SaveDone) -> None:
    save = _find_snapshot(view, event.number)
    save.state, save.finished, save.done = State.SUCCEEDED, event.time, save.tasks
    save.files, save.bytes, save.total, save.skipped = event.files, event.bytes, event.total, event.skipped
    for older in view.snapshots:
        older.removed = older.removed or older.uri in event.removed
    view.mark(event.time, message("snapshot {number} is at {uri}", number=event.number, uri=save.uri), "save")


def _on_save_failed(view: JobView, event: events.SaveFailed) -> None:
    save = _find_snapshot(view, event.number)
    save.state, save.finished, save.reason = State.FAILED, event.time, event.reason


def _on_checkpoint_found(view: JobView, event: events.CheckpointFound) -> None:
    view.resumed = event.uri
    for line in event.skipped:
        view.mark(event.time, skipped_checkpoint(line))


def _on_finished(view: JobView, event: events.JobFinished) -> None:
    if view.outcome is not None:  # the end is final
        return
    view.outcome, view.state, view.finished, view.waiting = event.outcome, event.outcome.state, event.time, None
    if view.tensorboard.state in ("starting", "open"):
        view.tensorboard = events.BoardChanged(event.time, "ended", detail=message("the job has ended"))
    for task in view.tasks.values():
        if not task.state.ended:  # no event recorded its end, and nothing of the job runs any more
            cancelled = event.outcome.state is State.CANCELLED
            task.state = State.CANCELLED if cancelled else State.STOPPED
            task.phase, task.finished = "ended", event.time
        for attempt in task.attempts[-1:]:
            attempt.finished = attempt.finished or event.time


_HANDLERS: Dict[Type[events.Event], Callable[..., None]] = {
    events.JobStarted: _on_started,
    events.Asked: _on_asked,
    events.Waiting: _on_waiting,
    events.Allocated: _on_allocated,
    events.Launched: _on_launched,
    events.Greeted: _on_greeted,
    events.Joined: _on_joined,
    events.PreflightPassed: _mark_event,
    events.WorldFormed: _on_formed,
    events.Started: _on_running,
    events.Used: _on_used,
    events.Measured: _on_measured,
    events.TrackerRunsFound: _on_tracker_runs_found,
    events.Ended: _on_ended,
    events.GangReleased: _on_released,
    events.GangRestarted: _on_restarted,
    events.TookOver: _on_took_over,
    events.AllocationLost: _mark_event,
    events.MasterEnded: _mark_event,
    events.TimeLost: _mark_event,
    events.Resized: _on_resized,
    events.SaveStarted: _on_save_started,
    events.SaveAdvanced: _on_save_advanced,
    events.SaveDone: _on_save_done,
    events.SaveFailed: _on_save_failed,
    events.CheckpointFound: _on_checkpoint_found,
    events.LossAnnounced: _on_loss_announced,
    events.Stalled: _mark_event,
    events.StacksTaken: _on_stacks_taken,
    events.Straggling: _on_straggling,
    events.TaskEntered: _on_task_entered,
    events.BoardChanged: _on_board_changed,
    events.CancelRequested: _on_cancel_requested,
    events.Stopping: _on_stopping,
    events.Noted: _mark_event,
    events.Committed: _on_committed,
    events.JobFinished: _on_finished,
}
