"""The facts of a job's life. The event log is a file of these, one JSON object a line; it is the history.

The master's `step` takes events and records events: what it accepts and what it decides. `time` is epoch seconds,
read where the event was seen. A reader skips kinds it does not know.
"""

from __future__ import annotations

from dataclasses import field
from typing import Dict, Mapping, Optional, Tuple, Type

from howdah.spec.gpu import Gpu
from howdah.spec.job import JobSpec
from howdah.spec.provenance import Submission
from howdah.spec.task import Container, Exit, Outcome, TaskId
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    time: float


@dataclass(frozen=True)
class JobStarted(Event):
    """The master runs, under `python`; `submission` is what the submitter noted. Before `fenced_until` programs that a
    master before this one started, and could not write down, may still run."""

    id: str
    engine: str
    user: str
    job: JobSpec
    host: str = ""
    python: str = ""
    submission: Submission = field(default_factory=Submission)
    fenced_until: float = 0.0


@dataclass(frozen=True)
class Asked(Event):
    """The allocator was asked: `count` containers of `role` are outstanding from now on."""

    role: str
    count: int


@dataclass(frozen=True)
class Allocated(Event):
    """The engine granted a container."""

    container: Container


@dataclass(frozen=True)
class Launched(Event):
    """An executor was started in the container for this attempt of the task; or that of `giver` became its."""

    task: TaskId
    attempt: int
    container: Container
    giver: Optional[TaskId] = None


@dataclass(frozen=True)
class Greeted(Event):
    """The executor spoke for the first time."""

    task: TaskId
    attempt: int
    host: str
    pid: int
    python: str = ""


@dataclass(frozen=True)
class Joined(Event):
    """The task's files are in place and its ports reserved. `data_bytes` were fetched in `data_seconds`, of which
    `data_cached_bytes` were on the node before."""

    task: TaskId
    attempt: int
    epoch: int
    host: str
    ports: Mapping[str, int] = field(default_factory=dict)
    data_files: int = 0
    data_bytes: int = 0
    data_seconds: float = 0.0
    ip: str = ""
    data_cached_bytes: int = 0
    pair_port: int = 0


@dataclass(frozen=True)
class Checked(Event):
    """The task's container passed the checks it makes alone, or (`pairs`) has tried to exchange data: with `passed`,
    and in vain with `failed`, by task, and why. `found` are sentences, `left_out` those about what was not checked."""

    task: TaskId
    attempt: int
    epoch: int
    seconds: float = 0.0
    found: Tuple[str, ...] = ()
    left_out: Tuple[str, ...] = ()
    pairs: bool = False
    passed: Tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PreflightPassed(Event):
    """All `tasks` tasks, on `nodes` nodes, that had not been checked in their containers were; the one that took
    longest, `slowest` on `node`, took `seconds`."""

    epoch: int
    tasks: int
    nodes: int
    seconds: float
    slowest: Optional[TaskId] = None
    node: str = ""
    left_out: Tuple[str, ...] = ()


@dataclass(frozen=True)
class WorldFormed(Event):
    """All tasks have joined this epoch; every program is started now."""

    epoch: int


@dataclass(frozen=True)
class Started(Event):
    """The user's program runs. `gpus` are the devices that it was given, as CUDA_VISIBLE_DEVICES names them."""

    task: TaskId
    attempt: int
    epoch: int
    pid: int
    python: str = ""
    gpus: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Used(Event):
    """A sample: resident memory (MiB) and CPU (cores) of the task's process tree, and its own progress (0..1).
    Of `streamed_bytes` that its input streams gave it so far `local_bytes` lie on its node. Before it runs only
    `data_bytes` is told: how much of the `data_total_bytes` of its input files has come. The rest as the executor says
    it (`howdah.wire.messages.Usage`): since the program began, but for `gpus`, which are as they are now."""

    task: TaskId
    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    progress: Optional[float] = None
    streamed_bytes: int = 0
    local_bytes: int = 0
    data_bytes: int = 0
    data_total_bytes: int = 0
    log_bytes: int = 0
    cpu_s: float = 0.0
    waits: float = 0.0
    read_mib: float = 0.0
    written_mib: float = 0.0
    received_mib: float = 0.0
    sent_mib: float = 0.0
    network: str = ""
    gpus: Tuple[Gpu, ...] = ()
    gpu_mean: Optional[float] = None
    starved_s: float = 0.0
    first_progress: float = 0.0
    first_at: float = 0.0


@dataclass(frozen=True)
class Measured(Event):
    """A point of the curve `name` that the task's program tells of itself; `value` None is no number."""

    task: TaskId
    name: str
    value: Optional[float] = None
    step: Optional[int] = None


@dataclass(frozen=True)
class Yielded(Event):
    """The task has announced `values`, by variable, for the roles that come after its own."""

    task: TaskId
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Ended(Event):
    """The task's process ended, or the task's container did (`lost`). `counts` is false for one that was told to stop;
    `uploaded` are the outputs that it left complete under its attempt's name. Before `fenced_until` what ran there may
    still run."""

    task: TaskId
    attempt: int
    epoch: int
    exit: Exit
    node: str = ""
    counts: bool = True
    lost: bool = False
    uploaded: Tuple[str, ...] = ()
    fenced_until: float = 0.0


@dataclass(frozen=True)
class ContainerEnded(Event):
    """The engine says that a container is gone: `exit.cause` is `exit`, `memory`, `lost`, `preempted`, `stopped`, …"""

    container_id: str
    exit: Exit


@dataclass(frozen=True)
class CancelRequested(Event):
    """Somebody wants the job to end; `by` is who."""

    by: str


@dataclass(frozen=True)
class GangReleased(Event):
    """An incomplete gang gave its containers back; it asks again `retry_in` seconds later."""

    reason: str
    retry_in: float


@dataclass(frozen=True)
class GangRestarted(Event):
    """Programs are started again, as epoch `epoch`, because of `reason`: those of `tasks`, or all when it is empty."""

    epoch: int
    reason: str
    tasks: Tuple[TaskId, ...] = ()


@dataclass(frozen=True)
class Resized(Event):
    """A role goes on with `replicas` tasks."""

    role: str
    replicas: int
    reason: str


@dataclass(frozen=True)
class TookOver(Event):
    """Another attempt of the master runs the job: the one before it had ended without its job."""

    attempt: int
    host: str = ""
    python: str = ""


@dataclass(frozen=True)
class AllocationLost(Event):
    """The engine ends this attempt of the master, and may take all of the job's containers with it."""

    cause: str
    """Why, as people read it."""

    comes_back: bool = True
    """Whether the engine may start another master, which then goes on with the job. If not, the job ends here."""

    within_s: float = 0.0
    """How long the master may still run; 0: nobody said."""


@dataclass(frozen=True)
class MasterEnded(Event):
    """The engine says how an earlier attempt of the master ended."""

    attempt: int
    """The attempt's number."""

    reason: str
    """How it ended, as people read it."""


@dataclass(frozen=True)
class SaveRequested(Event):
    """Somebody wants a copy of output number `output` (-1: of all) as it is now; `by` is who: a user, a task."""

    by: str
    output: int = -1


@dataclass(frozen=True)
class SaveStarted(Event):
    """Copy `number` of the job, of output `output`, is being made by `tasks` tasks; it will be at `uri`."""

    number: int
    output: int
    uri: str
    tasks: int
    by: str = ""


@dataclass(frozen=True)
class SaveAdvanced(Event):
    """`done` tasks have made their part of a copy."""

    number: int
    done: int


@dataclass(frozen=True)
class SaveDone(Event):
    """The copy is in its place. `files` and `bytes` were copied, `total` are in it; `skipped` are sentences about files
    that are not; `removed` are older copies that had their time."""

    number: int
    files: int = 0
    bytes: int = 0
    total: int = 0
    skipped: Tuple[str, ...] = ()
    removed: Tuple[str, ...] = ()


@dataclass(frozen=True)
class SaveFailed(Event):
    """There is no such copy, and why; the programs go on."""

    number: int
    reason: str


@dataclass(frozen=True)
class CheckpointFound(Event):
    """What programs that start in `epochs` go on from: `uri`, "" when there is none yet. `skipped` are sentences about
    newer ones that are not whole; `error` says why nobody could look."""

    epochs: Tuple[int, ...]
    uri: str = ""
    format: str = ""
    skipped: Tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class LossAnnounced(Event):
    """The engine says that a container will be taken away within `within_s` seconds (0: nobody knows when): `cause` is
    `preemption`, `decommission` or `unhealthy`, `text` says it to people. The master says which `task` is there."""

    container_id: str
    cause: str
    within_s: float = 0.0
    text: str = ""
    task: Optional[TaskId] = None


@dataclass(frozen=True)
class Stalled(Event):
    """The programs of `tasks` have shown no sign of progress for `quiet_s` seconds; stacks of all are taken now."""

    tasks: Tuple[TaskId, ...]
    quiet_s: float


@dataclass(frozen=True)
class StacksTaken(Event):
    """What the programs were doing is kept at `uri` ("": `problem` says why not). `by` is who asked, "" when a stall
    did; `suspects` are the tasks for which the others seem to wait, and `reason` is why these."""

    by: str = ""
    uri: str = ""
    suspects: Tuple[TaskId, ...] = ()
    reason: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Straggling(Event):
    """The task is out of line with its role: of `what` it has `value`, the role's median is `median`. An empty `what`
    says that it is in line again."""

    task: TaskId
    what: str = ""
    value: float = 0.0
    median: float = 0.0


@dataclass(frozen=True)
class BoardChanged(Event):
    """The job's TensorBoard, which runs beside its tasks, is `starting`, `open` at host and port, or has `ended`, and
    `detail` says why."""

    state: str
    host: str = ""
    port: int = 0
    detail: str = ""


@dataclass(frozen=True)
class Stopping(Event):
    """The outcome is decided; programs still running are asked to stop."""

    reason: str

    outcome: Optional[Outcome] = None
    """What was decided, where nothing that was recorded before says it: a limit was passed."""


@dataclass(frozen=True)
class Noted(Event):
    """Something people should know: a node was lost, a preemption announced, the cluster does not answer. `decided`:
    the master came to it by itself, when the time had come."""

    text: str
    decided: bool = False


@dataclass(frozen=True)
class TimeLost(Event):
    """The master did not run for `seconds`, or its clock was set by as much (back, when below 0): they count for
    nobody."""

    seconds: float


@dataclass(frozen=True)
class Committed(Event):
    """An output is in its place."""

    uri: str


@dataclass(frozen=True)
class JobFinished(Event):
    """The last event."""

    outcome: Outcome


KINDS: Dict[str, Type[Event]] = {
    kind.__name__: kind
    for kind in (
        JobStarted,
        Asked,
        Allocated,
        Launched,
        Greeted,
        Joined,
        Checked,
        PreflightPassed,
        WorldFormed,
        Started,
        Used,
        Measured,
        Yielded,
        Ended,
        ContainerEnded,
        CancelRequested,
        GangReleased,
        GangRestarted,
        Resized,
        TookOver,
        AllocationLost,
        MasterEnded,
        SaveRequested,
        SaveStarted,
        SaveAdvanced,
        SaveDone,
        SaveFailed,
        CheckpointFound,
        LossAnnounced,
        Stalled,
        StacksTaken,
        Straggling,
        BoardChanged,
        Stopping,
        Noted,
        TimeLost,
        Committed,
        JobFinished,
    )
}
