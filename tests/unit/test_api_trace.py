"""Tests finding the task that a container, a process or a GPU belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.api.trace import trace
from howdah.spec import Container, Exit, JobSpec, Role, TaskId
from howdah.spec.events import Ended, Greeted, JobStarted, Launched, Started, Used
from howdah.spec.fold import fold
from howdah.spec.gpu import Gpu
from howdah.spec.usage import Usage
from howdah.spec.view import JobView


@pytest.fixture
def view() -> JobView:
    """worker:0 is on n1, in its second container; worker:1 and ps:0 are on n2."""
    job = JobSpec({"worker": Role("t", replicas=2), "ps": Role("t")})
    facts = {"c-2": {"stage": "2"}}
    events: list[Any] = [JobStarted(1.0, "job-1", "yarn", "me", job)]
    for task, container, node, attempt, pid in (
        (TaskId("worker", 0), "c-1", "n3:45454", 1, 7),
        (TaskId("worker", 0), "c-2", "n1:45454", 2, 7),
        (TaskId("worker", 1), "c-3", "n2:45454", 1, 8),
        (TaskId("ps", 0), "c-4", "n2:45454", 1, 9),
    ):
        events += [
            Launched(2.0, task, attempt, Container(container, node, task.role, engine_facts=facts.get(container, {}))),
            Greeted(3.0, task, attempt, f"{node.partition(':')[0]}.example", 1),
            Started(4.0, task, attempt, 1, pid, "python3", ("5",) if container == "c-2" else ()),
        ]
        if container == "c-1":
            events.append(Ended(5.0, task, 1, 1, Exit("lost")))
    events.append(Used(6.0, TaskId("worker", 1), Usage(gpus=(Gpu("3"), Gpu("GPU-ab12")))))
    return fold(events)


@pytest.mark.parametrize(
    ("of", "task", "attempt"),
    [
        ("c-1", "worker:0", 1),
        ("c-2", "worker:0", 2),
        ("n1.example:7", "worker:0", 2),
        ("n3:7", "worker:0", 1),
        ("n1:7", "worker:0", 2),
        ("n1", "worker:0", 2),
        ("n2:45454:9", "ps:0", 1),
        ("n2/gpu3", "worker:1", 1),
        ("n1/gpu5", "worker:0", 2),
        ("n2.example/gpuGPU-ab12", "worker:1", 1),
    ],
)
def test_what_an_attempt_had_leads_to_it(view: JobView, of: str, task: str, attempt: int) -> None:
    found = trace(view, of)
    assert found is not None
    assert (found["job"], found["task"], found["attempt"]) == ("job-1", task, attempt)
    assert found["url"] == f"./#/jobs/job-1/tasks/{task}"


def test_all_in_one_go(view: JobView) -> None:
    assert trace(view, "n1:7") == {
        "job": "job-1",
        "name": "job",
        "state": "PENDING",
        "user": "me",
        "queue": "",
        "engine": "yarn",
        "task": "worker:0",
        "role": "worker",
        "index": 0,
        "rank": 0,
        "attempt": 2,
        "host": "n1.example",
        "container": "c-2",
        "engine_facts": {"stage": "2"},
        "pid": 7,
        "gpus": ["5"],
        "since": 4.0,
        "until": 0.0,
        "url": "./#/jobs/job-1/tasks/worker:0",
    }


@pytest.mark.parametrize("of", ["", "c-9", "n3:8", "n1:9", "n2", "n2/gpu4", ":0", "/gpu", "n1:", "<b>"])
def test_an_unknown_or_ambiguous_owner_is_not_traced(view: JobView, of: str) -> None:
    assert trace(view, of) is None
