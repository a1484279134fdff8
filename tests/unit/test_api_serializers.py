"""Tests that a task's row says whether the task is a straggler, and whether its container will be taken away."""

from __future__ import annotations

from howdah.api.serializers import tasks
from howdah.spec import Container, JobSpec, Role, TaskId
from howdah.spec.events import JobStarted, Launched, LossAnnounced, Straggling
from howdah.spec.fold import fold

W1 = TaskId("worker", 1)


def test_what_people_should_see_of_a_task() -> None:
    began = [
        JobStarted(1.0, "job-1", "yarn", "alice", JobSpec(roles={"worker": Role("w", replicas=2)})),
        Launched(1.5, W1, 1, Container("c1", "node7", "worker")),
        Straggling(2.0, W1, "step time", 3.1, 1.0),
        LossAnnounced(3.0, "c1", "preemption", 15.0, "will be preempted", W1),
    ]
    rows = {row["task"]: row for row in tasks(fold(began))}
    assert rows["worker:0"]["straggler"] == rows["worker:0"]["notice"] == ""
    assert "3.1" in rows["worker:1"]["straggler"]
    assert rows["worker:1"]["notice"] == "will be preempted"
    assert tasks(fold([*began, Straggling(4.0, W1)]))[1]["straggler"] == ""
