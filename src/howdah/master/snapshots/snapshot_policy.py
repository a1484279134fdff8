"""Decides when a snapshot of an output is made while the programs run, by which tasks, and when it is complete.

One snapshot of an output is made at a time. A request that comes meanwhile gets the next one, so that a snapshot holds
what was there when it was requested. A snapshot consists of parts of all tasks that run when it begins, or it fails; a
failed snapshot does the job no harm.
"""

from __future__ import annotations

import time

from howdah.master.decisions.actions import (
    Action,
    DiscardSnapshot,
    NotifyExecutors,
    PublishSnapshot,
    RecordEvent,
    SnapshotPublished,
)
from howdah.master.decisions.outputs import is_flat, tasks_of_output
from howdah.master.snapshots.state import SnapshotRequest, SnapshotRun
from howdah.master.state import GangState, TaskState
from howdah.outputs import snapshot
from howdah.spec import TaskId, uris
from howdah.spec.events import Event, Noted, SaveAdvanced, SaveDone, SaveFailed, SaveRequested, SaveStarted
from howdah.spec.message import message
from howdah.storage.snapshot_places import snapshot_prefix
from howdah.wire.messages import SnapshotOrder, SnapshotReport, Status

GATHER_S = 1.0
"""Tasks of a gang ask at nearly the same time: one snapshot answers them all."""
REPORT_EVERY_S = 2.0
"""How often at most the progress of a snapshot is recorded."""
MARGIN_S = 60.0
"""Seconds by which the master's limit for a snapshot is longer than the executor's own: the master's is for an executor
that does not report."""
SNAPSHOT_EVENTS = (SaveRequested, SaveStarted, SaveAdvanced, SaveDone, SaveFailed)
"""Events that decide nothing about the job itself."""


# Requests


def on_requested(state: GangState, event: SaveRequested, actions: list[Action]) -> None:
    """Request a snapshot as soon as possible."""
    actions.append(RecordEvent(event))
    gather = GATHER_S if event.by in map(str, state.tasks) else 0.0
    for number in wanted_outputs(state, event.output):
        _request(state, number, event.by, event.time, gather)
    _begin_wanted(state, event.time, actions)


def wanted_outputs(state: GangState, output: int) -> list[int]:
    """Return the numbers of the outputs that `output` means: one of them, or all (-1). Only outputs for which a
    directory is uploaded count."""
    outputs = enumerate(state.job.outputs)
    return [number for number, each in outputs if each.strategy == "upload" and output in (-1, number)]


def number_of(state: GangState, output: int) -> int:
    """Return the snapshot that answers the last request: the one that waits, else the one just begun."""
    snapshots = state.snapshots
    answering = snapshots.requested.get(output) or snapshots.running.get(output) or snapshots
    return answering.number


def explain_refusal(state: GangState, output: int) -> str:
    """Return why there can be no snapshot now; "" when there can."""
    if not wanted_outputs(state, output):
        there = f"outputs.{output}" if output >= 0 else "any output"
        return f"the job has no directory to copy for {there}"
    if not state.open:
        return "the job is ending: its programs do not run any more"
    if not any(
        _takes_part(task) for number in wanted_outputs(state, output) for task in _tasks_with_parts(state, number)
    ):
        return "no program runs yet that writes it"
    return ""


def on_status(state: GangState, task: TaskState, status: Status, now: float, actions: list[Action]) -> None:
    """Note how far an executor's snapshots are, and how often its programs asked for one."""
    known = state.snapshots.program_requests.get(task.id, (0, 0))
    seen = known[1] if known[0] == task.attempt else 0
    state.snapshots.program_requests[task.id] = (task.attempt, status.requested_snapshots)
    if status.requested_snapshots > seen and state.open:
        actions.append(RecordEvent(SaveRequested(now, str(task.id))))
        for number in wanted_outputs(state, -1):
            _request(state, number, str(task.id), now, GATHER_S)
    for report in status.snapshots:
        run = next((run for run in state.snapshots.running.values() if run.number == report.number), None)
        if run is not None and run.parts.get(task.id) == (task.attempt, task.epoch):
            run.reports[task.id] = report
            _advance(state, run, now, actions)


def _request(state: GangState, output: int, by: str, now: float, wait_s: float = 0.0) -> None:
    if output not in state.snapshots.requested:
        state.snapshots.number += 1
        state.snapshots.requested[output] = SnapshotRequest(state.snapshots.number, by, now + wait_s)
    else:
        request = state.snapshots.requested[output]
        request.not_before = min(request.not_before, now + wait_s)


def on_tick(state: GangState, now: float, actions: list[Action]) -> None:
    """Begin snapshots that are due, and give up those that take too long or lose a task."""
    for run in list(state.snapshots.running.values()):
        _check_deadlines(state, run, now, actions)
    if not state.open:
        return
    for number in wanted_outputs(state, -1):
        every = state.job.outputs[number].save.every_s
        if every and state.running_since and number not in state.snapshots.running:
            due = state.snapshots.due.setdefault(number, state.running_since + every)
            if now >= due:
                state.snapshots.due[number] = now + every
                _request(state, number, "interval", now)
    _begin_wanted(state, now, actions)


# Progress


def _begin_wanted(state: GangState, now: float, actions: list[Action]) -> None:
    for number, request in list(state.snapshots.requested.items()):
        name = time.strftime("%Y_%m_%d_%H_%M_%S", time.localtime(now))
        if number in state.snapshots.running or now < request.not_before or name == state.snapshots.names.get(number):
            continue
        del state.snapshots.requested[number]
        _begin(state, number, request, name, now, actions)


def _begin(
    state: GangState, number: int, request: SnapshotRequest, name: str, now: float, actions: list[Action]
) -> None:
    output, saves = state.job.outputs[number], state.snapshots
    parts = {task.id: (task.attempt, task.epoch) for task in _tasks_with_parts(state, number) if _takes_part(task)}
    uri = uris.normalize(snapshot_prefix(output) + name)
    saves.names[number] = name
    actions.append(
        RecordEvent(SaveStarted(now, number=request.number, output=number, uri=uri, tasks=len(parts), by=request.by))
    )
    if not parts:
        actions.append(RecordEvent(SaveFailed(now, request.number, message("no program runs that writes it"))))
        return
    grown = uris.join(snapshot.temporary_directory(state.id, number, output), name)
    previous = saves.last.get(number, "") if output.save.incremental else ""
    saves.due[number] = now + output.save.every_s
    saves.running[number] = SnapshotRun(
        request.number,
        output=number,
        name=name,
        uri=uri,
        temporary=grown,
        started_at=now,
        parts=parts,
        previous=previous,
        reported_at=now,
    )
    actions.append(NotifyExecutors(tuple(parts)))


def _tasks_with_parts(state: GangState, number: int) -> list[TaskState]:
    return tasks_of_output(state, state.job.outputs[number])


def _takes_part(task: TaskState) -> bool:
    """Return whether the task's program runs, or has run, in a container that is still there."""
    return task.container is not None and task.epoch > 0 and task.started == task.epoch


def orders(state: GangState, task: TaskState) -> tuple[SnapshotOrder, ...]:
    """Return the snapshots that this task is to make now."""
    return tuple(
        _order(state, run, task.id)
        for run in state.snapshots.running.values()
        if run.parts.get(task.id) == (task.attempt, task.epoch) and not run.publishing
    )


def _order(state: GangState, run: SnapshotRun, task: TaskId) -> SnapshotOrder:
    output = state.job.outputs[run.output]
    flat = is_flat(output, len(_tasks_with_parts(state, run.output)))

    def part(uri: str) -> str:
        return uri if flat or not uri else uris.join(uri, task.slug)

    return SnapshotOrder(
        run.number,
        source=output.source,
        uri=part(run.temporary),
        final=part(run.uri),
        previous=part(run.previous),
        limit_s=output.save.limit_s,
    )


def _advance(state: GangState, run: SnapshotRun, now: float, actions: list[Action]) -> None:
    if run.publishing:
        return
    broken = next(((task, report) for task, report in run.reports.items() if report.problem), None)
    if broken is not None:
        _give_up(state, run, message("{task}: {what}", task=broken[0], what=broken[1].problem), now, actions)
    elif run.done == len(run.parts):
        run.publishing = True
        output = state.job.outputs[run.output]
        actions.append(
            PublishSnapshot(
                run.output, temporary=run.temporary, final=run.uri, to=snapshot_prefix(output), keep=output.save.keep
            )
        )
        actions.append(NotifyExecutors(tuple(run.parts)))
    elif run.done > run.reported and now - run.reported_at >= REPORT_EVERY_S:
        run.reported, run.reported_at = run.done, now
        actions.append(RecordEvent(SaveAdvanced(now, run.number, run.done)))


def on_published(state: GangState, event: SnapshotPublished, actions: list[Action]) -> None:
    """Record that the snapshot is in its place, or is not."""
    run = state.snapshots.running.pop(event.output, None)
    if run is None:
        return
    if event.error or event.empty:
        source = state.job.outputs[event.output].source
        template = "nothing to copy: no task has a finished file in {path}"
        reason = event.error or message(template, path=repr(source))
        actions.append(RecordEvent(SaveFailed(event.time, run.number, reason)))
        if event.error:
            actions.append(DiscardSnapshot(run.temporary))
        return
    state.snapshots.last[run.output] = run.uri
    reports = run.reports.values()
    done = SaveDone(
        event.time,
        number=run.number,
        files=sum(report.files for report in reports),
        bytes=sum(report.bytes for report in reports),
        total=sum(report.total for report in reports),
        skipped=_skipped_lines(run.reports),
        removed=event.removed,
    )
    actions.append(RecordEvent(done))
    if event.problem:
        actions.append(RecordEvent(Noted(event.time, event.problem)))
    _begin_wanted(state, event.time, actions)


def _skipped_lines(reports: dict[TaskId, SnapshotReport]) -> tuple[str, ...]:
    """Return at most 20 sentences: an event is no list of files."""
    lines = [f"{task}: {line}" for task, report in reports.items() for line in report.skipped]
    return (*lines[:20], f"and {len(lines) - 20} more") if len(lines) > 20 else tuple(lines)


# Failures


def _check_deadlines(state: GangState, run: SnapshotRun, now: float, actions: list[Action]) -> None:
    if run.publishing:
        return
    limit = state.job.outputs[run.output].save.limit_s
    gone = next((id_ for id_ in run.parts if not _makes_part(run, state.tasks[id_])), None)
    if gone is not None:
        _give_up(state, run, message("{tasks} was started again, or is gone", tasks=gone), now, actions)
    elif now - run.started_at > limit + MARGIN_S:
        late = [str(id_) for id_ in run.parts if id_ not in run.reports or not run.reports[id_].done]
        seconds = f"{now - run.started_at:.0f}"
        reason = message("not done after {seconds} s: {tasks}", seconds=seconds, tasks=", ".join(late[:5]))
        _give_up(state, run, reason, now, actions)


def _makes_part(run: SnapshotRun, task: TaskState) -> bool:
    """Return whether the attempt that began to make a part still can."""
    return task.container is not None and run.parts.get(task.id) == (task.attempt, task.epoch)


def _give_up(state: GangState, run: SnapshotRun, why: str, now: float, actions: list[Action]) -> None:
    template = "{reason} ({count} of {all} tasks had made their part)"
    reason = message(template, reason=why, count=run.done, all=len(run.parts))
    del state.snapshots.running[run.output]
    actions += [
        RecordEvent(SaveFailed(now, run.number, reason)),
        DiscardSnapshot(run.temporary),
        NotifyExecutors(tuple(run.parts)),
    ]


def end(state: GangState, now: float, actions: list[Action]) -> bool:
    """Give up incomplete snapshots, because the job ends. Return True while one is being published, which is not
    interrupted."""
    state.snapshots.requested.clear()
    for run in list(state.snapshots.running.values()):
        if not run.publishing:
            _give_up(state, run, message("the job ended"), now, actions)
    return bool(state.snapshots.running)


def replay(state: GangState, event: Event) -> None:
    """Note what an earlier master did. Snapshots that were requested of it, and that it had not begun, begin under this
    master."""
    saves = state.snapshots
    if isinstance(event, SaveRequested):
        for number in wanted_outputs(state, event.output):
            _request(state, number, event.by, event.time)
    elif isinstance(event, (SaveDone, SaveFailed)) and event.number in saves.started:
        output, uri = saves.started.pop(event.number)
        if isinstance(event, SaveDone):
            saves.last[output] = uri
    elif isinstance(event, SaveStarted):
        saves.number = max(saves.number, event.number)
        saves.requested.pop(event.output, None)
        saves.started[event.number] = (event.output, event.uri)
        saves.names[event.output] = event.uri[-19:]
        saves.due[event.output] = event.time + state.job.outputs[event.output].save.every_s


def give_up_started(state: GangState, now: float) -> list[Action]:
    """Return the end of each snapshot that an earlier master was still making, so that nobody waits for it any
    longer."""
    actions: list[Action] = []
    for number, (output, _) in state.snapshots.started.items():
        reason = message("another master took over while it was made")
        temporary = snapshot.temporary_directory(state.id, output, state.job.outputs[output])
        actions.append(RecordEvent(SaveFailed(now, number, reason)))
        actions.append(DiscardSnapshot(uris.join(temporary, state.snapshots.names[output])))
    state.snapshots.started.clear()
    return actions
