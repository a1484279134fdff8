"""Tests XLearning's REST calls, by the names that their users know."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.api.errors import status_of
from howdah.compat.xlearning.rest import _wants_xml, answer
from howdah.errors import RequestRefused
from howdah.spec import Container, JobSpec, Resources, Role, TaskId
from howdah.spec.events import JobStarted, Joined, Launched, Started
from howdah.spec.fold import fold
from howdah.spec.view import JobView

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
    events: list[Any] = [JobStarted(1.0, "job-1", "yarn", "me", job)]
    for role, index in (("worker", 0), ("evaluator", 0), ("tensorboard", 0)):
        task = TaskId(role, index)
        events += [
            Launched(2.0, task, 1, Container(f"c-{role}", "n1", role)),
            Joined(3.0, task, 1, 1, "h1", {"main": 7}),
            Started(4.0, task, 1, 1, 99, "python3"),
        ]
    return fold(events)


def test_the_application_is_described(view: JobView) -> None:
    assert answer(view, "/ws/app") == {
        **{"appId": "job-1", "appType": "TENSORFLOW", "appUser": "me"},
        **{"workerNum": 3, "workerMem": "2.0 GB", "workerVCores": 3, "workerGCores": 1},
        **{"psNum": 1, "psMem": "1.0 GB", "psVCores": 1, "psGCores": 0},
    }


def test_containers_are_listed(view: JobView) -> None:
    one = {"cid": "c-worker", "startTime": 4000, "status": "RUNNING", "gpu": "1"}
    everybody = answer(view, "/ws/containers")["containerInfos"]
    assert one in everybody
    assert len(everybody) == 3
    assert answer(view, "/ws/containers/c-worker") == one
    assert answer(view, "/ws/app/evaluator") == "c-evaluator"
    assert answer(view, "/ws/app/boardUrl") == "http://h1:7"
    assert answer(view, "/ws/app/boardUrl", "http://other:8") == "http://other:8"


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/ws/app/savemodel", 405, "POST it with the token of `howdah page job-1`, or `howdah save job-1`"),
        ("/ws/app/signal/9", 405, "POST it with the token of `howdah page job-1`, or `howdah cancel job-1`"),
        ("/ws/app/signal/10", 405, "signal 10 is sent to no program: 2, 9, 15 end the job"),
        ("/ws/containers/none", 404, "no container none"),
        ("/ws/containers/c-worker/core", 404, "no container c-worker/core"),
        ("/ws/containers/", 404, "no container"),
        ("/ws/else", 404, "nothing answers"),
    ],
)
def test_what_changes_nothing_says_what_to_do(view: JobView, path: str, status: int, words: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        answer(view, path)
    assert status_of(refused.value) == status
    assert words in str(refused.value)


def test_before_anything_is_known() -> None:
    assert answer(JobView(), "/ws/app")["workerNum"] == 0
    assert answer(JobView(), "/ws/containers") == {"containerInfos": []}
    assert answer(JobView(), "/ws/app/boardUrl") == ""


@pytest.mark.parametrize(
    ("accept", "xml"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/xml", True),
        ("Application/XML; charset=utf-8", True),
        ("application/json, application/xml", False),
        ("application/xml, application/json", True),
        ("application/xml;q=0.5, application/json", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("application/xml;q=x", True),
    ],
)
def test_which_form_is_wanted(accept: str, xml: bool) -> None:
    assert _wants_xml(accept) is xml
