"""What people read of the events of a job: one sentence each, which is rendered in the reader's language."""

from __future__ import annotations

from howdah.spec.events import (
    Allocated,
    AllocationLost,
    Asked,
    BoardChanged,
    CancelRequested,
    Checked,
    CheckpointFound,
    Committed,
    ContainerEnded,
    Ended,
    Event,
    GangReleased,
    GangRestarted,
    Greeted,
    JobFinished,
    JobStarted,
    Joined,
    Launched,
    LossAnnounced,
    MasterEnded,
    Noted,
    PreflightPassed,
    Resized,
    SaveDone,
    SaveFailed,
    SaveRequested,
    SaveStarted,
    StacksTaken,
    Stalled,
    Started,
    Stopping,
    Straggling,
    TaskEntered,
    TimeLost,
    TookOver,
    TrackerRunsFound,
    Waiting,
    WorldFormed,
    Yielded,
)
from howdah.spec.fold import allocation_lost, time_lost
from howdah.spec.message import join_messages, message


def sentence(event: Event) -> str:
    """Return one line about an event; "" for one that people need not see."""
    if isinstance(event, Asked):
        return message("waiting for containers: {count} × {role}", count=event.count, role=event.role)
    if isinstance(event, Waiting):
        return event.sentence
    if isinstance(event, Launched) and event.giver not in (None, event.task):
        node = event.container.node
        return message("{task} takes the container of {giver} on {node}", task=event.task, giver=event.giver, node=node)
    if isinstance(event, Resized):
        role, count = event.role, event.replicas
        return message("{role} goes on with {count} tasks: {reason}", role=role, count=count, reason=event.reason)
    if isinstance(event, Launched):
        return message("{task} has a container on {node}", task=event.task, node=event.container.node)
    if isinstance(event, Joined):
        joined = message("{task} joined on {host}", task=event.task, host=event.host)
        return join_messages((joined, input_sentence(event)), ": ") if event.data_bytes else joined
    if isinstance(event, PreflightPassed):
        return _preflight(event)
    if isinstance(event, Started):
        return message("{task} runs: pid {pid}, {python}", task=event.task, pid=event.pid, python=event.python)
    if isinstance(event, Ended):
        return message("{task} on {node}: {exit}", task=event.task, node=event.node, exit=event.exit)
    if isinstance(event, GangReleased):
        return message(
            "{reason}; asking again in {seconds} s",
            reason=event.reason,
            seconds=round(event.retry_in),
        )
    if isinstance(event, GangRestarted):
        return message("starting again: {reason}", reason=event.reason)
    if isinstance(event, TookOver):
        return message("attempt {attempt} of the master took over on {host}", attempt=event.attempt, host=event.host)
    if isinstance(event, MasterEnded):
        reason = event.reason
        return message("attempt {attempt} of the master ended: {reason}", attempt=event.attempt, reason=reason)
    if isinstance(event, AllocationLost):
        return allocation_lost(event)
    if isinstance(event, TimeLost):
        return time_lost(event.seconds)
    if isinstance(event, Stopping):
        return message("stopping: {reason}", reason=event.reason)
    if isinstance(event, Noted):
        return event.text
    if isinstance(event, (LossAnnounced, Stalled, StacksTaken, Straggling)):
        return health_sentence(event)
    if isinstance(event, (SaveStarted, SaveDone, SaveFailed)):
        return _snapshot(event)
    if isinstance(event, CheckpointFound):
        return _checkpoint(event)
    if isinstance(event, BoardChanged):
        return _tensorboard_change(event)
    if isinstance(event, Committed):
        return message("output: {uri}", uri=event.uri)
    return ""


def detailed_sentence(event: Event) -> str:
    """Return one line about an event, of more kinds than `sentence`: a list of events has room for them. It is "" for
    samples of usage and metrics."""
    said = sentence(event)
    if said:
        return said
    if isinstance(event, (JobStarted, JobFinished, CancelRequested, SaveRequested, WorldFormed)):
        return _job_change(event)
    if isinstance(event, (Greeted, Checked, Yielded, TrackerRunsFound, TaskEntered)):
        return _task_change(event)
    if isinstance(event, Allocated):
        id_, node, role = event.container.id, event.container.node, event.container.role
        return message("container {id} on {node} was granted for {role}", id=id_, node=node, role=role)
    if isinstance(event, ContainerEnded):
        return message("container {id} ended: {exit}", id=event.container_id, exit=event.exit)
    return ""


def _job_change(event: JobStarted | JobFinished | CancelRequested | SaveRequested | WorldFormed) -> str:
    if isinstance(event, JobStarted):
        return message("the job begins, submitted by {user}", user=event.user)
    if isinstance(event, CancelRequested):
        return message("{who} asks to cancel the job", who=event.by)
    if isinstance(event, SaveRequested):
        return message("{who} asks for a snapshot", who=event.by)
    if isinstance(event, WorldFormed):
        return message("all tasks have joined: their programs start")
    outcome = event.outcome
    if not outcome.diagnostics:
        return message("the job has ended: {state}", state=outcome.state.value)
    return message("the job has ended: {state}, {reason}", state=outcome.state.value, reason=outcome.diagnostics)


def _task_change(event: Greeted | Checked | Yielded | TrackerRunsFound | TaskEntered) -> str:
    if isinstance(event, Greeted):
        return message("the executor of {task} runs on {host}", task=event.task, host=event.host)
    if isinstance(event, Yielded):
        names = ", ".join(event.values)
        return message("{task} gave values to the roles that come later: {names}", task=event.task, names=names)
    if isinstance(event, TrackerRunsFound):
        return message("{task} is tracked at {urls}", task=event.task, urls=" ".join(event.urls))
    if isinstance(event, TaskEntered):
        what = " ".join(filter(None, (event.access, event.detail)))
        return message("{who} entered {task}: {what}", who=event.by, task=event.task, what=what)
    if event.found:
        return message("{task} failed its checks: {what}", task=event.task, what=join_messages(event.found))
    return message("{task} passed its checks in {seconds} s", task=event.task, seconds=f"{event.seconds:.1f}")


def _preflight(event: PreflightPassed) -> str:
    seconds = f"{event.seconds:.1f}"
    parts = [message("pre-flight passed on {nodes} nodes in {seconds} s", nodes=event.nodes, seconds=seconds)]
    if event.slowest is not None and event.tasks > 1:
        parts.append(message("slowest {task} on {node}", task=event.slowest, node=event.node))
    if event.left_out:
        parts.append(message("left out: {what}", what="; ".join(event.left_out)))
    return join_messages(parts)


def health_sentence(event: LossAnnounced | Stalled | StacksTaken | Straggling) -> str:
    """Return a line about what may go wrong, and what was observed."""
    if isinstance(event, LossAnnounced):
        return message("{task}: {what}", task=event.task or event.container_id, what=event.text)
    if isinstance(event, Stalled):
        who = ", ".join(map(str, event.tasks[:5])) + ("…" if len(event.tasks) > 5 else "")
        return message("{tasks}: no sign of progress for {seconds} s", tasks=who, seconds=round(event.quiet_s))
    if isinstance(event, Straggling):
        return _straggling(event)
    if event.problem:
        return message("no stacks: {problem}", problem=event.problem)
    if event.by:
        return message("stacks: {uri}", uri=event.uri)
    who = ", ".join(map(str, event.suspects[:5])) or message("no particular task")
    reason = message(" ({reason})", reason=event.reason) if event.reason else ""
    return message("suspected: {tasks}{reason}; stacks: {uri}", tasks=who, reason=reason, uri=event.uri)


def _straggling(event: Straggling) -> str:
    if not event.what:
        return message("{task} is in line with its role again", task=event.task)
    return message(
        "{task} is out of line: {what} {value}, its role's median {median}",
        task=event.task,
        what=event.what,
        value=f"{event.value:g}",
        median=f"{event.median:g}",
    )


def _tensorboard_change(event: BoardChanged) -> str:
    if event.state == "open":
        return message("TensorBoard is open on {host}: `howdah status` has its link", host=event.host)
    return message("TensorBoard has ended: {reason}", reason=event.detail) if event.state == "ended" else ""


def _snapshot(event: SaveStarted | SaveDone | SaveFailed) -> str:
    if isinstance(event, SaveFailed):
        return message("no snapshot {number}: {reason}", number=event.number, reason=event.reason)
    if isinstance(event, SaveDone):
        return message(
            "snapshot {number} is complete: {files} files, {bytes} bytes copied",
            number=event.number,
            files=event.total,
            bytes=event.bytes,
        )
    number, tasks = event.output, event.tasks
    return message(
        "taking a snapshot of outputs.{number} of {tasks} tasks at {uri}", number=number, tasks=tasks, uri=event.uri
    )


def _checkpoint(event: CheckpointFound) -> str:
    if event.error:
        return ""
    lines = [message("skipped checkpoint: {what}", what=line) for line in event.skipped]
    none = message("no checkpoint yet: the programs start from the beginning")
    return join_messages([*lines, message("going on from {uri}", uri=event.uri) if event.uri else none])


def input_sentence(event: Joined) -> str:
    """Return the size of a task's input, and how it came."""
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
    """Return bytes as MiB, with decimals if there are few."""
    return f"{size / (1 << 20):.1f}" if size < 10 << 20 else str(size >> 20)
