"""The sentences about the events of a job: one for each event, which is rendered in the reader's language.

The rule: the words for an event are here alone. The terminal, the list of events and the marks of a job's view
(`howdah.spec.fold`) differ only in the events that they show.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Type

from howdah.spec import events
from howdah.spec.message import Sentence, join_messages, message
from howdah.spec.task import TaskId

MAX_TASKS = 5
"""The most tasks that a sentence names; `…` stands for the others."""


def sentence(event: events.Event) -> Sentence:
    """Return one line about an event; "" for one that people need not see."""
    make = _SENTENCES.get(type(event))
    return make(event) if make is not None else ""


def detailed_sentence(event: events.Event) -> Sentence:
    """Return one line about an event, of more kinds than `sentence` covers, because a list of events has room for them;
    "" for samples of usage and metrics."""
    make = _DETAILS.get(type(event))
    return make(event) if make is not None else sentence(event)


def restart_note(event: events.GangRestarted) -> Sentence:
    """Return the sentence about a restart that has happened; `sentence` describes one that is under way."""
    if event.tasks:
        return message("{tasks} restarted: {reason}", tasks=_task_names(event.tasks), reason=event.reason)
    return message("restarted: {reason}", reason=event.reason)


def deviation(event: events.Straggling) -> Sentence:
    """Return how a task differs from the other tasks of its role; "" if it no longer does."""
    if not event.what:
        return ""
    level, median = f"{event.value:g}", f"{event.median:g}"
    return message("{what} {level}, its role's median {median}", what=event.what, level=level, median=median)


def skipped_checkpoint(line: Sentence) -> Sentence:
    """Return the sentence about one of the checkpoints that `CheckpointFound.skipped` names."""
    return message("skipped checkpoint: {what}", what=line)


def input_sentence(event: events.Joined) -> Sentence:
    """Return the size of a task's input, and how it was fetched."""
    size, seconds = mib(event.data_bytes), f"{event.data_seconds:.1f}"
    if event.data_cached_bytes:
        return message(
            "{files} files, {size} MiB in {seconds} s, {kept} MiB of them kept on the node",
            files=event.data_files,
            size=size,
            seconds=seconds,
            kept=mib(event.data_cached_bytes),
        )
    return message("{files} files, {size} MiB in {seconds} s", files=event.data_files, size=size, seconds=seconds)


def mib(size: int) -> str:
    """Return a number of bytes as MiB, with decimals if it is small."""
    return f"{size / (1 << 20):.1f}" if size < 10 << 20 else str(size >> 20)


def _task_names(tasks: Sequence[TaskId]) -> str:
    return ", ".join(map(str, tasks[:MAX_TASKS])) + ("…" if len(tasks) > MAX_TASKS else "")


def _asked(event: events.Asked) -> Sentence:
    return message("waiting for containers: {count} × {role}", count=event.count, role=event.role)


def _waiting(event: events.Waiting) -> Sentence:
    return event.sentence


def _launched(event: events.Launched) -> Sentence:
    task, node = event.task, event.container.node
    if event.giver not in (None, task):
        return message("{task} takes the container of {giver} on {node}", task=task, giver=event.giver, node=node)
    return message("{task} has a container on {node}", task=task, node=node)


def _resized(event: events.Resized) -> Sentence:
    role, count = event.role, event.replicas
    return message("{role} goes on with {count} tasks: {reason}", role=role, count=count, reason=event.reason)


def _joined(event: events.Joined) -> Sentence:
    joined = message("{task} joined on {host}", task=event.task, host=event.host)
    return join_messages((joined, input_sentence(event)), ": ") if event.data_bytes else joined


def _preflight_passed(event: events.PreflightPassed) -> Sentence:
    singular = "pre-flight passed on {count} node in {seconds} s"
    plural = "pre-flight passed on {count} nodes in {seconds} s"
    text = message(singular if event.nodes == 1 else plural, count=event.nodes, seconds=f"{event.seconds:.1f}")
    if event.slowest is not None and event.tasks > 1:
        text = message("{sentence}; slowest {task} on {node}", sentence=text, task=event.slowest, node=event.node)
    if event.left_out:
        text = message("{sentence}; left out: {what}", sentence=text, what=join_messages(event.left_out))
    return text


def _started(event: events.Started) -> Sentence:
    return message("{task} runs: pid {pid}, {python}", task=event.task, pid=event.pid, python=event.python)


def _ended(event: events.Ended) -> Sentence:
    return message("{task} on {node}: {exit}", task=event.task, node=event.node, exit=event.exit)


def _gang_released(event: events.GangReleased) -> Sentence:
    return message("{reason}; asking again in {seconds} s", reason=event.reason, seconds=f"{event.retry_in:.0f}")


def _gang_restarted(event: events.GangRestarted) -> Sentence:
    return message("starting again: {reason}", reason=event.reason)


def _took_over(event: events.TookOver) -> Sentence:
    return message("attempt {number} of the master took over on {node}", number=event.attempt, node=event.host)


def _master_ended(event: events.MasterEnded) -> Sentence:
    return message("attempt {number} of the master ended: {reason}", number=event.attempt, reason=event.reason)


def _allocation_lost(event: events.AllocationLost) -> Sentence:
    if event.comes_back:
        template = "this attempt of the master was ended: {reason}; the job goes on if another is started"
        return message(template, reason=event.cause)
    return message("the engine took the job's containers back: {reason}", reason=event.cause)


def _time_lost(event: events.TimeLost) -> Sentence:
    if event.seconds > 0:
        template = "the master stood still, or its clock was set, for {seconds} s"
        return message(template, seconds=f"{event.seconds:.0f}")
    return message("the master's clock was set back by {seconds} s", seconds=f"{-event.seconds:.0f}")


def _stopping(event: events.Stopping) -> Sentence:
    return message("stopping: {reason}", reason=event.reason)


def _noted(event: events.Noted) -> Sentence:
    return event.text


def _loss_announced(event: events.LossAnnounced) -> Sentence:
    return message("{task}: {what}", task=event.task or event.container_id, what=event.text)


def _stalled(event: events.Stalled) -> Sentence:
    template = "{tasks} showed no sign of progress for {seconds} s"
    return message(template, tasks=_task_names(event.tasks), seconds=f"{event.quiet_s:.0f}")


def _stacks_taken(event: events.StacksTaken) -> Sentence:
    if event.problem:
        return message("no stacks: {reason}", reason=event.problem)
    if event.by:
        return message("stacks: {uri}", uri=event.uri)
    who = _task_names(event.suspects) or message("no particular task")
    why = "suspected: {tasks} ({reason}); stacks: {uri}"
    template = why if event.reason else "suspected: {tasks}; stacks: {uri}"
    return message(template, tasks=who, uri=event.uri, reason=event.reason)


def _straggling(event: events.Straggling) -> Sentence:
    if not event.what:
        return message("{task} is in line with its role again", task=event.task)
    return message("{task} is out of line: {what}", task=event.task, what=deviation(event))


def _save_started(event: events.SaveStarted) -> Sentence:
    template = "taking a snapshot of outputs.{number} of {tasks} tasks at {uri}"
    return message(template, number=event.output, tasks=event.tasks, uri=event.uri)


def _save_done(event: events.SaveDone) -> Sentence:
    template = "snapshot {number} is complete: {files} files, {bytes} bytes copied"
    return message(template, number=event.number, files=event.total, bytes=event.bytes)


def _save_failed(event: events.SaveFailed) -> Sentence:
    return message("no snapshot {number}: {reason}", number=event.number, reason=event.reason)


def _checkpoint_found(event: events.CheckpointFound) -> Sentence:
    if event.error:
        return ""
    lines = [skipped_checkpoint(line) for line in event.skipped]
    none = message("no checkpoint yet: the programs start from the beginning")
    return join_messages([*lines, message("going on from {uri}", uri=event.uri) if event.uri else none])


def _board_changed(event: events.BoardChanged) -> Sentence:
    if event.state == "open":
        return message("TensorBoard is open on {host}: `howdah status` has its link", host=event.host)
    return message("TensorBoard has ended: {reason}", reason=event.detail) if event.state == "ended" else ""


def _committed(event: events.Committed) -> Sentence:
    return message("output: {uri}", uri=event.uri)


def _job_started(event: events.JobStarted) -> Sentence:
    return message("the job begins, submitted by {user}", user=event.user)


def _job_finished(event: events.JobFinished) -> Sentence:
    outcome = event.outcome
    if not outcome.diagnostics:
        return message("the job has ended: {state}", state=outcome.state.value)
    return message("the job has ended: {state}, {reason}", state=outcome.state.value, reason=outcome.diagnostics)


def _cancel_requested(event: events.CancelRequested) -> Sentence:
    return message("{who} asks to cancel the job", who=event.by)


def _save_requested(event: events.SaveRequested) -> Sentence:
    return message("{who} asks for a snapshot", who=event.by)


def _world_formed(_: events.WorldFormed) -> Sentence:
    return message("all tasks have joined: their programs start")


def _greeted(event: events.Greeted) -> Sentence:
    return message("the executor of {task} runs on {host}", task=event.task, host=event.host)


def _checked(event: events.Checked) -> Sentence:
    if event.found:
        return message("{task} failed its checks: {what}", task=event.task, what=join_messages(event.found))
    return message("{task} passed its checks in {seconds} s", task=event.task, seconds=f"{event.seconds:.1f}")


def _yielded(event: events.Yielded) -> Sentence:
    names = ", ".join(event.values)
    return message("{task} gave values to the roles that come later: {names}", task=event.task, names=names)


def _tracker_runs_found(event: events.TrackerRunsFound) -> Sentence:
    return message("{task} is tracked at {urls}", task=event.task, urls=" ".join(event.urls))


def _task_entered(event: events.TaskEntered) -> Sentence:
    what = " ".join(filter(None, (event.access, event.detail)))
    template = "{user} at {address} entered {task}: {what}"
    return message(template, user=event.by, address=event.address, task=event.task, what=what)


def _allocated(event: events.Allocated) -> Sentence:
    id_, node, role = event.container.id, event.container.node, event.container.role
    return message("container {id} on {node} was granted for {role}", id=id_, node=node, role=role)


def _container_ended(event: events.ContainerEnded) -> Sentence:
    return message("container {id} ended: {exit}", id=event.container_id, exit=event.exit)


_SENTENCES: Dict[Type[events.Event], Callable[[Any], Sentence]] = {
    events.Asked: _asked,
    events.Waiting: _waiting,
    events.Launched: _launched,
    events.Resized: _resized,
    events.Joined: _joined,
    events.PreflightPassed: _preflight_passed,
    events.Started: _started,
    events.Ended: _ended,
    events.GangReleased: _gang_released,
    events.GangRestarted: _gang_restarted,
    events.TookOver: _took_over,
    events.MasterEnded: _master_ended,
    events.AllocationLost: _allocation_lost,
    events.TimeLost: _time_lost,
    events.Stopping: _stopping,
    events.Noted: _noted,
    events.LossAnnounced: _loss_announced,
    events.Stalled: _stalled,
    events.StacksTaken: _stacks_taken,
    events.Straggling: _straggling,
    events.SaveStarted: _save_started,
    events.SaveDone: _save_done,
    events.SaveFailed: _save_failed,
    events.CheckpointFound: _checkpoint_found,
    events.BoardChanged: _board_changed,
    events.Committed: _committed,
}
"""The sentences of the events that are shown while one follows a job."""

_DETAILS: Dict[Type[events.Event], Callable[[Any], Sentence]] = {
    events.JobStarted: _job_started,
    events.JobFinished: _job_finished,
    events.CancelRequested: _cancel_requested,
    events.SaveRequested: _save_requested,
    events.WorldFormed: _world_formed,
    events.Greeted: _greeted,
    events.Checked: _checked,
    events.Yielded: _yielded,
    events.TrackerRunsFound: _tracker_runs_found,
    events.TaskEntered: _task_entered,
    events.Allocated: _allocated,
    events.ContainerEnded: _container_ended,
}
"""The sentences of the events that only a list of all events has room for."""
