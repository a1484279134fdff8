"""What the command line says of the events of a job: one sentence each."""

from __future__ import annotations

from howdah.cli.i18n import _, translate_stored
from howdah.spec.events import (
    AllocationLost,
    Asked,
    BoardChanged,
    CheckpointFound,
    Committed,
    Ended,
    Event,
    GangReleased,
    GangRestarted,
    Joined,
    Launched,
    LossAnnounced,
    MasterEnded,
    Noted,
    PreflightPassed,
    Resized,
    SaveDone,
    SaveFailed,
    SaveStarted,
    StacksTaken,
    Stalled,
    Started,
    Stopping,
    Straggling,
    TimeLost,
    TookOver,
    Waiting,
)
from howdah.spec.fold import allocation_lost, time_lost


def sentence(event: Event) -> str:
    """Return one line about an event; "" for one that people need not see."""
    if isinstance(event, Asked):
        return _("waiting for containers: {count} × {role}", count=event.count, role=event.role)
    if isinstance(event, Waiting):
        return translate_stored(event.sentence)
    if isinstance(event, Launched) and event.giver not in (None, event.task):
        node = event.container.node
        return _("{task} takes the container of {giver} on {node}", task=event.task, giver=event.giver, node=node)
    if isinstance(event, Resized):
        role, count = event.role, event.replicas
        return _(
            "{role} goes on with {count} tasks: {reason}", role=role, count=count, reason=translate_stored(event.reason)
        )
    if isinstance(event, Launched):
        return _("{task} has a container on {node}", task=event.task, node=event.container.node)
    if isinstance(event, Joined):
        joined = _("{task} joined on {host}", task=event.task, host=event.host)
        return joined + (f": {input_sentence(event)}" if event.data_bytes else "")
    if isinstance(event, PreflightPassed):
        return _preflight(event)
    if isinstance(event, Started):
        return _("{task} runs: pid {pid}, {python}", task=event.task, pid=event.pid, python=event.python)
    if isinstance(event, Ended):
        return _("{task} on {node}: {exit}", task=event.task, node=event.node, exit=translate_stored(event.exit))
    if isinstance(event, GangReleased):
        return _(
            "{reason}; asking again in {seconds} s",
            reason=translate_stored(event.reason),
            seconds=round(event.retry_in),
        )
    if isinstance(event, GangRestarted):
        return _("starting again: {reason}", reason=translate_stored(event.reason))
    if isinstance(event, TookOver):
        return _("attempt {attempt} of the master took over on {host}", attempt=event.attempt, host=event.host)
    if isinstance(event, MasterEnded):
        reason = translate_stored(event.reason)
        return _("attempt {attempt} of the master ended: {reason}", attempt=event.attempt, reason=reason)
    if isinstance(event, AllocationLost):
        return translate_stored(allocation_lost(event))
    if isinstance(event, TimeLost):
        return translate_stored(time_lost(event.seconds))
    if isinstance(event, Stopping):
        return _("stopping: {reason}", reason=translate_stored(event.reason))
    if isinstance(event, Noted):
        return translate_stored(event.text)
    if isinstance(event, (LossAnnounced, Stalled, StacksTaken, Straggling)):
        return health_sentence(event)
    if isinstance(event, (SaveStarted, SaveDone, SaveFailed)):
        return _snapshot(event)
    if isinstance(event, CheckpointFound):
        return _checkpoint(event)
    if isinstance(event, BoardChanged):
        return _tensorboard_change(event)
    if isinstance(event, Committed):
        return _("output: {uri}", uri=event.uri)
    return ""


def _preflight(event: PreflightPassed) -> str:
    text = _("pre-flight passed on {nodes} nodes in {seconds} s", nodes=event.nodes, seconds=f"{event.seconds:.1f}")
    if event.slowest is not None and event.tasks > 1:
        text += _("; slowest {task} on {node}", task=event.slowest, node=event.node)
    return text + (_("; left out: {what}", what="; ".join(event.left_out)) if event.left_out else "")


def health_sentence(event: LossAnnounced | Stalled | StacksTaken | Straggling) -> str:
    """Return a line about what may go wrong, and what was observed."""
    if isinstance(event, LossAnnounced):
        return _("{task}: {what}", task=event.task or event.container_id, what=translate_stored(event.text))
    if isinstance(event, Stalled):
        who = ", ".join(map(str, event.tasks[:5])) + ("…" if len(event.tasks) > 5 else "")
        return _("{tasks}: no sign of progress for {seconds} s", tasks=who, seconds=round(event.quiet_s))
    if isinstance(event, Straggling):
        return _straggling(event)
    if event.problem:
        return _("no stacks: {problem}", problem=translate_stored(event.problem))
    if event.by:
        return _("stacks: {uri}", uri=event.uri)
    who = ", ".join(map(str, event.suspects[:5])) or _("no particular task")
    reason = f" ({translate_stored(event.reason)})" if event.reason else ""
    return _("suspected: {tasks}{reason}; stacks: {uri}", tasks=who, reason=reason, uri=event.uri)


def _straggling(event: Straggling) -> str:
    if not event.what:
        return _("{task} is in line with its role again", task=event.task)
    return _(
        "{task} is out of line: {what} {value}, its role's median {median}",
        task=event.task,
        what=translate_stored(event.what),
        value=f"{event.value:g}",
        median=f"{event.median:g}",
    )


def _tensorboard_change(event: BoardChanged) -> str:
    if event.state == "open":
        return _("TensorBoard is open on {host}: `howdah status` has its link", host=event.host)
    return _("TensorBoard has ended: {reason}", reason=translate_stored(event.detail)) if event.state == "ended" else ""


def _snapshot(event: SaveStarted | SaveDone | SaveFailed) -> str:
    if isinstance(event, SaveFailed):
        return _("no snapshot {number}: {reason}", number=event.number, reason=translate_stored(event.reason))
    if isinstance(event, SaveDone):
        return _(
            "snapshot {number} is complete: {files} files, {bytes} bytes copied",
            number=event.number,
            files=event.total,
            bytes=event.bytes,
        )
    number, tasks = event.output, event.tasks
    return _(
        "taking a snapshot of outputs.{number} of {tasks} tasks at {uri}", number=number, tasks=tasks, uri=event.uri
    )


def _checkpoint(event: CheckpointFound) -> str:
    if event.error:
        return ""
    lines = [_("skipped checkpoint: {what}", what=line) for line in event.skipped]
    none = _("no checkpoint yet: the programs start from the beginning")
    return "; ".join([*lines, _("going on from {uri}", uri=event.uri) if event.uri else none])


def input_sentence(event: Joined) -> str:
    """Return the size of a task's input, and how it came."""
    size, seconds = mib(event.data_bytes), f"{event.data_seconds:.1f}"
    if event.data_cached_bytes:
        return _(
            "{files} files, {size} MiB in {seconds} s, {kept} MiB of them kept on the node",
            files=event.data_files,
            size=size,
            seconds=seconds,
            kept=mib(event.data_cached_bytes),
        )
    return _("{files} files, {size} MiB in {seconds} s", files=event.data_files, size=size, seconds=seconds)


def mib(size: int) -> str:
    """Return bytes as MiB, with decimals if there are few."""
    return f"{size / (1 << 20):.1f}" if size < 10 << 20 else str(size >> 20)
