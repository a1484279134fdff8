"""What `step` wants done. The loop does these in order and decides nothing."""

from __future__ import annotations

from howdah.engines import NO_PREFERENCES, ContainerPreferences
from howdah.spec import Container, Outcome, TaskId
from howdah.spec.events import AllocationLost, Event
from howdah.spec.values import dataclass
from howdah.wire.messages import Status


@dataclass(frozen=True)
class RequestContainers:
    """Tell the allocator that `count` containers of `role` are outstanding."""

    role: str
    count: int
    preferences: ContainerPreferences = NO_PREFERENCES


@dataclass(frozen=True)
class LaunchTask:
    """Start an executor for this attempt in the container."""

    task: TaskId
    attempt: int
    container: Container


@dataclass(frozen=True)
class ReleaseContainer:
    """Give the container back."""

    container_id: str


@dataclass(frozen=True)
class RecordEvent:
    """Append to the event log."""

    event: Event


@dataclass(frozen=True)
class NotifyExecutors:
    """These tasks' orders have changed: answer their executors' waiting polls."""

    tasks: tuple[TaskId, ...]


@dataclass(frozen=True)
class Commit:
    """Move the outputs to their places (`keep`), or remove what was uploaded; then tell by a CommitDone event."""

    keep: bool


@dataclass(frozen=True)
class PublishSnapshot:
    """Let a finished copy of `output` appear at `final`, remove those beyond the last `keep` of the ones whose names
    begin with `to`; then tell by a SavePublished event."""

    output: int
    temporary: str
    final: str
    to: str
    keep: int = 0


@dataclass(frozen=True)
class DiscardSnapshot:
    """Remove what an unfinished copy has left at `temporary`."""

    temporary: str


@dataclass(frozen=True)
class FindCheckpoint:
    """Look for what the programs that start in `epochs` go on from; then tell by a CheckpointFound event."""

    epochs: tuple[int, ...]


@dataclass(frozen=True)
class CollectStacks:
    """Look what the programs of `tasks` are doing, of which `stalled` show no sign of progress; then tell by a
    StacksTaken event."""

    tasks: tuple[TaskId, ...]
    stalled: tuple[TaskId, ...]


@dataclass(frozen=True)
class NoteNodeFailures:
    """Leave word for later jobs: nodes that were to blame for a failure, and when."""

    failures: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class HandOver:
    """End this process and nothing else: the next master goes on with the job."""

    event: AllocationLost


@dataclass(frozen=True)
class Finish:
    """The job is over; unregister with this outcome and exit."""

    outcome: Outcome


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


# Events that only the master's own loop makes; they are never recorded as such.


@dataclass(frozen=True)
class Tick(Event):
    """Time has passed."""


@dataclass(frozen=True)
class StatusReceived(Event):
    """An executor of the current attempt of its task sent its status."""

    status: Status


@dataclass(frozen=True)
class StartRecorded(Event):
    """That the world of `epoch` is formed is in the event log for certain, or why it can't be written there."""

    epoch: int
    problem: str = ""


@dataclass(frozen=True)
class CommitDone(Event):
    """The outputs are in place (`uris`), or why they are not; `kept` is where those of a failed job are."""

    uris: tuple[str, ...] = ()
    error: str = ""
    kept: tuple[str, ...] = ()


@dataclass(frozen=True)
class SnapshotPublished(Event):
    """A copy of `output` is in its place and older ones were `removed`, but for a `problem` with those; or it was
    `empty`, or why it is not there."""

    output: int
    error: str = ""
    empty: bool = False
    removed: tuple[str, ...] = ()
    problem: str = ""
