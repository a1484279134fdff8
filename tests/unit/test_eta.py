"""Tests that the estimated time to completion follows from the progress that tasks report."""

from __future__ import annotations

from dataclasses import replace

from sampled_job import running_job

from howdah.spec import State, TaskId
from howdah.spec.eta import eta
from howdah.spec.events import Used
from howdah.spec.fold import fold
from howdah.spec.usage import Usage
from howdah.spec.view import JobView

WORKER = TaskId("worker", 0)


def progress(view: JobView, *samples: tuple[float, float]) -> JobView:
    return fold([Used(time, WORKER, Usage(progress=value)) for time, value in samples], view)


def test_when_it_is_done_follows_from_how_fast_it_goes_since_it_began() -> None:
    view = progress(running_job(), (300.0, 0.5), (310.0, 0.6))
    assert eta(view, 310.0) == 40.0
    assert eta(view, 330.0) == 20.0
    assert eta(replace(view, state=State.SUCCEEDED), 310.0) is None


def test_nothing_is_said_of_what_has_just_begun_or_does_not_tell() -> None:
    assert eta(running_job(), 300.0) is None
    assert eta(progress(running_job(), (300.0, 0.5)), 310.0) is None
    assert eta(progress(running_job(), (300.0, 0.5), (301.0, 0.6)), 310.0) is None


def test_progress_is_the_mean_of_those_who_tell_else_the_share_that_is_done() -> None:
    view = progress(running_job(), (300.0, 0.5))
    assert view.progress == 0.5
    view = running_job()
    view.tasks[WORKER].state = State.SUCCEEDED
    assert view.progress == 0.5
    view.tasks[TaskId("worker", 1)].usage = Usage(progress=0.5)
    assert view.progress == 0.75


def test_who_sees_one_sample_only_knows_as_much() -> None:
    view = fold([Used(400.0, WORKER, Usage(progress=0.6, first_progress=0.5, first_at=300.0))], running_job())
    assert eta(view, 400.0) == 400.0
