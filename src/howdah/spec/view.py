"""A job as its events tell it: the one view that the live page, the history, the command line and tests share."""

from __future__ import annotations

from dataclasses import field
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from howdah.spec.attempt import MOST_MARKS, AttemptView, JobMark
from howdah.spec.events import BoardChanged
from howdah.spec.gpu import Gpu
from howdah.spec.job import JobSpec
from howdah.spec.provenance import Submission
from howdah.spec.task import Exit, Outcome, State, TaskId
from howdah.spec.values import dataclass

MOST_SAVES = 100


class MetricPoint(NamedTuple):
    """Of a curve; `value` None is no number."""

    time: float
    step: Optional[int]
    value: Optional[float]


class ProgressRate(NamedTuple):
    """The first progress that a run of a program told, and the latest."""

    first_at: float
    first: float
    last_at: float
    last: float


@dataclass
class TaskView:
    """One task as people see it.

    `phase` is the state's finer grain: asked, launched, localising, joined, running. `python` is what runs the
    executor, `program` the one that the program finds; of `data_total_bytes` of input files `data_bytes` have come.
    `curves` are what its program tells of itself, by name (`howdah.program.metric`). What it uses is as in the last
    sample (`Used`), taken at `used`; `pace` is how its progress went since it began. `attempts` are
    the latest ones, in order; the last is `attempt`. `straggler` says in what it is out of line with its role,
    `notice` that its container will be taken away.
    """

    id: TaskId
    state: State = State.PENDING
    phase: str = "asked"
    attempt: int = 0
    container: str = ""
    host: str = ""
    node: str = ""
    log_url: str = ""
    pid: int = 0
    python: str = ""
    program: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    started: float = 0.0
    finished: float = 0.0
    progress: Optional[float] = None
    memory_mib: float = 0.0
    peak_mib: float = 0.0
    cpu: float = 0.0
    streamed_bytes: int = 0
    local_bytes: int = 0
    data_bytes: int = 0
    data_total_bytes: int = 0
    log_bytes: int = 0
    cpu_s: float = 0.0
    waits: float = 0.0
    starved_s: float = 0.0
    read_mib: float = 0.0
    written_mib: float = 0.0
    received_mib: float = 0.0
    sent_mib: float = 0.0
    network: str = ""
    gpus: Sequence[Gpu] = ()
    gpu_mean: Optional[float] = None
    used: float = 0.0
    pace: Optional[ProgressRate] = None
    curves: Dict[str, List[MetricPoint]] = field(default_factory=dict)
    exit: Optional[Exit] = None
    straggler: str = ""
    notice: str = ""
    attempts: List[AttemptView] = field(default_factory=list)
    tries: int = 0
    """How often it was launched, or started again in its container: what people are shown as its attempt."""
    started_epoch: int = 0
    """In which its program was started last in this container, 0 when it was not."""


@dataclass
class SaveView:
    """A copy of output number `output`, made while the programs run: `done` of `tasks` have made their part.

    `state` is RUNNING, SUCCEEDED or FAILED (`reason` says why); one that is `removed` had its time.
    """

    number: int
    output: int
    uri: str
    tasks: int
    by: str = ""
    state: State = State.RUNNING
    done: int = 0
    files: int = 0
    bytes: int = 0
    total: int = 0
    started: float = 0.0
    finished: float = 0.0
    reason: str = ""
    skipped: Sequence[str] = ()
    removed: bool = False


@dataclass
class JobView:
    """A job as people see it. `saves` are the newest copies made while it runs, `resumed` the checkpoint from which its
    programs went on. `marks` are what happened, `formed` has the moment of each epoch, `updated` is that of the latest
    event; `asked` (by role) and `allocated` (by container) are for attempts to come. `submission` is what the submitter
    noted."""

    id: str = ""
    engine: str = ""
    user: str = ""
    job: Optional[JobSpec] = None
    python: str = ""
    host: str = ""
    state: State = State.PENDING
    epoch: int = 0
    started: float = 0.0
    running: float = 0.0
    finished: float = 0.0
    tasks: Dict[TaskId, TaskView] = field(default_factory=dict)
    marks: List[JobMark] = field(default_factory=list)
    formed: Dict[int, float] = field(default_factory=dict)
    asked: Dict[str, float] = field(default_factory=dict)
    allocated: Dict[str, float] = field(default_factory=dict)
    updated: float = 0.0
    submission: Submission = field(default_factory=Submission)
    outputs: List[str] = field(default_factory=list)
    saves: List[SaveView] = field(default_factory=list)
    stacks: List[str] = field(default_factory=list)
    """URIs of the newest stacks that were kept."""
    resumed: str = ""
    board: BoardChanged = field(default_factory=lambda: BoardChanged(0.0, ""))
    """What was last told of its TensorBoard."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of roles that run with other numbers of tasks than were asked for."""
    ends_as: Optional[State] = None
    """What tasks are called that are told to stop: CANCELLED where somebody cancelled the job, else STOPPED."""
    unfitting: int = 0
    """The number of lines in a damaged log that cannot be read, or do not fit what came before them."""
    outcome: Optional[Outcome] = None

    def takes_part(self, task: TaskId) -> bool:
        """Whether it is one of the job's tasks now, and no spare."""
        role = self.job.roles.get(task.role) if self.job else None
        return role is None or task.index < self.sizes.get(task.role, role.replicas)

    @property
    def notes(self) -> List[str]:
        """Sentences about what happened, in order."""
        told = [mark.text for mark in self.marks if mark.kind in ("note", "restarted", "takeover")]
        damage = f"the event log is damaged, lines that were passed over: {self.unfitting}"
        return [*told, damage] if self.unfitting else told

    def mark(self, time: float, text: str, kind: str = "note", task: Optional[TaskId] = None) -> None:
        """Remember that it happened."""
        self.marks.append(JobMark(time, kind, text, task))
        if len(self.marks) > MOST_MARKS:
            del self.marks[MOST_MARKS // 2]

    @property
    def progress(self) -> float:
        """Mean of what the tasks report, 1 for one that ended well; where none reports, the share that ended well."""
        tasks = self.tasks.values()
        reported = [task.progress for task in tasks if task.progress is not None and task.state is not State.SUCCEEDED]
        well = sum(task.state is State.SUCCEEDED for task in tasks)
        counted = len(reported) + well if reported else len(tasks)
        return (sum(reported) + well) / counted if counted else 0.0
