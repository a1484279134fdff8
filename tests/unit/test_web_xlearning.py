"""XLearning's REST calls, by the names their users know."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.spec import Container, JobSpec, Resources, Role, TaskId
from howdah.spec import events as e
from howdah.spec.view import JobView, fold
from howdah.web.xlearning import answer

ROLES = {
    "chief": Role("t", resources=Resources(4096)),
    "worker": Role("t", replicas=2, resources=Resources(2048, 3, 1)),
    "evaluator": Role("t"),
    "ps": Role("t"),
    "tensorboard": Role("t"),
}


@pytest.fixture
def view() -> JobView:
    job = JobSpec(ROLES, application_type="TENSORFLOW")
    events: list[Any] = [e.JobStarted(1.0, "job-1", "yarn", "me", job)]
    for role, index in (("worker", 0), ("evaluator", 0), ("tensorboard", 0)):
        task = TaskId(role, index)
        events += [
            e.Launched(2.0, task, 1, Container(f"c-{role}", "n1", role)),
            e.Joined(3.0, task, 1, 1, "h1", {"main": 7}),
            e.Started(4.0, task, 1, 1, 99, "python3"),
        ]
    return fold(events)


def test_the_application(view: JobView) -> None:
    expected = {
        **{"appId": "job-1", "appType": "TENSORFLOW", "appUser": "me"},
        **{"workerNum": 3, "workerMem": 2048, "workerVCores": 3, "workerGCores": 1},
        **{"psNum": 1, "psMem": 1024, "psVCores": 1, "psGCores": 0},
    }
    assert answer(view, "/ws/app") == (200, expected)


def test_containers(view: JobView) -> None:
    one = {"cid": "c-worker", "startTime": 4000, "status": "RUNNING", "gpu": "1"}
    status, everybody = answer(view, "/ws/containers")
    assert status == 200
    assert one in everybody
    assert len(everybody) == 3
    assert answer(view, "/ws/containers/c-worker") == (200, one)
    assert answer(view, "/ws/app/evaluator") == (200, {"evaluator": "c-evaluator"})
    assert answer(view, "/ws/app/boardUrl") == (200, {"boardUrl": "http://h1:7"})


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/ws/app/savemodel", 405, "howdah save job-1"),
        ("/ws/app/signal/9", 405, "howdah cancel job-1"),
        ("/ws/containers/c-worker/stdout", 404, "howdah logs job-1 worker:0"),
        ("/ws/containers/none", 404, "no container none"),
        ("/ws/else", 404, "nothing answers"),
    ],
)
def test_what_changes_nothing_says_what_to_do(view: JobView, path: str, status: int, words: str) -> None:
    found, text = answer(view, path)
    assert found == status
    assert words in text


def test_before_anything_is_known() -> None:
    assert answer(JobView(), "/ws/app")[1]["workerNum"] == 0
    assert answer(JobView(), "/ws/containers") == (200, [])
    assert answer(JobView(), "/ws/app/boardUrl") == (200, {"boardUrl": ""})
