"""Tests that a program which follows a job is given a view only when it has changed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from howdah.client.sdk import changes
from howdah.spec import Outcome, State, TaskId
from howdah.spec.usage import Usage
from howdah.spec.view import JobView, TaskView


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_view_is_yielded_when_it_has_changed_and_a_second_apart() -> None:
    clock, view = Clock(), JobView(id="one")

    def followed() -> Iterator[JobView]:
        for moment in itertools.count():
            clock.now = moment / 10
            if moment == 100:
                view.state = State.RUNNING
                view.tasks[TaskId("worker", 0)] = TaskView(TaskId("worker", 0))
            if 100 < moment < 130:  # of a program that says its progress all the time
                view.tasks[TaskId("worker", 0)].usage = Usage(progress=moment / 1000)
            if moment == 145:
                view.outcome = Outcome(State.SUCCEEDED)
            yield view

    assert [round(clock.now, 1) for _ in changes(followed(), clock)] == [0.0, 10.0, 11.0, 12.0, 13.0, 14.5]
