"""The actions that `step` returns. The loop carries them out in order and decides nothing."""

from __future__ import annotations

from howdah.engines import NO_PREFERENCES, ContainerPreferences
from howdah.spec import Container, Outcome, TaskId
from howdah.spec.events import AllocationLost, Event
from howdah.spec.values import dataclass
from howdah.wire.messages import Status


@dataclass(frozen=True)
class RequestContainers:
    """Tell the allocator how many containers of a role are outstanding."""

    role: str
    """The name of the role."""
    count: int
    """The number of outstanding containers."""
    preferences: ContainerPreferences = NO_PREFERENCES
    """The nodes to prefer and to avoid."""


@dataclass(frozen=True)
class LaunchTask:
    """Start an executor in a container."""

    task: TaskId
    """The task that runs there."""
    attempt: int
    """The number of the task's attempt."""
    container: Container
    """The container that the task gets."""


@dataclass(frozen=True)
class ReleaseContainer:
    """Give a container back."""

    container_id: str
    """The engine's name for the container."""
    cause: str = ""
    """The cause that is recorded for the end of its attempt (`Exit.cause`); "" if the container is not needed any
    more."""


@dataclass(frozen=True)
class RecordEvent:
    """Append an event to the event log."""

    event: Event
    """What happened, as the log keeps it."""


@dataclass(frozen=True)
class NotifyExecutors:
    """Answer the waiting polls of executors whose orders have changed."""

    tasks: tuple[TaskId, ...]
    """The tasks of these executors."""


@dataclass(frozen=True)
class Commit:
    """Move the outputs to their places, or remove what was uploaded; a CommitDone event follows."""

    keep: bool
    """True to move the outputs, False to remove them."""


@dataclass(frozen=True)
class PublishSnapshot:
    """Move a finished snapshot to its place and remove old ones; a SnapshotPublished event follows."""

    output: int
    """The number of the output."""
    temporary: str
    """The URI at which the snapshot was written."""
    final: str
    """The URI to which it is moved."""
    to: str
    """Snapshots whose names begin with this URI may be removed."""
    keep: int = 0
    """How many snapshots are kept, the newest ones; 0 keeps all."""


@dataclass(frozen=True)
class DiscardSnapshot:
    """Remove an unfinished snapshot."""

    temporary: str
    """The URI at which the snapshot was written."""


@dataclass(frozen=True)
class FindCheckpoint:
    """Look for the checkpoint that programs resume from; a CheckpointFound event follows."""

    epochs: tuple[int, ...]
    """The epochs whose programs resume from it."""


@dataclass(frozen=True)
class CollectStacks:
    """Collect the stacks of the programs; a StacksTaken event follows."""

    tasks: tuple[TaskId, ...]
    """The tasks whose stacks are collected."""
    stalled: tuple[TaskId, ...]
    """The tasks that show no sign of progress."""


@dataclass(frozen=True)
class NoteNodeFailures:
    """Record the nodes that caused failures, for later jobs."""

    failures: tuple[tuple[str, float], ...]
    """Nodes, and when each caused a failure."""


@dataclass(frozen=True)
class HandOver:
    """End this process and nothing else: the next master goes on with the job."""

    event: AllocationLost
    """Why the engine ends this master."""


@dataclass(frozen=True)
class Finish:
    """The job is over: unregister and exit."""

    outcome: Outcome
    """How the job ended."""


Action = (
    RequestContainers
    | LaunchTask
    | ReleaseContainer
    | RecordEvent
    | NotifyExecutors
    | Commit
    | PublishSnapshot
    | DiscardSnapshot
    | FindCheckpoint
    | CollectStacks
    | NoteNodeFailures
    | HandOver
    | Finish
)


# Events that only the master's own loop makes; they are never recorded.


@dataclass(frozen=True)
class Tick(Event):
    """Time has passed."""


@dataclass(frozen=True)
class StatusReceived(Event):
    """An executor of the current attempt of its task sent its status."""

    status: Status
    """The executor's report on itself and its program."""


@dataclass(frozen=True)
class StartRecorded(Event):
    """The event log has the start of an epoch, or cannot be written."""

    epoch: int
    """The epoch whose world has formed."""
    problem: str = ""
    """Why the start cannot be written; "" when it is written."""


@dataclass(frozen=True)
class CommitDone(Event):
    """The outputs are in their places, or could not be moved."""

    uris: tuple[str, ...] = ()
    """The URIs of the outputs in their places."""
    error: str = ""
    """Why the outputs could not be moved; "" when they were."""
    kept: tuple[str, ...] = ()
    """Where the outputs of a failed job are."""
    replaced: tuple[str, ...] = ()
    """URIs to which the earlier contents of these places were moved."""


@dataclass(frozen=True)
class SnapshotPublished(Event):
    """A snapshot is in its place, or is not."""

    output: int
    """The number of the output."""
    error: str = ""
    """Why the snapshot is not in its place; "" when it is."""
    empty: bool = False
    """No task had a finished file to copy."""
    removed: tuple[str, ...] = ()
    """URIs of older snapshots that were removed."""
    problem: str = ""
    """Why older snapshots could not be removed; "" when nothing is wrong."""
