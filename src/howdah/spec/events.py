"""The events of a job. The event log is a file of events, one JSON object a line, and is the job's history.

The master's `step` takes events and records events: those that it accepts and those that it decides. A reader skips the
kinds of events that it does not know.
"""

from __future__ import annotations

from dataclasses import field
from typing import Dict, Mapping, Optional, Tuple, Type

from howdah.spec.job import JobSpec
from howdah.spec.message import Sentence, join_messages, message
from howdah.spec.provenance import Submission
from howdah.spec.task import Container, Exit, Outcome, TaskId
from howdah.spec.task_events import Checked as Checked
from howdah.spec.task_events import Ended as Ended
from howdah.spec.task_events import Event as Event
from howdah.spec.task_events import Greeted as Greeted
from howdah.spec.task_events import Joined as Joined
from howdah.spec.task_events import Launched as Launched
from howdah.spec.task_events import Measured as Measured
from howdah.spec.task_events import Started as Started
from howdah.spec.task_events import Straggling as Straggling
from howdah.spec.task_events import TaskEntered as TaskEntered
from howdah.spec.task_events import TrackerRunsFound as TrackerRunsFound
from howdah.spec.task_events import Used as Used
from howdah.spec.task_events import Yielded as Yielded
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class JobStarted(Event):
    """The master runs and has begun a new event log."""

    id: str
    """The job's id."""
    engine: str
    """The name of the engine that runs the job."""
    user: str
    """The user who submitted the job."""
    job: JobSpec
    """The job's spec, already expanded by its framework."""
    host: str = ""
    """The host of the master."""
    python: str = ""
    """Version and path of the Python interpreter that runs the master."""
    submission: Submission = Submission()
    """The submitter's record of the submission."""
    one_machine: bool = False
    """Whether all containers of the job are on one machine."""
    fenced_until: float = 0.0
    """The time (epoch seconds) until which programs may still run that an earlier master started and could not record;
    0 when there was none."""


@dataclass(frozen=True)
class Asked(Event):
    """The allocator was asked for containers."""

    role: str
    """The role that gets the containers."""
    count: int
    """The number of containers of this role that are outstanding from now on."""


@dataclass(frozen=True)
class Waiting(Event):
    """The job waits for containers, for longer than a moment; or, with nothing `missing`, it waits no more."""

    since: float = 0.0
    """Since when it waits, in epoch seconds."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """How many containers are missing, by role."""
    reasons: Tuple[Sentence, ...] = ()
    """Why the engine has not granted them, for people; () if it does not say."""

    @property
    def sentence(self) -> Sentence:
        """Return what the job waits for, and why, as a sentence for people; "" if nothing is missing."""
        missing = ", ".join(f"{count} × {role}" for role, count in self.missing.items())
        if not self.reasons:
            return message("still waiting for containers: {missing}", missing=missing) if missing else ""
        template = "still waiting for containers: {missing}: {reasons}"
        return message(template, missing=missing, reasons=join_messages(self.reasons))


@dataclass(frozen=True)
class Allocated(Event):
    """The engine granted a container."""

    container: Container
    """The container that was granted."""


@dataclass(frozen=True)
class PreflightPassed(Event):
    """All tasks of an epoch that had not been checked in their containers have passed pre-flight."""

    epoch: int
    """The epoch whose programs start now."""
    tasks: int
    """The number of tasks that were checked."""
    nodes: int
    """The number of nodes on which they were checked."""
    seconds: float
    """How long the slowest task took."""
    slowest: Optional[TaskId] = None
    """The task that took longest."""
    node: str = ""
    """The node of the slowest task."""
    left_out: Tuple[Sentence, ...] = ()
    """Sentences about what was not checked."""


@dataclass(frozen=True)
class WorldFormed(Event):
    """All tasks have joined this epoch, and every program is started now."""

    epoch: int
    """The epoch whose world is complete."""


@dataclass(frozen=True)
class ContainerEnded(Event):
    """The engine says that a container is gone."""

    container_id: str
    """The engine's name for the container."""
    exit: Exit
    """How the container ended; its cause is `exit`, `memory`, `lost`, `preempted`, `stopped`, …"""
    certain: bool = False
    """Whether nothing of the container runs any more, whatever its exit says."""


@dataclass(frozen=True)
class CancelRequested(Event):
    """A user, or the engine, wants the job to end."""

    by: str
    """Who wants it."""


@dataclass(frozen=True)
class GangReleased(Event):
    """An incomplete gang gave its containers back."""

    reason: Sentence
    """Why it did, for people."""
    retry_in: float
    """Seconds after which the gang asks for containers again."""


@dataclass(frozen=True)
class GangRestarted(Event):
    """Programs are started again, as a new epoch."""

    epoch: int
    """The number of the new epoch."""
    reason: Sentence
    """Why they are started again, for people."""
    tasks: Tuple[TaskId, ...] = ()
    """The tasks whose programs start again; empty for all."""


@dataclass(frozen=True)
class Resized(Event):
    """A role goes on with another number of tasks."""

    role: str
    """The elastic role."""
    replicas: int
    """The number of tasks that the role has now."""
    reason: Sentence
    """Why the number changed, for people."""


@dataclass(frozen=True)
class TookOver(Event):
    """Another attempt of the master runs the job, because the attempt before it ended without the job."""

    attempt: int
    """The number of the master's attempt."""
    host: str = ""
    """The host of the master."""
    python: str = ""
    """Version and path of the Python interpreter that runs the master."""


@dataclass(frozen=True)
class AllocationLost(Event):
    """The engine ends this attempt of the master, and may take all of the job's containers with it."""

    cause: Sentence
    """Why the engine does so, for people."""

    comes_back: bool = True
    """Whether the engine may start another master, which then goes on with the job. If not, the job ends here."""

    within_s: float = 0.0
    """Seconds that the master may still run; 0 when the engine does not say."""


@dataclass(frozen=True)
class MasterEnded(Event):
    """The engine says how an earlier attempt of the master ended."""

    attempt: int
    """The number of that attempt."""

    reason: Sentence
    """How it ended, for people."""


@dataclass(frozen=True)
class SaveRequested(Event):
    """A user or a program asks for a snapshot of an output as it is now."""

    by: str
    """Who asks: a user or a task."""
    output: int = -1
    """The number of the output; -1 for all outputs."""


@dataclass(frozen=True)
class SaveStarted(Event):
    """A snapshot is being made."""

    number: int
    """The number of the snapshot in the job."""
    output: int
    """The number of the output that the snapshot copies."""
    uri: str
    """Where the finished snapshot will be."""
    tasks: int
    """The number of tasks that make a part of the snapshot."""
    by: str = ""
    """Who asked for it; "" when its time had come."""


@dataclass(frozen=True)
class SaveAdvanced(Event):
    """More tasks have made their part of a snapshot."""

    number: int
    """The number of the snapshot."""
    done: int
    """The number of tasks that have made their part."""


@dataclass(frozen=True)
class SaveDone(Event):
    """The snapshot is in its place."""

    number: int
    """The number of the snapshot."""
    files: int = 0
    """The number of files that were copied."""
    bytes: int = 0
    """The bytes that were copied."""
    total: int = 0
    """The number of files in the snapshot, with those taken over from an earlier one."""
    skipped: Tuple[Sentence, ...] = ()
    """Sentences about files that are not in the snapshot."""
    removed: Tuple[str, ...] = ()
    """URIs of older snapshots that were removed, because only the newest are kept."""


@dataclass(frozen=True)
class SaveFailed(Event):
    """A snapshot could not be made; the programs go on."""

    number: int
    """The number of the snapshot."""
    reason: Sentence
    """Why it could not be made, for people."""


@dataclass(frozen=True)
class CheckpointFound(Event):
    """The master has looked for the checkpoint that programs resume from."""

    epochs: Tuple[int, ...]
    """The epochs whose programs resume from it."""
    uri: str = ""
    """The checkpoint's URI; "" when there is none yet."""
    format: str = ""
    """The checkpoint's file format."""
    skipped: Tuple[Sentence, ...] = ()
    """Sentences about newer checkpoints that are damaged or incomplete."""
    error: Sentence = ""
    """Why the directory could not be searched; "" when the search succeeded."""


@dataclass(frozen=True)
class LossAnnounced(Event):
    """The engine says that it will take a container away."""

    container_id: str
    """The engine's name for the container."""
    cause: str
    """One of `preemption`, `decommission` and `unhealthy`."""
    within_s: float = 0.0
    """Seconds until the container is taken away; 0 when that is unknown."""
    text: Sentence = ""
    """The announcement, for people."""
    task: Optional[TaskId] = None
    """The task in the container; the master fills it in."""


@dataclass(frozen=True)
class Stalled(Event):
    """Programs have shown no sign of progress for a while; stacks of all programs are taken now."""

    tasks: Tuple[TaskId, ...]
    """The tasks whose programs show no progress."""
    quiet_s: float
    """Seconds without a sign of progress."""


@dataclass(frozen=True)
class StacksTaken(Event):
    """The stacks of the programs were dumped."""

    by: str = ""
    """Who asked for the stacks; "" when hang detection did."""
    uri: str = ""
    """Where the stacks are kept; "" when they could not be kept."""
    suspects: Tuple[TaskId, ...] = ()
    """The tasks for which the other tasks seem to wait."""
    reason: Sentence = ""
    """Why these tasks are suspected, for people."""
    problem: Sentence = ""
    """Why the stacks could not be kept; "" when they are kept."""


@dataclass(frozen=True)
class BoardChanged(Event):
    """The state of the job's TensorBoard changed."""

    state: str
    """One of `starting`, `open` and `ended`."""
    host: str = ""
    """The host at which TensorBoard is open."""
    port: int = 0
    """The port at which TensorBoard is open."""
    detail: Sentence = ""
    """Why TensorBoard ended, for people."""


@dataclass(frozen=True)
class Stopping(Event):
    """The outcome is decided, and programs that still run are asked to stop."""

    reason: Sentence
    """Why the job ends, for people."""

    outcome: Optional[Outcome] = None
    """The decision, if no earlier event shows it: a time limit was passed."""


@dataclass(frozen=True)
class Noted(Event):
    """Something happened that people should know: a node was lost, a preemption announced, the cluster does not
    answer."""

    text: Sentence
    """The sentence for people."""
    decided: bool = False
    """True when the master decided it by itself, because a deadline had passed."""


@dataclass(frozen=True)
class TimeLost(Event):
    """The master did not run for a while, or its clock was set: that time counts for no deadline."""

    seconds: float
    """The seconds that passed without the master; below 0 when the clock was set back."""


@dataclass(frozen=True)
class Committed(Event):
    """An output is in its place."""

    uri: str
    """The output's URI."""


@dataclass(frozen=True)
class JobFinished(Event):
    """The job has ended; this is the last event."""

    outcome: Outcome
    """How the job ended."""


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
        Waiting,
        Started,
        Used,
        Measured,
        Yielded,
        TrackerRunsFound,
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
        TaskEntered,
        BoardChanged,
        Stopping,
        Noted,
        TimeLost,
        Committed,
        JobFinished,
    )
}
