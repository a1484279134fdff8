"""Tests what `howdah explain` says of a job that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from howdah.cli import i18n
from howdah.cli.explain import lines
from howdah.client.explain import Explanation
from howdah.spec import JobReport, State, TaskId
from howdah.spec.view import JobView, TaskView


@pytest.fixture
def chinese() -> Iterator[None]:
    before = i18n.language()
    i18n.choose("zh")
    yield
    i18n.choose(before)


def test_a_slow_task_is_told_in_chinese(chinese: None) -> None:
    task = TaskView(TaskId("worker", 1), phase="running", state=State.RUNNING)
    task.straggler = "the executor of worker:1 did not send its log within 10 s"
    view = JobView(id="job_1", tasks={task.id: task})
    said = list(lines(Explanation(JobReport("job_1", "j", State.RUNNING, "yarn"), view)))
    assert "  worker:1: worker:1 的执行器在 10 秒内没有送来日志" in said
