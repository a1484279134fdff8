"""The state of the master.

Only `howdah.master.decisions.step` and the modules that it calls change it while a job goes on, and
`howdah.master.recovery` before that, when a master takes over. TensorBoard's task has a state of its own
(`howdah.master.tensorboard`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from howdah.master.decisions.checkpoint_lookup import CheckpointLookups
from howdah.master.decisions.heartbeat_timeouts import FENCE_S, GREET_S, greet_limit_s
from howdah.master.preflight.state import PreflightState
from howdah.master.snapshots.state import SnapshotState
from howdah.spec import Container, Exit, JobSpec, Member, Outcome, Role, StagedJob, TaskId, World
from howdah.spec.message import Sentence
from howdah.spec.usage import Usage
from howdah.spec.values import dataclass
from howdah.wire.messages import Phase, PreemptionNotice


class Stage(enum.Enum):
    """The stage of the whole job. It only moves forward, except from RUNNING back to FORMING when the gang restarts."""

    FORMING = "forming"
    RUNNING = "running"
    STOPPING = "stopping"
    COMMITTING = "committing"
    DONE = "done"


@dataclass
class TaskState:
    """The state of one task."""

    id: TaskId
    """The task's role and index."""
    attempt: int = 0
    """The number of containers that the task has had."""
    container: Container | None = None
    """The container of the present attempt; None while the task has none."""
    phase: Phase | None = None
    """The phase that the executor reported last; None before its first status."""
    sequence: int = 0
    """The sequence number of the executor's last status: older ones are ignored."""
    launched_at: float = 0.0
    """When the executor was started in the container."""
    heard_at: float = 0.0
    """When the executor was last heard."""
    epoch: int = 0
    """The epoch in which the task is to run; 0 before its stage has begun."""
    joined: int = 0
    """The epoch that the task has joined."""
    started: int = 0
    """The epoch in which its program was started."""
    peers: tuple[TaskId, ...] = ()
    """The tasks of its world, the task itself among them."""
    world: World | None = None
    """The world of its epoch; None until all peers have joined."""
    restarts: int = 0
    """How often this task alone was restarted."""
    stopped: bool = False
    """The master wants the task to end: its exit is no failure."""
    untracked: bool = False
    """True when the job no longer waits for the task's end, though its role is tracked."""
    adopted: bool = False
    """The container was started by an earlier master."""
    fenced_until: float = 0.0
    """Until this moment the program of an earlier attempt, which is not heard any more, may still run."""
    host: str = ""
    """The host at which peers reach the task."""
    ip: str = ""
    """The host as a numeric address, "" when it is not known."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The reserved ports, by name."""
    pair_port: int = 0
    """The port at which peers exchange data with the container during pre-flight."""
    checked: int = 0
    """The attempt that has passed the pre-flight checks that a container makes alone."""
    paired: str = ""
    """The container that has passed the pair tests with others."""
    usage: Usage = field(default_factory=Usage)
    """The resources that the task uses, as the executor's last status reports them."""
    used_at: float = 0.0
    """When a sample of the usage was last recorded."""
    exit: Exit | None = None
    """How the program or the container ended in this epoch; None while it has not."""
    ended_at: float = 0.0
    """When the program or the container ended."""
    uploaded: tuple[str, ...] = ()
    """The outputs that the attempt has uploaded completely."""
    kept: bool = False
    """The task has uploaded what is kept of a failed job."""
    idle_s: float = 0.0
    """Seconds for which the program has shown no sign of progress."""
    notice: PreemptionNotice | None = None
    """The announcement that the container will be taken away; None when there is none."""
    announced_values: Mapping[str, str] = field(default_factory=dict)
    """The values that the program announced for later roles, by variable."""
    tracker_runs: tuple[str, ...] = ()
    """The addresses of runs of experiment trackers that are recorded."""
    warnings: tuple[Sentence, ...] = ()
    """The warnings of its executor that have been recorded."""
    worlds: int = 0
    """The number of worlds that formed with this task."""

    @property
    def live(self) -> bool:
        """Return whether the task has a container, and its program has not ended in this epoch."""
        return self.container is not None and self.exit is None

    @property
    def formed(self) -> bool:
        """Return whether the world of the task's epoch is complete: its program may run."""
        return self.world is not None and self.world.epoch == self.epoch

    @property
    def attempt_name(self) -> str:
        """Return the name of the present attempt: `worker:3/2` is the second attempt of worker:3."""
        return f"{self.id}/{self.attempt}"

    @property
    def node(self) -> str:
        """Return the node on which the task runs, as far as it is known."""
        return self.container.node if self.container else self.host

    def fence(self, heard_at: float) -> None:
        """Fence the program, which cannot be stopped for certain: it ends by itself when its lease is over."""
        self.fenced_until = max(self.fenced_until, heard_at + FENCE_S)

    def move_to(self, container: Container, now: float) -> None:
        """Begin a new attempt in `container`."""
        self.attempt, self.container, self.launched_at, self.heard_at = self.attempt + 1, container, now, now
        self.adopted = False
        self.leave()

    def leave(self) -> None:
        """Forget what was reported from the container that the task had."""
        self.phase, self.sequence, self.joined, self.host, self.ports = None, 0, 0, "", {}
        self.exit, self.uploaded, self.used_at, self.ended_at, self.kept = None, (), 0.0, 0.0, False
        self.idle_s, self.notice = 0.0, None


@dataclass
class Formation:
    """Tasks that start together, in one epoch."""

    epoch: int
    """The epoch in which they start."""
    tasks: tuple[TaskId, ...]
    """All tasks that start together."""
    waiting: set[TaskId]
    """The tasks that have not joined."""
    not_before: float = 0.0
    """The earliest moment at which they may start."""
    wait_announced: bool = False
    """True once it was recorded why the programs do not start although all tasks have joined."""


@dataclass
class HangState:
    """The findings of hang detection, and the state of its wait for stacks."""

    reported: dict[TaskId, tuple[int, float]] = field(default_factory=dict)
    """The tasks that were reported as stalled, with the epoch and the seconds without progress."""
    awaited: tuple[TaskId, ...] = ()
    """The stalled tasks whose stacks are being collected."""
    idle_s: float = 0.0
    """Seconds for which the awaited tasks had shown no progress."""
    until: float = 0.0
    """When the master stops waiting for the stacks."""
    epochs: dict[TaskId, int] = field(default_factory=dict)
    """The epochs of all tasks that ran when collecting began."""


@dataclass
class RestartCause:
    """Why tasks started again."""

    task: TaskId
    """The task whose end caused the restart."""
    epoch: int
    """The epoch in which that task ended."""
    weight: int
    """How well the reason explains other failures: a greater weight replaces a smaller one."""
    seen_at: float
    """When the end was seen."""


@dataclass
class GangState:
    """The state of the job. Times are epoch seconds of the master's clock."""

    id: str
    """The job's id."""
    job: JobSpec
    """The spec, expanded by the framework, with the sizes that roles have now."""
    tasks: dict[TaskId, TaskState]
    """All tasks, spares among them."""
    stage: Stage = Stage.FORMING
    """Where the job is as a whole."""
    warnings: int = 0
    """The number of executors' warnings that have been recorded."""
    epoch: int = 0
    """The newest epoch."""
    formations: dict[int, Formation] = field(default_factory=dict)
    """The formations that have not started yet, by epoch."""
    unrecorded: set[int] = field(default_factory=set)
    """Epochs whose start the event log does not have yet. Programs that must not start twice wait for it, because a
    master that takes over could not know of the start."""
    replaying: bool = False
    """True while an event log is replayed: worlds form where the log has them, and nowhere else."""
    pending_tasks: dict[str, dict[TaskId, None]] = field(default_factory=dict)
    """By role, the tasks that wait for a container, in the order in which they get one."""
    restarted: dict[str, int] = field(default_factory=dict)
    """How often each role was restarted."""
    requested_at: float = 0.0
    """When containers were last asked for."""
    granted_at: float = 0.0
    """When a container was last granted."""
    request_again_at: float = 0.0
    """When a gang that gave its containers back asks again; 0 when it waits for nothing."""
    releases: int = 0
    """How often an incomplete gang gave its containers back."""
    replacements: int = 0
    """How many containers were replaced before the gang had formed."""
    retries_used: int = 0
    """How many of the job's retries are used."""
    free_restarts: list[float] = field(default_factory=list)
    """When restarts happened that use up no retry, because only the cluster is to blame."""
    last_restart_cause: RestartCause | None = None
    """The cause of the last restart; None before the first."""
    port_retries: int = 0
    """How often the gang formed anew because another program had taken a reserved port."""
    taken_over: bool = False
    """Another master ran the job before this one."""
    running_since: float = 0.0
    """When the first world formed; 0 while none has."""
    done_at: float = 0.0
    """When the chief was done, and the others got `timeouts.grace`; 0 while it is not."""
    stop_by: float = 0.0
    """When programs that were asked to stop must have ended."""
    outcome: Outcome | None = None
    """The job's outcome; None until it is decided."""
    incomplete: bool = False
    """The programs ended well, and the job failed because no task made one of its outputs."""
    containers: dict[str, TaskId] = field(default_factory=dict)
    """The task of each container, by the container's id."""
    snapshots: SnapshotState = field(default_factory=SnapshotState)
    """The snapshots that are requested or being made."""
    checkpoint_lookups: CheckpointLookups = field(default_factory=CheckpointLookups)
    """The checkpoints from which each epoch resumes."""
    preferred_hosts: Mapping[TaskId, tuple[str, ...]] = field(default_factory=dict)
    """The hosts that hold a task's input data."""
    node_penalties: dict[str, float] = field(default_factory=dict)
    """The penalty of each node for failures that it caused, in earlier jobs too."""
    greet_s: float = GREET_S
    """Seconds within which the executor of a new container must send its first status."""
    node_failures: list[tuple[str, float]] = field(default_factory=list)
    """The failures that nodes caused in this job, with their times."""
    hangs: HangState = field(default_factory=HangState)
    """The state of hang detection."""
    preflight: PreflightState = field(default_factory=PreflightState)
    """The state of the pre-flight checks."""
    notices: int = 0
    """The number of preemption notices so far."""
    formed_at: float = 0.0
    """When the last world formed."""
    quick_failures: int = 0
    """How many restarts in a row failed soon after their start."""
    wanted: Mapping[str, int] = field(default_factory=dict)
    """The sizes that were asked for, by role. Tasks beyond the present sizes in `job` are inactive: spares, or what an
    elastic role lacks."""
    spares: dict[str, dict[TaskId, None]] = field(default_factory=dict)
    """By role, the spare tasks for which a container is wanted."""
    spares_lost: int = 0
    """How many containers of spares were lost."""
    reassigned_to: dict[str, str] = field(default_factory=dict)
    """By attempt whose container was reassigned, the attempt that has the container now."""
    launch_attempt_of: dict[str, str] = field(default_factory=dict)
    """By attempt that got a reassigned container, the attempt that was launched there."""
    begun_at: float = 0.0
    """When the job began."""
    handed_over: bool = False
    """The job is left as it is to the next master: this one decides nothing more."""

    @classmethod
    def for_job(
        cls, job_id: str, job: JobSpec, preferred_hosts: Mapping[TaskId, tuple[str, ...]] | None = None
    ) -> GangState:
        """Return the state before anything has happened; `preferred_hosts` are the hosts that hold a task's data."""
        ids = [TaskId(name, index) for name, role in job.roles.items() for index in range(role.replicas + role.spares)]
        pending: dict[str, dict[TaskId, None]] = {role: {} for role in job.roles}
        wanted = {name: role.replicas for name, role in job.roles.items()}
        tasks = {task: TaskState(task) for task in ids}
        return cls(job_id, job, tasks, pending_tasks=pending, preferred_hosts=preferred_hosts or {}, wanted=wanted)

    @classmethod
    def for_staged_job(
        cls, job_id: str, staged: StagedJob, preferred_hosts: Mapping[TaskId, tuple[str, ...]], extra_s: float = 0.0
    ) -> GangState:
        """Return the state with what is known of the files and the nodes, too; `extra_s` as in `greet_limit_s`."""
        state = cls.for_job(job_id, staged.job, preferred_hosts)
        state.node_penalties.update(staged.node_penalties)
        state.greet_s = greet_limit_s((*staged.files, *staged.runtime), extra_s)
        return state

    @property
    def open(self) -> bool:
        """Return whether the outcome is undecided."""
        return self.stage in (Stage.FORMING, Stage.RUNNING)

    @property
    def missing(self) -> int:
        """Return the number of containers that are wanted and not granted."""
        return sum(map(len, self.pending_tasks.values()))

    def role(self, task: TaskId) -> Role:
        """Return the spec of the task's role."""
        return self.job.roles[task.role]

    def of_role(self, *names: str) -> Iterator[TaskState]:
        """Return the tasks of these roles."""
        return (self.tasks[TaskId(name, index)] for name in names for index in range(self.job.roles[name].replicas))

    def inactive_tasks(self, name: str) -> Iterator[TaskState]:
        """Return the tasks of the role that have no part in the job at its present size."""
        first, end = self.job.roles[name].replicas, self.wanted[name] + self.job.roles[name].spares
        return (self.tasks[TaskId(name, index)] for index in range(first, end))

    def takes_part(self, task: TaskId) -> bool:
        """Return whether the task is within the present size of its role."""
        return task.index < self.job.roles[task.role].replicas

    def tracked(self, task: TaskId) -> bool:
        """Return whether the job waits for the end of this task."""
        return self.role(task).tracked is not False and not self.tasks[task].untracked

    def tracked_tasks(self) -> Iterator[TaskState]:
        """Return the tasks whose end the job waits for."""
        return (task for task in self.tasks.values() if self.tracked(task.id) and self.takes_part(task.id))

    def forming(self) -> Iterator[TaskState]:
        """Return the tasks whose world is not complete."""
        return (self.tasks[task] for formation in self.formations.values() for task in formation.tasks)

    def world(self, peers: Iterable[TaskId], epoch: int, restarts: int = 0) -> World:
        """Return the world of these tasks, with the addresses at which they have joined."""
        members = (self.tasks[peer] for peer in peers)
        joined = tuple(Member(task.id, task.host, task.ports, task.ip) for task in members)
        min_tasks = {name: role.min_replicas for name, role in self.job.roles.items() if role.min_replicas}
        return World(epoch, members=joined, job_id=self.id, restarts=restarts, min_tasks=min_tasks)
