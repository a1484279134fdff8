"""Tests that the command line prints few lines, and a table that fits the terminal, for a job of many tasks."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

import pytest
from rich.console import Console

from howdah.cli.progress_lines import FEW, HOLD_S, TaskProgressLines, event_line, task_ranges
from howdah.cli.terminal import Plain, task_table
from howdah.client.follow import Update
from howdah.spec import Container, Exit, JobReport, JobSpec, Role, State, TaskId
from howdah.spec.events import Ended, Event, GangRestarted, JobStarted, Joined, Launched, Started
from howdah.spec.fold import fold
from howdah.spec.view import JobView


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def life(tasks: list[TaskId], failing: TaskId | None = None) -> Iterator[Event]:
    """Of a job, in the order of its phases."""
    for number, task in enumerate(tasks):
        yield Launched(1.0, task, 1, Container(f"c{number}", f"n{number % 5}", task.role))
    for number, task in enumerate(tasks):
        yield Joined(2.0, task, 1, 1, f"n{number % 5}", {"main": 1}, data_files=2, data_bytes=1 << 20, data_seconds=1)
    for task in tasks:
        yield Started(3.0, task, 1, 1, 7)
    for task in tasks:
        yield Ended(4.0, task, 1, 1, Exit("exit", 1 if task == failing else 0), "n1")


def printed(count: int, update_size: int, failing: TaskId | None = None) -> list[str]:
    """What a screen shows of it when the events come one update after the other, a tenth of a second apart."""
    tasks = [TaskId("worker", index) for index in range(count)]
    out, clock = io.StringIO(), Clock()
    screen = Plain(out)
    screen._progress = TaskProgressLines(event_line, clock)
    job = JobSpec({"worker": Role("true", replicas=count)})
    view = fold([JobStarted(0.0, "job_1", "local", "me", job, "3.11", "here")], JobView(id="job_1"))
    report = JobReport("job_1", "j", State.RUNNING, "local")
    events = life(tasks, failing)
    with screen:
        while some := list(itertools.islice(events, update_size)):
            screen.show(Update(fold(some, view), report, some))
            clock.now += HOLD_S / 10
    return out.getvalue().splitlines()


def test_twenty_tasks_are_a_few_lines() -> None:
    lines = printed(20, update_size=20)
    assert [line.partition(" ")[2] for line in lines] == [
        "worker:0-19 have containers on 5 nodes",
        "worker:0-19 joined on 5 nodes: 40 files, 20 MiB in 1.0 s",
        "worker:0-19 run",
        "worker:0-19 ended well",
    ]
    assert len(printed(20, update_size=1)) < 20


def test_a_failure_is_told_at_once_and_after_what_was_before() -> None:
    lines = [line.partition(" ")[2] for line in printed(20, 80, TaskId("worker", 3))]
    assert lines[-3:] == ["worker:0-2 ended well", "worker:3 on n1: exit code 1", "worker:4-19 ended well"]


def test_a_few_tasks_are_told_one_by_one() -> None:
    assert len(printed(FEW, update_size=1)) == 4 * FEW


@pytest.mark.parametrize(
    ("indices", "text"), [([0], "worker:0"), ([3, 1, 2, 2], "worker:1-3"), ([0, 2, 3, 9], "worker:0,2-3,9")]
)
def test_indices_are_shown_as_ranges(indices: list[int], text: str) -> None:
    assert task_ranges(TaskId("worker", index) for index in indices) == text
    assert task_ranges([TaskId("ps", 0), *(TaskId("worker", index) for index in indices)]) == f"ps:0, {text}"


def table(count: int, width: int, height: int) -> list[str]:
    tasks = [TaskId("worker", index) for index in range(count)]
    view = fold([*life(tasks, TaskId("worker", 0))][:-1], JobView(id="job_1"))
    out = io.StringIO()
    Console(file=out, width=width, height=height).print(task_table(view, height - 4))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_table_has_a_line_for_each_task_on_a_narrow_terminal() -> None:
    lines = table(12, 60, 24)
    assert len(lines) == 13
    assert [line.split()[:2] for line in lines[1:3]] == [["worker:0", "FAILED"], ["worker:1", "SUCCEEDED"]]


def test_a_table_that_does_not_fit_has_a_line_for_each_role() -> None:
    assert table(40, 80, 24)[1].split(maxsplit=2) == ["worker", "40", "38 SUCCEEDED, 1 FAILED, 1 RUNNING"]


def test_a_program_that_is_started_again_in_its_container_is_the_next_attempt() -> None:
    task = TaskId("worker", 0)
    container = Container("c1", "n1", "worker")
    events: list[Event] = [
        Launched(1.0, task, 1, container),
        Started(2.0, task, 1, 1, 7),
        Ended(3.0, task, 1, 1, Exit("exit", 1), "n1"),
        GangRestarted(3.0, 2, "worker:0: exit code 1 (retry 1 of 2)"),
        Started(4.0, task, 1, 2, 8),
        Started(4.0, task, 1, 2, 8),  # a master that takes over says it again
        Launched(5.0, task, 2, container),
        Started(6.0, task, 2, 3, 9),
    ]
    shown = [fold(events[:count], JobView()).tasks[task].tries for count in range(1, len(events) + 1)]
    assert shown == [1, 1, 1, 1, 2, 2, 3, 3]
    assert fold(events, JobView()).notes == ["restarted: worker:0: exit code 1 (retry 1 of 2)"]
