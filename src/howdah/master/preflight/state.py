"""What pre-flight has found so far: who is trying whom, who passed with whom, and which nodes did not."""

from __future__ import annotations

from dataclasses import dataclass, field

from howdah.spec import TaskId

Partners = tuple[tuple[TaskId, bool] | None, ...]
"""Round by round the other task and whether it listens; None for a round without one."""


@dataclass
class PairTest:
    """The tasks of an epoch exchange data with their `partners`: `awaited` have not told yet, `passed` and `failed`
    (why) are pairs as one of them tells it, itself first. `began` is the moment of the order."""

    partners: dict[TaskId, Partners]
    awaited: set[TaskId]
    passed: set[tuple[TaskId, TaskId]] = field(default_factory=set)
    failed: dict[tuple[TaskId, TaskId], str] = field(default_factory=dict)
    began: float = field(default=0.0, compare=False)


@dataclass
class PreflightState:
    """`trials` are those that go on, by epoch. `passed` and `failed` are pairs of containers, `doubted` the containers
    that may be to blame. `unfit` are the nodes on which a task did not pass, `forgiven` those that had to be tried once
    more, `full` those whose disk was full. `took` (seconds) and `left_out` are of the tasks that were checked and have
    not started yet. There may be no other node (`elsewhere`)."""

    pair_tests: dict[int, PairTest] = field(default_factory=dict)
    passed: set[tuple[str, str]] = field(default_factory=set)
    failed: list[tuple[str, str]] = field(default_factory=list)
    suspected_containers: set[str] = field(default_factory=set)
    failed_nodes: dict[TaskId, list[str]] = field(default_factory=dict)
    readmitted_nodes: set[str] = field(default_factory=set)
    full: set[str] = field(default_factory=set)
    took: dict[TaskId, float] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    elsewhere: bool = True

    @property
    def nodes(self) -> set[str]:
        """On which somebody did not pass."""
        return {node for nodes in self.failed_nodes.values() for node in nodes}
