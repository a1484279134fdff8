"""The state of snapshots that are requested or being made while the programs run."""

from __future__ import annotations

from dataclasses import field

from howdah.spec import TaskId
from howdah.spec.values import dataclass
from howdah.wire.messages import SnapshotReport


@dataclass
class SnapshotRun:
    """A snapshot that is being made."""

    number: int
    """The number of the snapshot in the job."""
    output: int
    """The number of the output that the snapshot copies."""
    name: str
    """The name of the snapshot's directory."""
    uri: str
    """Where the finished snapshot will be."""
    temporary: str
    """Where the snapshot grows."""
    started_at: float
    """When it was begun."""
    parts: dict[TaskId, tuple[int, int]]
    """The tasks that make a part, each with its attempt and epoch: another attempt or epoch makes no part."""
    previous: str = ""
    """The URI of an earlier snapshot, whose unchanged files are not copied again; "" for none."""
    reports: dict[TaskId, SnapshotReport] = field(default_factory=dict)
    """What each task has reported last."""
    publishing: bool = False
    """All parts are made, and the snapshot is being moved to its place."""
    reported: int = 0
    """The number of parts that the event log says are made."""
    reported_at: float = 0.0
    """When the event log got this number."""

    @property
    def done(self) -> int:
        """Return how many tasks have made their part."""
        return sum(report.done and not report.problem for report in self.reports.values())


@dataclass
class SnapshotRequest:
    """A request for a snapshot."""

    number: int
    """The number that the snapshot gets."""
    by: str
    """Who asked for the snapshot."""
    not_before: float
    """The earliest moment at which it begins, so that all who ask at once get the same snapshot."""


@dataclass
class SnapshotState:
    """The snapshots of the job. Keys are numbers of outputs unless said otherwise."""

    number: int = 0
    """The number of the last snapshot that was requested."""
    requested: dict[int, SnapshotRequest] = field(default_factory=dict)
    """The next requested snapshot of each output."""
    running: dict[int, SnapshotRun] = field(default_factory=dict)
    """The snapshot of each output that is being made."""
    due: dict[int, float] = field(default_factory=dict)
    """When the next regular snapshot of each output begins."""
    last: dict[int, str] = field(default_factory=dict)
    """The URI of the last complete snapshot of each output."""
    names: dict[int, str] = field(default_factory=dict)
    """The last name that was given to a snapshot of each output."""
    program_requests: dict[TaskId, tuple[int, int]] = field(default_factory=dict)
    """By task, the attempt and the number of its programs' requests that were seen."""
    started: dict[int, tuple[int, str]] = field(default_factory=dict)
    """The snapshots that an earlier master had begun: output and URI, by the number of the snapshot."""
