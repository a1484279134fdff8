"""The view of a job that its events make: the live page, the history, the command line and tests share it."""

from __future__ import annotations

from dataclasses import field
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from howdah.spec.attempt import MAX_MARKS, AttemptView, JobMark
from howdah.spec.events import BoardChanged, Waiting
from howdah.spec.job import JobSpec
from howdah.spec.message import Sentence, message
from howdah.spec.provenance import Submission
from howdah.spec.task import Exit, Outcome, State, TaskId
from howdah.spec.usage import Usage
from howdah.spec.values import dataclass

MAX_SNAPSHOTS = 100


class MetricPoint(NamedTuple):
    """A point of a metric that a task's program reports."""

    time: float
    """When the point was reported, in epoch seconds."""
    step: Optional[int]
    """The training step; None when the program names none."""
    value: Optional[float]
    """The value; None for a value that is no finite number."""


class ProgressRate(NamedTuple):
    """The first and the latest progress that a run of a program reported."""

    first_at: float
    """When the first progress was reported, in epoch seconds."""
    first: float
    """The first progress, 0 to 1."""
    last_at: float
    """When the latest progress was reported, in epoch seconds."""
    last: float
    """The latest progress, 0 to 1."""


@dataclass
class TaskView:
    """One task as people see it. Moments are epoch seconds, 0 when not yet."""

    id: TaskId
    """The task's role and index."""
    state: State = State.PENDING
    """The task's state."""
    phase: str = "asked"
    """The state in more detail: asked, launched, localising, joined, running."""
    attempt: int = 0
    """The number of the present attempt."""
    container: str = ""
    """The engine's name for the container."""
    host: str = ""
    """The host that the executor names as its own."""
    node: str = ""
    """The node of the container."""
    log_url: str = ""
    """Where people read the container's logs."""
    pid: int = 0
    """The program's process id on that host."""
    python: str = ""
    """The Python interpreter that runs the executor."""
    program: str = ""
    """The Python interpreter that the program finds."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The reserved ports, by name."""
    started: float = 0.0
    """When the program began to run."""
    finished: float = 0.0
    """When the program ended."""
    usage: Usage = Usage()
    """The last sample of what the task uses; its progress and its GPUs are the last ones that were known."""
    data_bytes: int = 0
    """Bytes of the input files that have been fetched; sampled only before the program runs."""
    data_total_bytes: int = 0
    """Bytes of all input files of the task; sampled only before the program runs."""
    used: float = 0.0
    """When the last sample of the usage was taken."""
    pace: Optional[ProgressRate] = None
    """The first and the latest progress since the program began; None when it reports none."""
    metrics: Dict[str, List[MetricPoint]] = field(default_factory=dict)
    """The points of the program's metrics, by name (`howdah.program.metric`)."""
    tracker_runs: List[str] = field(default_factory=list)
    """The addresses of runs of experiment trackers that its programs have printed."""
    exit: Optional[Exit] = None
    """How the present attempt ended; None while it runs."""
    straggler: Sentence = ""
    """How the task differs from the other tasks of its role; "" when it does not."""
    notice: Sentence = ""
    """The announcement that the container will be taken away; "" for none."""
    attempts: List[AttemptView] = field(default_factory=list)
    """The latest attempts, in order; the last one is `attempt`."""
    tries: int = 0
    """How often the task was launched, or restarted in its container: the number that people see as its attempt."""
    started_epoch: int = 0
    """The epoch in which the program was last started in this container; 0 when it was not."""


@dataclass
class SnapshotView:
    """A snapshot of an output, made while the programs run."""

    number: int
    """The number of the snapshot in the job."""
    output: int
    """The number of the output that the snapshot copies."""
    uri: str
    """Where the snapshot is, or will be."""
    tasks: int
    """The number of tasks that make a part of the snapshot."""
    by: str = ""
    """Who asked for it; "" when its time had come."""
    state: State = State.RUNNING
    """RUNNING, SUCCEEDED or FAILED."""
    done: int = 0
    """The number of tasks that have made their part."""
    files: int = 0
    """The number of files that were copied."""
    bytes: int = 0
    """The bytes that were copied."""
    total: int = 0
    """The number of files in the snapshot, with those taken over from an earlier one."""
    started: float = 0.0
    """When it was begun, in epoch seconds."""
    finished: float = 0.0
    """When it was complete, or had failed; 0 when not yet."""
    reason: Sentence = ""
    """Why it failed, for people."""
    skipped: Sequence[Sentence] = ()
    """Sentences about files that are not in it."""
    removed: bool = False
    """It was removed, because only the newest snapshots are kept."""


@dataclass
class JobView:
    """A job as people see it. Moments are epoch seconds, 0 when not yet."""

    id: str = ""
    """The job's id."""
    engine: str = ""
    """The name of the engine that runs the job."""
    user: str = ""
    """The user who submitted the job."""
    job: Optional[JobSpec] = None
    """The job's spec; None before the first event."""
    python: str = ""
    """The Python interpreter that runs the master."""
    host: str = ""
    """The host of the master."""
    one_machine: bool = False
    """Whether all containers of the job are on one machine."""
    state: State = State.PENDING
    """The job's state."""
    epoch: int = 0
    """The newest epoch."""
    started: float = 0.0
    """When the master began."""
    running: float = 0.0
    """When the first world formed."""
    finished: float = 0.0
    """When the job ended."""
    tasks: Dict[TaskId, TaskView] = field(default_factory=dict)
    """All tasks, by id."""
    marks: List[JobMark] = field(default_factory=list)
    """What happened, in order."""
    formed: Dict[int, float] = field(default_factory=dict)
    """When each epoch's world formed."""
    asked: Dict[str, float] = field(default_factory=dict)
    """When containers were last asked for, by role; for attempts to come."""
    waiting: Optional[Waiting] = None
    """The containers for which the job waits now, and why; None when it waits for none."""
    allocated: Dict[str, float] = field(default_factory=dict)
    """When containers were granted, by container; for attempts to come."""
    updated: float = 0.0
    """The time of the latest event."""
    submission: Submission = Submission()
    """The submitter's record of the submission."""
    outputs: List[str] = field(default_factory=list)
    """URIs of the outputs that are in their places."""
    snapshots: List[SnapshotView] = field(default_factory=list)
    """The newest snapshots."""
    stacks: List[str] = field(default_factory=list)
    """URIs of the newest stacks that were kept."""
    resumed: str = ""
    """The checkpoint from which the programs resumed; "" for none."""
    tensorboard: BoardChanged = field(default_factory=lambda: BoardChanged(0.0, ""))
    """The last change of the job's TensorBoard."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The present number of tasks of each role whose number differs from the one that was asked for."""
    ends_as: Optional[State] = None
    """The state that tasks get when they are told to stop: CANCELLED if a user cancelled the job, else STOPPED."""
    unfitting: int = 0
    """The number of lines in a damaged log that cannot be read, or do not fit the lines before."""
    outcome: Optional[Outcome] = None
    """How the job ended; None while it runs."""

    def takes_part(self, task: TaskId) -> bool:
        """Return whether the task is one of the job's tasks now, and not a spare."""
        role = self.job.roles.get(task.role) if self.job else None
        return role is None or task.index < self.sizes.get(task.role, role.replicas)

    @property
    def notes(self) -> List[Sentence]:
        """Return sentences about what happened, in order."""
        notes = [mark.text for mark in self.marks if mark.kind in ("note", "restarted", "takeover")]
        template = "the event log is damaged, lines that were skipped: {count}"
        return [*notes, message(template, count=self.unfitting)] if self.unfitting else notes

    def mark(self, time: float, text: Sentence, kind: str = "note", task: Optional[TaskId] = None) -> None:
        """Record that something happened."""
        self.marks.append(JobMark(time, kind, text, task))
        if len(self.marks) > MAX_MARKS:
            del self.marks[MAX_MARKS // 2]

    @property
    def progress(self) -> float:
        """Return the mean of the progress that tasks report; a task that ended well counts as 1. If no task reports,
        return the share of tasks that ended well."""
        tasks = self.tasks.values()
        unfinished = (task.usage.progress for task in tasks if task.state is not State.SUCCEEDED)
        reported = [progress for progress in unfinished if progress is not None]
        well = sum(task.state is State.SUCCEEDED for task in tasks)
        counted = len(reported) + well if reported else len(tasks)
        return (sum(reported) + well) / counted if counted else 0.0
