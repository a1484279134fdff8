"""What the master knows of its job. Only `howdah.master.step` changes it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from howdah.spec import Container, Exit, JobSpec, Member, Outcome, TaskId, World
from howdah.wire.messages import Phase, Usage


class Stage(enum.Enum):
    """Where the job is as a whole; only ever forward, but for RUNNING back to FORMING when the gang starts again."""

    FORMING = "forming"
    RUNNING = "running"
    STOPPING = "stopping"
    COMMITTING = "committing"
    DONE = "done"


@dataclass
class TaskState:
    """One task. `attempt` counts its containers; `joined` is the epoch it has joined, 0 for none."""

    id: TaskId
    attempt: int = 0
    container: Container | None = None
    phase: Phase | None = None
    sequence: int = 0
    launched_at: float = 0.0
    heard_at: float = 0.0
    joined: int = 0
    started: int = 0
    host: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    used_at: float = 0.0
    exit: Exit | None = None
    uploaded: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """It has a container, and what runs there has not ended in this epoch."""
        return self.container is not None and self.exit is None


@dataclass
class GangState:
    """The job: its spec (already expanded by its framework), its tasks, its deadlines (epoch seconds).

    `formed` is the world of the epoch that runs: made once, for every task asks for it.
    """

    id: str
    job: JobSpec
    tasks: dict[TaskId, TaskState]
    stage: Stage = Stage.FORMING
    epoch: int = 1
    asked_at: float = 0.0
    granted_at: float = 0.0
    ask_again_at: float = 0.0
    releases: int = 0
    replacements: int = 0
    retries_used: int = 0
    port_retries: int = 0
    running_since: float = 0.0
    stop_by: float = 0.0
    outcome: Outcome | None = None
    formed: World | None = None
    containers: dict[str, TaskId] = field(default_factory=dict)

    @classmethod
    def of(cls, job_id: str, job: JobSpec) -> GangState:
        """The state before anything happened."""
        ids = [TaskId(name, index) for name, role in job.roles.items() for index in range(role.replicas)]
        return cls(job_id, job, {task: TaskState(task) for task in ids})

    def tracked(self, task: TaskId) -> bool:
        """Whether the job waits for this task's end."""
        return self.job.roles[task.role].tracked is not False

    def tracked_tasks(self) -> Iterator[TaskState]:
        """The tasks the job waits for."""
        return (task for task in self.tasks.values() if self.tracked(task.id))

    def world(self) -> World:
        """The world as joined; complete once the stage is RUNNING."""
        return World(self.epoch, tuple(Member(task.id, task.host, task.ports) for task in self.tasks.values()))
