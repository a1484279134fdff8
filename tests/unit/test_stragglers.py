"""Tests finding tasks that deviate from the others of their role."""

from __future__ import annotations

from dataclasses import replace

from howdah.master.health.stragglers import PROGRESS, STEPS, Stragglers, out_of_line
from howdah.spec import JobSpec, Role, TaskId
from howdah.spec.events import Straggling
from howdah.spec.usage import Usage
from howdah.testing import Gang

TASKS = [TaskId("worker", index) for index in range(5)]


def means(what: str, *values: float) -> dict[TaskId, dict[str, float]]:
    return {task: {what: value} for task, value in zip(TASKS, values, strict=False)}


class TestMeasure:
    def test_far_off_either_way(self) -> None:
        cpu = "CPU (cores)"
        assert out_of_line(means(cpu, 1.0, 1.1, 0.9, 3.0, 1.0)) == {TASKS[3]: (cpu, 3.0, 1.0)}
        assert out_of_line(means(cpu, 1.0, 1.1, 0.9, 0.1, 1.0)) == {TASKS[3]: (cpu, 0.1, 1.0)}

    def test_little_is_nothing(self) -> None:
        assert out_of_line(means("CPU (cores)", 0.01, 0.01, 0.2)) == {}
        assert out_of_line(means("CPU (cores)", 1.0, 1.0, 1.2)) == {}

    def test_where_all_tasks_differ_no_task_is_a_straggler(self) -> None:
        assert out_of_line(means("CPU (cores)", 1.0, 2.0, 3.0, 4.0, 5.0)) == {}

    def test_two_can_not_be_compared(self) -> None:
        assert out_of_line(means(STEPS, 100.0, 1.0)) == {}

    def test_who_is_ahead_is_no_straggler(self) -> None:
        assert out_of_line(means(PROGRESS, 1.0, 1.0, 9.0)) == {}
        assert out_of_line(means(PROGRESS, 9.0, 9.0, 1.0)) == {TASKS[2]: (PROGRESS, 1.0, 9.0)}


def test_a_straggler_is_reported_once_and_taken_back() -> None:
    gang = Gang(JobSpec(roles={"worker": Role("train", replicas=3)}))
    gang.form()
    steps: dict[TaskId, int] = {}
    watcher = Stragglers(steps.get)

    def minutes(count: int, slow: int) -> list[Straggling]:
        found: list[Straggling] = []
        for _ in range(count * 12):
            gang.now += 5
            for task in gang.state.tasks.values():
                steps[task.id] = steps.get(task.id, 0) + (slow if task.id.index == 2 else 10)
                task.usage = replace(Usage(), cpu=1.0)
            found += watcher.check(gang.state, gang.now)
        return found

    assert minutes(1, 10) == []
    (told,) = minutes(2, 2)
    assert (told.task, told.what, told.median) == (TASKS[2], STEPS, 120.0)
    (back,) = minutes(3, 10)
    assert (back.task, back.what) == (TASKS[2], "")
