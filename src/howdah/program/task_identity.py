"""Which place in its job a program has: read from its environment, never guessed."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from howdah.wire.program_protocol import NOTICE_FILE, VARIABLE


class HereError(RuntimeError):
    """Something could not be had from the job's master; one sentence says what and why."""


class HereTimeout(HereError, TimeoutError):
    """What was waited for did not come in time."""


@dataclass(frozen=True)
class Member:
    """A task of the world and where it listens: `ports` by name, `port` is its main one."""

    task: str
    role: str
    index: int
    rank: int
    host: str
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return self.ports["main"]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class World:
    """All tasks that started together, in order of rank."""

    epoch: int
    members: Tuple[Member, ...]

    def of(self, role: str) -> Tuple[Member, ...]:
        """The members of one role, by index; empty when there is none."""
        return tuple(member for member in self.members if member.role == role)

    @property
    def roles(self) -> Dict[str, Tuple[Member, ...]]:
        """All members, by role."""
        return {role: self.of(role) for role in dict.fromkeys(member.role for member in self.members)}

    def __len__(self) -> int:
        return len(self.members)

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> World:
        """From what HOWDAH_WORLD and the master say."""
        members: List[Member] = []
        for role, tasks in message["roles"].items():
            for place, one in enumerate(tasks):
                index = int(one.get("index", place))
                name = f"{role}:{index}"
                members.append(Member(name, role, index, len(members), str(one["host"]), dict(one["ports"])))
        return cls(int(message["epoch"]), tuple(members))


@dataclass(frozen=True)
class Notice:
    """This program's container will be taken away: `kind` is `preemption`, `decommission` or `unhealthy`, `text` says
    it in a sentence. `until` is the moment (as time.time() has it), None when nobody knows."""

    kind: str
    until: Optional[float]
    text: str

    @property
    def seconds(self) -> Optional[float]:
        """How long is left, 0 when the time is over; None when nobody knows."""
        return None if self.until is None else max(0.0, self.until - time.time())


@dataclass(frozen=True)
class TaskIdentity:
    """This program's task. `rank` counts from 0 to `size` - 1; `epoch` and `attempt` from 1."""

    directory: str
    job_id: str
    job_name: str
    task: str
    role: str
    index: int
    rank: int
    size: int
    epoch: int
    attempt: int
    checkpoint_dir: Optional[str]
    resume_from: Optional[str]
    world_text: str


NAMES = frozenset(TaskIdentity.__dataclass_fields__) - {"directory", "world_text"}


def inside() -> bool:
    """Whether this program is a task of a howdah job."""
    return bool(os.environ.get(VARIABLE))


def current() -> TaskIdentity:
    """Raises HereError outside a howdah job."""
    if not inside():
        raise HereError(
            f"this is not a task of a howdah job ({VARIABLE} is not set): start it with `howdah run`, "
            "or ask `here.inside` first"
        )
    seen = os.environ
    return TaskIdentity(
        directory=seen[VARIABLE],
        job_id=seen["HOWDAH_JOB_ID"],
        job_name=seen["HOWDAH_JOB_NAME"],
        task=seen["HOWDAH_TASK"],
        role=seen["HOWDAH_ROLE"],
        index=int(seen["HOWDAH_INDEX"]),
        rank=int(seen["HOWDAH_RANK"]),
        size=int(seen["HOWDAH_WORLD_SIZE"]),
        epoch=int(seen["HOWDAH_EPOCH"]),
        attempt=int(seen["HOWDAH_ATTEMPT"]),
        checkpoint_dir=seen.get("HOWDAH_CHECKPOINT_DIR"),
        resume_from=seen.get("HOWDAH_RESUME_FROM"),
        world_text=seen.get("HOWDAH_WORLD", ""),
    )


def told_notice(place: TaskIdentity) -> Optional[Notice]:
    """What the executor has written down."""
    try:
        with open(os.path.join(place.directory, NOTICE_FILE), encoding="utf-8") as file:
            said = json.load(file)
    except (OSError, ValueError):
        return None
    return Notice(str(said["kind"]), float(said["until"]) or None, str(said["text"]))


def told_world(place: TaskIdentity) -> Optional[World]:
    """The world as the environment has it; None in one too large for a variable."""
    return World.of_message(json.loads(place.world_text)) if place.world_text else None
