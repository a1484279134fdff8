"""What the master knows of copies that are wanted or being made while the programs run."""

from __future__ import annotations

from dataclasses import field

from howdah.spec import TaskId
from howdah.spec.values import dataclass
from howdah.wire.messages import SaveReport


@dataclass
class SnapshotRun:
    """One copy being made. `parts` are the tasks that make it, with attempt and epoch: another one makes none of it."""

    number: int
    output: int
    name: str
    uri: str
    temporary: str
    started_at: float
    parts: dict[TaskId, tuple[int, int]]
    previous: str = ""
    reports: dict[TaskId, SaveReport] = field(default_factory=dict)
    publishing: bool = False
    reported: int = 0
    reported_at: float = 0.0

    @property
    def done(self) -> int:
        """How many tasks have made their part."""
        return sum(report.done and not report.problem for report in self.reports.values())


@dataclass
class SnapshotRequest:
    """A copy that somebody wants; not before a moment, so that all who want it at once get the same."""

    number: int
    by: str
    not_before: float


@dataclass
class SnapshotState:
    """By output: what is wanted next, what is being made, when the next is due, the last complete one's URI, the last
    name; `asked` are the programs' requests that were seen, by task: its attempt, and how many; `started` what a
    master before this one had begun, by number."""

    number: int = 0
    wanted: dict[int, SnapshotRequest] = field(default_factory=dict)
    running: dict[int, SnapshotRun] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    last: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    asked: dict[TaskId, tuple[int, int]] = field(default_factory=dict)
    started: dict[int, tuple[int, str]] = field(default_factory=dict)
