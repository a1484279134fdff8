"""What the master knows of its job. Only `howdah.master.decisions.step` and the modules it is made of change it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from howdah.master.decisions.checkpoint_lookup import CheckpointLookups
from howdah.master.preflight.state import PreflightState
from howdah.master.snapshots.state import SnapshotState
from howdah.spec import Container, Exit, JobSpec, Member, Outcome, Role, TaskId, World
from howdah.spec.values import dataclass
from howdah.wire.messages import Phase, PreemptionNotice, Usage

LEASE_S = 20.0
"""An executor that hears nothing from its master for this long ends its program, and itself."""
FENCE_S = LEASE_S + 3.0
"""Counted from when the master heard it last: an answer may wait for two seconds. Until then the program of a task may
still run somewhere, and no other of the same task is started."""


TAKEOVER_S = 3.0
"""A master that has been replaced may have renewed leases for so much longer than the log is another's: it looks at the
log every second, counts on what it saw for two, and claiming the log took a moment."""


class Stage(enum.Enum):
    """Where the job is as a whole; only ever forward, but for RUNNING back to FORMING when the gang starts again."""

    FORMING = "forming"
    RUNNING = "running"
    STOPPING = "stopping"
    COMMITTING = "committing"
    DONE = "done"


@dataclass
class TaskState:
    """One task.

    `attempt` counts its containers. `epoch` is the one it is to run in, 0 before its stage has begun; `joined` and
    `started` are the epochs in which it did. `peers` are the tasks of its world, itself among them; `world` is formed
    when all have joined. `restarts` counts those of this task alone; `stopped` says that its end is wanted; `untracked`
    that the job waits for its end no more, though its role is tracked; `adopted`
    that its container was started by a master before this one. Until `fenced_until` a program of an attempt that nobody
    hears may still run. `kept` says that it has uploaded what is kept of a failed job. `checked` is the attempt, and
    `paired` the container, in which it has passed pre-flight alone and with others. `worlds` counts those that formed
    with it.
    """

    id: TaskId
    attempt: int = 0
    container: Container | None = None
    phase: Phase | None = None
    sequence: int = 0
    launched_at: float = 0.0
    heard_at: float = 0.0
    epoch: int = 0
    joined: int = 0
    started: int = 0
    peers: tuple[TaskId, ...] = ()
    world: World | None = None
    restarts: int = 0
    stopped: bool = False
    untracked: bool = False
    adopted: bool = False
    fenced_until: float = 0.0
    host: str = ""
    ip: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    pair_port: int = 0
    checked: int = 0
    paired: str = ""
    usage: Usage = field(default_factory=Usage)
    used_at: float = 0.0
    exit: Exit | None = None
    ended_at: float = 0.0
    uploaded: tuple[str, ...] = ()
    kept: bool = False
    idle_s: float = 0.0
    notice: PreemptionNotice | None = None
    announced_values: Mapping[str, str] = field(default_factory=dict)
    worlds: int = 0

    @property
    def live(self) -> bool:
        """It has a container, and what runs there has not ended in this epoch."""
        return self.container is not None and self.exit is None

    @property
    def formed(self) -> bool:
        """The world of its epoch is complete: its program may run."""
        return self.world is not None and self.world.epoch == self.epoch

    @property
    def attempt_name(self) -> str:
        """`worker:3/2`, the second attempt of worker:3."""
        return f"{self.id}/{self.attempt}"

    @property
    def node(self) -> str:
        """Where it runs, as far as is known."""
        return self.container.node if self.container else self.host

    def fence(self, heard_at: float) -> None:
        """What runs in its container can't be stopped for certain: it ends by itself when its lease is over."""
        self.fenced_until = max(self.fenced_until, heard_at + FENCE_S)

    def move_to(self, container: Container, now: float) -> None:
        """A new attempt begins in a container."""
        self.attempt, self.container, self.launched_at, self.heard_at = self.attempt + 1, container, now, now
        self.adopted = False
        self.leave()

    def leave(self) -> None:
        """What was said from the container it had is of no interest any more."""
        self.phase, self.sequence, self.joined, self.host, self.ports = None, 0, 0, "", {}
        self.exit, self.uploaded, self.used_at, self.ended_at, self.kept = None, (), 0.0, 0.0, False
        self.idle_s, self.notice = 0.0, None


@dataclass
class Formation:
    """Tasks that start together, in one epoch: `waiting` are those that have not joined, `not_before` the earliest
    moment. `wait_announced`: it was said why they do not start though all have joined."""

    epoch: int
    tasks: tuple[TaskId, ...]
    waiting: set[TaskId]
    not_before: float = 0.0
    wait_announced: bool = False


@dataclass
class HangState:
    """`told` are the tasks of which it was said that they show no sign of progress, with the epoch and for how long
    they had shown none; `awaited` those that are being looked into, until `until`, and `epochs` those of all that ran
    when that began."""

    reported: dict[TaskId, tuple[int, float]] = field(default_factory=dict)
    awaited: tuple[TaskId, ...] = ()
    idle_s: float = 0.0
    until: float = 0.0
    epochs: dict[TaskId, int] = field(default_factory=dict)


@dataclass
class RestartCause:
    """Why tasks started again: that `task` ended in `epoch`, for a reason of so much `weight`; seen at that moment."""

    task: TaskId
    epoch: int
    weight: int
    seen_at: float


@dataclass
class GangState:
    """The job: its spec (already expanded by its framework), its tasks, its deadlines (epoch seconds).

    `epoch` is the newest one, `formations` those still to form, by epoch; `unplaced` are the tasks that want a
    container, by role, in the order in which they get one; `restarted` counts how often each role was started again;
    `taken_over` says that another master ran the job before; `strikes` is what is held against nodes that were
    to blame for failures, of earlier jobs, too; `struck` are those of this job, with their times.

    Programs that must not start twice wait until the event log has the start of their epoch, for else a master that
    takes over could not know of it; `unrecorded` are the epochs that it does not have yet. While a log is `replaying`,
    worlds form where it has them, and nowhere else.

    `job` has the sizes that roles have now, `wanted` those that were asked for. Tasks beyond them are parked: spares,
    or what an elastic role lacks; `spares` are those for which a container is wanted. `moves` says of attempts whose
    container was given away which one has it; `seats` of such a one which attempt was launched there.
    """

    id: str
    job: JobSpec
    tasks: dict[TaskId, TaskState]
    stage: Stage = Stage.FORMING
    epoch: int = 0
    formations: dict[int, Formation] = field(default_factory=dict)
    unrecorded: set[int] = field(default_factory=set)
    replaying: bool = False
    pending_tasks: dict[str, dict[TaskId, None]] = field(default_factory=dict)
    restarted: dict[str, int] = field(default_factory=dict)
    asked_at: float = 0.0
    granted_at: float = 0.0
    ask_again_at: float = 0.0
    releases: int = 0
    replacements: int = 0
    retries_used: int = 0
    free_restarts: list[float] = field(default_factory=list)
    last_restart_cause: RestartCause | None = None
    port_retries: int = 0
    taken_over: bool = False
    running_since: float = 0.0
    done_at: float = 0.0
    stop_by: float = 0.0
    outcome: Outcome | None = None
    incomplete: bool = False
    """The programs ended well, and the job failed because nobody made one of its outputs."""
    containers: dict[str, TaskId] = field(default_factory=dict)
    snapshots: SnapshotState = field(default_factory=SnapshotState)
    checkpoint_lookups: CheckpointLookups = field(default_factory=CheckpointLookups)
    preferred_hosts: Mapping[TaskId, tuple[str, ...]] = field(default_factory=dict)
    node_penalties: dict[str, float] = field(default_factory=dict)
    node_failures: list[tuple[str, float]] = field(default_factory=list)
    hangs: HangState = field(default_factory=HangState)
    preflight: PreflightState = field(default_factory=PreflightState)
    notices: int = 0
    formed_at: float = 0.0
    quick_failures: int = 0
    wanted: Mapping[str, int] = field(default_factory=dict)
    spares: dict[str, dict[TaskId, None]] = field(default_factory=dict)
    spares_lost: int = 0
    reassigned_to: dict[str, str] = field(default_factory=dict)
    launch_attempt_of: dict[str, str] = field(default_factory=dict)
    begun_at: float = 0.0
    handed_over: bool = False
    """The job is left as it is to the next master: this one decides nothing more."""

    @classmethod
    def of(
        cls, job_id: str, job: JobSpec, preferred_hosts: Mapping[TaskId, tuple[str, ...]] | None = None
    ) -> GangState:
        """The state before anything happened; `preferred_hosts` are the hosts that hold a task's data."""
        ids = [TaskId(name, index) for name, role in job.roles.items() for index in range(role.replicas + role.spares)]
        unplaced: dict[str, dict[TaskId, None]] = {role: {} for role in job.roles}
        wanted = {name: role.replicas for name, role in job.roles.items()}
        tasks = {task: TaskState(task) for task in ids}
        return cls(job_id, job, tasks, pending_tasks=unplaced, preferred_hosts=preferred_hosts or {}, wanted=wanted)

    @property
    def open(self) -> bool:
        """Nothing is decided yet."""
        return self.stage in (Stage.FORMING, Stage.RUNNING)

    @property
    def missing(self) -> int:
        """Containers wanted and not granted."""
        return sum(map(len, self.pending_tasks.values()))

    def role(self, task: TaskId) -> Role:
        """What the spec says of this task's role."""
        return self.job.roles[task.role]

    def of_role(self, *names: str) -> Iterator[TaskState]:
        """The tasks of these roles."""
        return (self.tasks[TaskId(name, index)] for name in names for index in range(self.job.roles[name].replicas))

    def inactive_tasks(self, name: str) -> Iterator[TaskState]:
        """The tasks of the role that have no part in the job as it is now."""
        least, most = self.job.roles[name].replicas, self.wanted[name] + self.job.roles[name].spares
        return (self.tasks[TaskId(name, index)] for index in range(least, most))

    def takes_part(self, task: TaskId) -> bool:
        """Whether the role has so many tasks now."""
        return task.index < self.job.roles[task.role].replicas

    def tracked(self, task: TaskId) -> bool:
        """Whether the job waits for this task's end."""
        return self.role(task).tracked is not False and not self.tasks[task].untracked

    def tracked_tasks(self) -> Iterator[TaskState]:
        """The tasks the job waits for."""
        return (task for task in self.tasks.values() if self.tracked(task.id) and self.takes_part(task.id))

    def forming(self) -> Iterator[TaskState]:
        """The tasks whose world is not complete."""
        return (self.tasks[task] for formation in self.formations.values() for task in formation.tasks)

    def world(self, peers: Iterable[TaskId], epoch: int, restarts: int = 0) -> World:
        """These tasks as they have joined."""
        members = (self.tasks[peer] for peer in peers)
        joined = tuple(Member(task.id, task.host, task.ports, task.ip) for task in members)
        least = {name: role.min_replicas for name, role in self.job.roles.items() if role.min_replicas}
        return World(epoch, members=joined, job_id=self.id, restarts=restarts, least=least)
