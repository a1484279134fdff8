"""Ends the job: once its outcome is decided, programs stop, outputs are committed or removed, and the job finishes."""

from __future__ import annotations

from howdah.master.decisions import failed_outputs
from howdah.master.decisions.actions import (
    Action,
    Commit,
    CommitDone,
    Finish,
    HandOver,
    NotifyExecutors,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    SnapshotPublished,
)
from howdah.master.decisions.outputs import empty_outputs, missing_outputs, places_of_results
from howdah.master.snapshots import snapshot_policy
from howdah.master.state import GangState, Stage, TaskState
from howdah.spec import Exit, Outcome, State, TaskId
from howdah.spec.events import AllocationLost, CancelRequested, Committed, ContainerEnded, JobFinished, Noted, Stopping
from howdah.spec.message import join_messages, message


def stop(
    state: GangState, outcome: Outcome, reason: str, now: float, actions: list[Action], unrecorded: bool = False
) -> None:
    """Decide the outcome, and ask all programs that still run to end. `unrecorded` says that nothing in the event log
    explains the outcome, so that another master would decide anew."""
    state.stage, state.outcome = Stage.STOPPING, outcome
    state.stop_by = now + state.job.stop_limit_s
    actions += [RequestContainers(role, 0) for role, tasks in state.pending_tasks.items() if tasks]
    for task in state.tasks.values():
        if task.live and task.phase is None:
            release_container(state, task, Exit("stopped"), now, actions)
            task.container = None
    live = any(task.live for task in state.tasks.values())
    if live or unrecorded:
        actions.append(RecordEvent(Stopping(now, reason, outcome if unrecorded else None)))
    if live or failed_outputs.is_awaited(state, now):
        actions.append(NotifyExecutors(tuple(state.tasks)))
    commit_if_all_ended(state, now, actions)


def fail(
    state: GangState,
    reason: str,
    now: float,
    actions: list[Action],
    task: TaskId | None = None,
    exit: Exit | None = None,
    unrecorded: bool = False,
) -> None:
    """End the job as failed for this reason; `task` and its `exit` are the first cause, where there is one. A job whose
    chief has ended well has succeeded: only the time that its other tasks had is over."""
    outcome = Outcome(State.SUCCEEDED) if state.done_at else Outcome(State.FAILED, reason, task, exit)
    stop(state, outcome, reason, now, actions, unrecorded)


def release_container(
    state: GangState, task: TaskState, exit: Exit, now: float, actions: list[Action]
) -> ContainerEnded:
    """Release the container of a task whose executor will not answer any more."""
    assert task.container is not None
    actions.append(ReleaseContainer(task.container.id, exit.cause))
    state.containers.pop(task.container.id, None)
    return ContainerEnded(now, task.container.id, exit)


def commit_if_all_ended(state: GangState, now: float, actions: list[Action]) -> None:
    """Commit the outputs when the last program has ended."""
    if state.stage is not Stage.STOPPING or any(task.live for task in state.tasks.values()):
        return
    if not failed_outputs.is_awaited(state, now):
        begin_commit(state, now, actions)


def begin_commit(state: GangState, now: float, actions: list[Action]) -> None:
    """Move the outputs to their places, or remove them."""
    assert state.outcome is not None
    if snapshot_policy.end(state, now, actions):
        return
    missing = missing_outputs(state) if state.outcome.state is State.SUCCEEDED else []
    if missing:
        state.incomplete, state.outcome = True, Outcome(State.FAILED, join_messages(missing))
    state.stage = Stage.COMMITTING
    actions.append(NotifyExecutors(tuple(state.tasks)))
    if state.job.outputs or state.job.checkpoint.path:
        actions.append(commit(state.outcome))
    else:
        _finish(state, now, actions)


def commit(outcome: Outcome) -> Commit:
    """Return what is done with the outputs of a job with this outcome."""
    return Commit(keep=outcome.state is State.SUCCEEDED)


def on_committed(state: GangState, event: CommitDone, actions: list[Action]) -> None:
    """Finish the job: the outputs are in their places or not, which changes the outcome too."""
    assert state.outcome is not None
    hidden = places_of_results(state.job)
    actions += [RecordEvent(Committed(event.time, uri)) for uri in event.uris if uri not in hidden]
    kept = (message("what the tasks made is kept in {uri}", uri=uri) for uri in event.kept if uri not in hidden)
    replaced = (message("what was in an output's place before is kept in {uri}", uri=uri) for uri in event.replaced)
    actions += [RecordEvent(Noted(event.time, text)) for text in (*kept, *replaced)]
    if state.outcome.state is State.SUCCEEDED:
        actions += [RecordEvent(Noted(event.time, text)) for text in empty_outputs(state)]
    if event.error and state.outcome.state is State.SUCCEEDED:
        reason = message("the programs ended well, but the outputs were not kept: {reason}", reason=event.error)
        state.outcome = Outcome(State.FAILED, reason)
    elif event.error:
        text = message("outputs of this job were not removed: {reason}", reason=event.error)
        actions.append(RecordEvent(Noted(event.time, text)))
    _finish(state, event.time, actions)


def _finish(state: GangState, now: float, actions: list[Action]) -> None:
    assert state.outcome is not None
    state.stage = Stage.DONE
    actions += [RecordEvent(JobFinished(now, state.outcome)), Finish(state.outcome)]


def on_save_published(state: GangState, event: SnapshotPublished, actions: list[Action]) -> None:
    """Note that a snapshot is finished; the end of the job may have waited for it."""
    snapshot_policy.on_published(state, event, actions)
    commit_if_all_ended(state, event.time, actions)


def on_cancel(state: GangState, event: CancelRequested, actions: list[Action]) -> None:
    """End the job, because a user cancels it."""
    actions.append(RecordEvent(event))
    if state.open:
        outcome = Outcome(State.CANCELLED, message("cancelled by {user}", user=event.by))
        stop(state, outcome, outcome.diagnostics, event.time, actions)


def on_allocation_lost(state: GangState, event: AllocationLost, actions: list[Action]) -> None:
    """Handle the engine's end of this master. If another master may follow, everything is left to it as it is; if not,
    the job fails."""
    actions.append(RecordEvent(event))
    if event.comes_back:
        state.handed_over = True
        actions.append(HandOver(event))
        return
    if state.open:
        reason = message("the engine took the job's containers back: {reason}", reason=event.cause)
        fail(state, reason, event.time, actions)
    if event.within_s and state.stage is Stage.STOPPING:
        state.stop_by = min(state.stop_by, event.time + event.within_s)
