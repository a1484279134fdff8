"""What `step` wants done. The loop does these in order and decides nothing."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.spec import Container, Outcome, TaskId
from howdah.spec.events import Event
from howdah.wire.messages import Status


@dataclass(frozen=True)
class Ask:
    """Tell the allocator that `count` containers of `role` are outstanding."""

    role: str
    count: int


@dataclass(frozen=True)
class Launch:
    """Start an executor for this attempt in the container."""

    task: TaskId
    attempt: int
    container: Container


@dataclass(frozen=True)
class Release:
    """Give the container back."""

    container_id: str


@dataclass(frozen=True)
class Record:
    """Append to the event log."""

    event: Event


@dataclass(frozen=True)
class Notify:
    """These tasks' orders have changed: answer their executors' waiting polls."""

    tasks: tuple[TaskId, ...]


@dataclass(frozen=True)
class Commit:
    """Move the outputs to their places (`keep`), or remove what was uploaded; then tell by a CommitDone event."""

    keep: bool


@dataclass(frozen=True)
class Finish:
    """The job is over; unregister with this outcome and exit."""

    outcome: Outcome


Action = Ask | Launch | Release | Record | Notify | Commit | Finish


# Events that only the master's own loop makes; they are never recorded as such.


@dataclass(frozen=True)
class Tick(Event):
    """Time has passed."""


@dataclass(frozen=True)
class Heard(Event):
    """An executor of the current attempt of its task sent its status."""

    status: Status


@dataclass(frozen=True)
class CommitDone(Event):
    """The outputs are in place (`uris`), or why they are not."""

    uris: tuple[str, ...] = ()
    error: str = ""
