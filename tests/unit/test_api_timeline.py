"""Tests how a job's timeline is computed from its events: restarts, losses, and which failure came first."""

from __future__ import annotations

from typing import Any

from howdah.api.timeline import timeline
from howdah.spec import Container, Exit, JobSpec, Outcome, Role, State, TaskId
from howdah.spec.events import (
    Allocated,
    Asked,
    Ended,
    GangReleased,
    GangRestarted,
    Greeted,
    JobFinished,
    JobStarted,
    Joined,
    Launched,
    Noted,
    Started,
    WorldFormed,
)
from howdah.spec.fold import fold
from howdah.spec.provenance import Submission
from howdah.spec.view import JobView

FIRST, SECOND = TaskId("worker", 0), TaskId("worker", 1)
JOB = JobSpec({"worker": Role("t", replicas=2)})


def begun(submitted: float = 90.0) -> list[Any]:
    started = JobStarted(100.0, "job-1", "yarn", "me", JOB, submission=Submission(time=submitted))
    return [started, Asked(101.0, "worker", 2)]


def attempt(task: TaskId, number: int, at: float, epoch: int = 1) -> list[Any]:
    container = Container(f"c-{task.index}-{number}", f"n{task.index}", "worker")
    return [
        Allocated(at, container),
        Launched(at + 1, task, number, container),
        Greeted(at + 2, task, number, "h", 1),
        Joined(at + 3, task, number, epoch, "h", {"main": 1}),
    ]


def running(at: float, epoch: int, *tasks: tuple[TaskId, int]) -> list[Any]:
    return [WorldFormed(at, epoch), *(Started(at + 1, task, number, epoch, 7) for task, number in tasks)]


def spans(found: Any, row: int) -> list[tuple[str, float, float]]:
    return [(span["phase"], span["start"], span["end"]) for span in found["tasks"][row]["spans"]]


def test_a_job_that_runs() -> None:
    events = [*begun(), *attempt(FIRST, 1, 110), *attempt(SECOND, 1, 120), *running(125, 1, (FIRST, 1), (SECOND, 1))]
    found = timeline(fold(events))
    assert (found["from"], found["to"]) == (90.0, 126.0)
    assert [(span["phase"], span["start"], span["end"]) for span in found["job"]] == [
        ("submitted", 90.0, 100.0),
        ("forming", 100.0, 125.0),
        ("running", 125.0, 0.0),
    ]
    assert spans(found, 0) == [
        ("asked", 101.0, 110.0),
        ("allocated", 110.0, 111.0),
        ("launched", 111.0, 112.0),
        ("localising", 112.0, 113.0),
        ("joined", 113.0, 126.0),
        ("running", 126.0, 0.0),
    ]
    assert found["first_failure"] is None


def test_a_lost_node_a_restart_and_the_end() -> None:
    lost, reset = Exit("lost", detail="its node is lost"), Exit("exit", 1, detail="connection reset")
    events = [
        *begun(),
        *attempt(FIRST, 1, 110),
        *attempt(SECOND, 1, 110),
        *running(115, 1, (FIRST, 1), (SECOND, 1)),
        Ended(130, SECOND, 1, 1, reset),
        Ended(131, FIRST, 1, 1, lost, lost=True),
        GangRestarted(132, 2, "a node was lost"),
        *attempt(FIRST, 2, 140, 2),
        *attempt(SECOND, 2, 140, 2),
        *running(145, 2, (FIRST, 2), (SECOND, 2)),
        Ended(150, FIRST, 2, 2, Exit("exit", 0)),
        Ended(151, SECOND, 2, 2, Exit("exit", 3, lines=("bang",)), "n1"),
        JobFinished(152, Outcome(State.FAILED, "worker:1 failed", SECOND, Exit("exit", 3, lines=("bang",)))),
    ]
    found = timeline(fold(events))
    assert [(mark["kind"], mark["task"]) for mark in found["marks"]] == [
        ("failed", "worker:1"),
        ("lost", "worker:0"),
        ("restarted", ""),
        ("failed", "worker:1"),
    ]
    assert [span["phase"] for span in found["job"]] == ["submitted", "forming", "running", "forming", "running"]
    assert found["job"][2]["end"] == found["job"][3]["start"] == 132.0
    assert found["job"][4]["end"] == 152.0
    assert [(row["task"], row["attempt"], row["state"]) for row in found["tasks"]] == [
        ("worker:0", 1, "FAILED"),
        ("worker:0", 2, "SUCCEEDED"),
        ("worker:1", 1, "FAILED"),
        ("worker:1", 2, "FAILED"),
    ]
    assert spans(found, 0)[-1] == ("running", 116.0, 131.0)
    assert found["first_failure"] == {"task": "worker:0", "try_number": 1, "time": 131.0, "text": "its node is lost"}
    assert found["last_failure"] == {"task": "worker:1", "try_number": 2, "time": 151.0, "text": "exit code 3"}


def test_while_it_runs_the_earliest_failure_is_the_first() -> None:
    events = [*begun(), *attempt(FIRST, 1, 110), Ended(120, FIRST, 1, 1, Exit("memory", detail="8 GiB"))]
    found = timeline(fold(events))["first_failure"]
    assert found == {"task": "worker:0", "try_number": 1, "time": 120.0, "text": "8 GiB"}


def test_an_incomplete_gang_gives_back_what_it_has() -> None:
    events = [*begun(), *attempt(FIRST, 1, 110), GangReleased(120, "no room", 30.0), *attempt(FIRST, 2, 150)]
    view = fold(events)
    assert [(each.attempt, each.finished) for each in view.tasks[FIRST].attempts] == [(1, 120), (2, 0.0)]
    assert view.notes == ["no room; asking again in 30 s"]


def test_clocks_that_disagree_turn_nothing_backwards() -> None:
    """The submitter's clock is ahead; a master that took over is behind the one before it."""
    ahead = timeline(fold([*begun(submitted=500.0), *attempt(FIRST, 1, 110)]))
    assert ahead["from"] == 100.0
    assert [span["phase"] for span in ahead["job"]] == ["forming"]
    behind = timeline(fold([*begun(), *attempt(FIRST, 1, 110), Started(60.0, FIRST, 1, 1, 7)]))
    assert all(span["end"] >= span["start"] or span["end"] == 0.0 for span in behind["tasks"][0]["spans"])


def test_a_job_that_fails_for_ever_keeps_its_first_and_latest_marks() -> None:
    view = fold(begun())
    for number in range(5000):
        fold([Noted(200.0 + number, str(number))], view)
    assert len(view.marks) == 2000
    assert (view.marks[0].text, view.marks[-1].text) == ("0", "4999")
    assert timeline(view)["marks"][999]["text"] == "999"


def test_nothing_is_known_yet() -> None:
    assert timeline(JobView())["tasks"] == []
