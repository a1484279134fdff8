"""The state of pre-flight: which pair tests go on, which pairs passed, and which nodes failed."""

from __future__ import annotations

import dataclasses
from dataclasses import field

from howdah.spec import TaskId
from howdah.spec.values import dataclass

Partners = tuple[tuple[TaskId, bool] | None, ...]
"""By round, the other task and whether it listens; None for a round without a partner."""


@dataclasses.dataclass
class PairTest:
    """The pair test of one epoch, in which tasks exchange data with partners."""

    partners: dict[TaskId, Partners]
    """The partners of each task, round by round."""
    awaited: set[TaskId]
    """The tasks that have not reported yet."""
    passed: set[tuple[TaskId, TaskId]] = field(default_factory=set)
    """Pairs that exchanged data: first the task that reports it, then its partner."""
    failed: dict[tuple[TaskId, TaskId], str] = field(default_factory=dict)
    """Why pairs could not exchange data. In a pair the task that reports it comes first, then its partner."""
    began: float = field(default=0.0, compare=False)
    """When the order was given."""


@dataclass
class PreflightState:
    """What pre-flight has found in the whole job."""

    pair_tests: dict[int, PairTest] = field(default_factory=dict)
    """The pair tests that go on, by epoch."""
    passed: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of containers that exchanged data."""
    failed: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of containers that could not exchange data."""
    suspected_containers: set[str] = field(default_factory=set)
    """The containers that may be to blame."""
    failed_nodes: dict[TaskId, list[str]] = field(default_factory=dict)
    """By task, the nodes on which it did not pass."""
    readmitted_nodes: set[str] = field(default_factory=set)
    """Failed nodes that had to be tried once more."""
    full_disk_nodes: set[str] = field(default_factory=set)
    """Nodes whose disk was full."""
    check_seconds: dict[TaskId, float] = field(default_factory=dict)
    """Seconds that the checks took, by task that was checked and has not started yet."""
    left_out: dict[str, None] = field(default_factory=dict)
    """Sentences about the checks that were not made, in order."""
    has_other_nodes: bool = True
    """Another container may come on another node; False on an engine of a single machine."""

    @property
    def nodes(self) -> set[str]:
        """Return the nodes on which a task did not pass."""
        return {node for nodes in self.failed_nodes.values() for node in nodes}
