"""Tasks, the containers they run in, how they end, and the world they form."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
from dataclasses import field
from typing import Dict, List, Mapping, Optional, Tuple

from howdah.spec.job import JobSpec, Resources
from howdah.spec.message import Sentence, message
from howdah.spec.values import dataclass


@dataclasses.dataclass(frozen=True, order=True)
class TaskId:
    """A task of a role, `worker:1`; a retry is a new attempt of the same task."""

    role: str
    """The name of the role."""
    index: int
    """The number of the task in its role, from 0."""

    def __str__(self) -> str:
        return f"{self.role}:{self.index}"

    @property
    def slug(self) -> str:
        """Return the id for file names: `worker-1`."""
        return f"{self.role}-{self.index}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Parse what `str` writes.

        Raises:
            ValueError: `text` is not `role:index`.
        """
        return _parse_task_id(text)


@functools.lru_cache(maxsize=1 << 14)
def _parse_task_id(text: str) -> TaskId:
    """Parse the id of each task once, because a master gets thousands of them a second."""
    role, separator, index = text.rpartition(":")
    if not separator or not role or not index.isdigit():
        raise ValueError(f"{text!r} is not a task: write role:index, such as worker:0")
    return TaskId(role, int(index))


CHIEFS = ("chief", "master", "worker")
"""Roles whose task 0 leads, in order."""
SIDE_ROLES = ("evaluator", "tensorboard")
"""Roles that watch the group, are no part of it, and may fail."""


def chief(job: JobSpec) -> TaskId:
    """Return the task that `chief` means in a job: `chief:0`, `master:0`, `worker:0`, else the first role, among those
    that are waited for."""
    tracked = [name for name, role in job.roles.items() if role.tracked is not False] or [*job.roles]
    return TaskId(next((name for name in CHIEFS if name in tracked), tracked[0]), 0)


class State(str, enum.Enum):
    """The state of a job or a task. Attempts are counted; they are not states. Only tasks are STOPPED: the master ended
    them without a failure of theirs, because the chief was done, or another task had failed."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    STOPPED = "STOPPED"

    @property
    def ended(self) -> bool:
        """Return whether no further state follows."""
        return self not in (State.PENDING, State.RUNNING)


JOB_STATES = tuple(state for state in State if state is not State.STOPPED)
"""The states that a job can have."""


@dataclass(frozen=True)
class Container:
    """What an allocator grants: room on a node for one attempt of a task."""

    id: str
    """The engine's own name for the container."""
    node: str
    """The node on which it is."""
    role: str
    """The role that it was asked for."""
    resources: Resources = Resources()
    """Its resources."""
    log_url: str = ""
    """Where people read the container's logs; "" when the engine has no such page."""
    engine_facts: Mapping[str, str] = field(default_factory=dict)
    """The container's position in the engine, by the engine's own names: on Spark `application`, `stage`, `partition`,
    `executor`."""


@dataclass(frozen=True)
class Exit:
    """How a task's process, or its container, ended."""

    cause: str
    """One word for what happened: `exit`, `signal`, `memory`, `lost`, `preempted`, `withdrawn` (the engine took the
    container, or its files, back, and no task or node is to blame), `start`, `localise`, `stream`, `upload`, `silent`,
    `port`, `preflight`, `gpu`, `stalled`, `logs` (more logs than YARN allows), `image` (asked for, and not used),
    `stopped`."""
    code: Optional[int] = None
    """The exit status; None when a signal ended the process."""
    signal: Optional[int] = None
    """The number of the signal that ended the process; None for none."""
    detail: Sentence = ""
    """A sentence for people."""
    lines: Tuple[str, ...] = ()
    """The last lines of the program's output."""
    permanent: bool = False
    """Whether another try would end in the same way: a program, a file or a module is missing, or can't be parsed."""
    exception: str = ""
    """The exception that ended the program, or that it had printed last when it was stopped; "" when none is known."""

    @property
    def ok(self) -> bool:
        """Return whether the process ended by itself with status 0."""
        return self.cause == "exit" and self.code == 0

    def __str__(self) -> str:
        """Return the sentence for people, which is a `Message` where its template is known."""
        if self.detail:
            return self.detail
        if self.signal is not None:
            return message("killed by signal {number}", number=self.signal)
        return message("exit code {code}", code=self.code) if self.cause == "exit" else self.cause


@dataclass(frozen=True)
class Member:
    """The addresses at which other tasks reach a task that has joined."""

    task: TaskId
    """The task."""
    host: str
    """The host on which it runs."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The ports that it has reserved, by name; `main` is the framework's port."""
    ip: str = ""
    """The host as a numeric address, for frameworks that take no names; "" when it is not known."""

    @property
    def numeric(self) -> str:
        """Return the numeric address of the host, or its name where that is not known."""
        return self.ip or self.host

    @property
    def address(self) -> str:
        """Return `host:port` of the main port."""
        return f"{self.host}:{self.ports['main']}"


@dataclass(frozen=True)
class World:
    """The whole gang, which is known only when all tasks have joined."""

    epoch: int
    """The number of this formation in the job. Messages from an older epoch are ignored."""
    members: Tuple[Member, ...]
    """All tasks, in the spec's role order, then by index."""
    job_id: str = ""
    """The job's id."""
    restarts: int = 0
    """The number of earlier starts of the tasks that start in this epoch."""
    min_tasks: Mapping[str, int] = field(default_factory=dict)
    """By elastic role, the smallest number of tasks with which it may go on."""

    def members_of(self, role: str) -> Tuple[Member, ...]:
        """Return the members of one role, by index."""
        return self._roles.get(role, ())

    def member(self, task: TaskId) -> Member:
        """Return the member of this task; KeyError when there is none."""
        return self.members[self.rank(task)]

    def rank(self, task: TaskId) -> int:
        """Return the position of this task among all members, from 0; KeyError when it has none."""
        return self._ranks[task]

    @functools.cached_property
    def text(self) -> str:
        """Return the world as JSON: `{"epoch":1,"roles":{"worker":[{"host":"h","ports":{"main":1}}]}}`, roles and
        members in order of rank."""
        roles = {
            role: [{"host": member.host, "ports": dict(member.ports)} for member in members]
            for role, members in self._roles.items()
        }
        return json.dumps({"epoch": self.epoch, "roles": roles}, separators=(",", ":"))

    # Every task of a large gang asks: these are computed once, not by a search of all members each time.

    @functools.cached_property
    def _ranks(self) -> Dict[TaskId, int]:
        return {member.task: rank for rank, member in enumerate(self.members)}

    @functools.cached_property
    def _roles(self) -> Dict[str, Tuple[Member, ...]]:
        roles: Dict[str, List[Member]] = {}
        for member in self.members:
            roles.setdefault(member.task.role, []).append(member)
        return {role: tuple(members) for role, members in roles.items()}


@dataclass(frozen=True)
class Outcome:
    """How the job ended."""

    state: State
    """The job's last state."""
    diagnostics: Sentence = ""
    """The sentence that people read."""
    first: Optional[TaskId] = None
    """The task whose failure came first; None when no task failed."""
    exit: Optional[Exit] = None
    """How that task ended."""
