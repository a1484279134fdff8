"""Reads from the environment which task of its job a program is, and who its peers are."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from howdah.wire.program_protocol import NOTICE_FILE, VARIABLE


class HereError(RuntimeError):
    """A call to the job's master failed; the message says in one sentence what and why."""


class HereTimeout(HereError, TimeoutError):
    """An event did not happen in time."""


@dataclass(frozen=True)
class Peer:
    """A task that started together with this program, and the address at which it listens."""

    task: str
    """`worker:1`."""
    role: str
    """The task's role."""
    index: int
    """The task's number in its role, from 0."""
    rank: int
    """The task's number over all roles, from 0."""
    host: str
    """The task's host."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The task's ports by name."""

    @property
    def port(self) -> int:
        """Return the main port."""
        return self.ports["main"]

    @property
    def address(self) -> str:
        """Return `host:port`."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Peers:
    """All tasks that started together, in order of rank."""

    epoch: int
    """The number of starts of the tasks, from 1."""
    members: Tuple[Peer, ...]
    """The tasks, this program's own among them."""

    def of(self, role: str) -> Tuple[Peer, ...]:
        """Return the tasks of one role, by index; none for an unknown role."""
        return tuple(member for member in self.members if member.role == role)

    @property
    def roles(self) -> Dict[str, Tuple[Peer, ...]]:
        """Return all tasks, by role."""
        return {role: self.of(role) for role in dict.fromkeys(member.role for member in self.members)}

    def __len__(self) -> int:
        return len(self.members)

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> Peers:
        """Read the JSON of HOWDAH_WORLD; the master's answers have the same form."""
        members: List[Peer] = []
        for role, tasks in message["roles"].items():
            for number, task in enumerate(tasks):
                index, rank = int(task.get("index", number)), len(members)
                host, ports = str(task["host"]), dict(task["ports"])
                members.append(Peer(f"{role}:{index}", role, index, rank, host, ports))
        return cls(int(message["epoch"]), tuple(members))


@dataclass(frozen=True)
class Notice:
    """A warning that this program's container will be taken away."""

    kind: str
    """`preemption`, `decommission` or `unhealthy`."""
    until: Optional[float]
    """When the container will be taken away, in the clock of time.time(); None when the time is unknown."""
    text: str
    """A sentence for people."""

    @property
    def seconds(self) -> Optional[float]:
        """Return the seconds that are left, 0 when the time is over; None when the time is unknown."""
        return None if self.until is None else max(0.0, self.until - time.time())


@dataclass(frozen=True)
class TaskIdentity:
    """The task that this program runs as."""

    directory: str
    """The directory through which program and executor exchange files."""
    job_id: str
    """The engine's name for the job."""
    job_name: str
    """The name that the user gave the job."""
    task: str
    """`worker:1`."""
    role: str
    """The task's role."""
    index: int
    """The task's number in its role, from 0."""
    rank: int
    """The task's number over all roles, from 0 to `size` - 1."""
    size: int
    """The number of tasks that started together."""
    epoch: int
    """The number of starts of the tasks, from 1."""
    attempt: int
    """The number of launches of this task, from 1."""
    checkpoint_dir: Optional[str]
    """The directory for checkpoints; None without checkpoints."""
    resume_from: Optional[str]
    """The checkpoint to continue from; None when there is none."""
    world_text: str
    """The peers as JSON; "" if they are too many for a variable."""


NAMES = frozenset(TaskIdentity.__dataclass_fields__) - {"directory", "world_text"}


def inside() -> bool:
    """Return whether this program is a task of a howdah job."""
    return bool(os.environ.get(VARIABLE))


def current() -> TaskIdentity:
    """Read the identity of this program's task; raises HereError outside a howdah job."""
    if not inside():
        raise HereError(
            f"this is not a task of a howdah job ({VARIABLE} is not set): start it with `howdah run`, "
            "or ask `here.inside` first"
        )
    environment = os.environ
    return TaskIdentity(
        directory=environment[VARIABLE],
        job_id=environment["HOWDAH_JOB_ID"],
        job_name=environment["HOWDAH_JOB_NAME"],
        task=environment["HOWDAH_TASK"],
        role=environment["HOWDAH_ROLE"],
        index=int(environment["HOWDAH_INDEX"]),
        rank=int(environment["HOWDAH_RANK"]),
        size=int(environment["HOWDAH_WORLD_SIZE"]),
        epoch=int(environment["HOWDAH_EPOCH"]),
        attempt=int(environment["HOWDAH_ATTEMPT"]),
        checkpoint_dir=environment.get("HOWDAH_CHECKPOINT_DIR"),
        resume_from=environment.get("HOWDAH_RESUME_FROM"),
        world_text=environment.get("HOWDAH_WORLD", ""),
    )


def read_notice(identity: TaskIdentity) -> Optional[Notice]:
    """Read the warning that the executor has written to a file."""
    try:
        with open(os.path.join(identity.directory, NOTICE_FILE), encoding="utf-8") as file:
            notice = json.load(file)
    except (OSError, ValueError):
        return None
    return Notice(str(notice["kind"]), float(notice["until"]) or None, str(notice["text"]))
