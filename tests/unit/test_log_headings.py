"""Tests that on a terminal each task's heading in `howdah logs` has the colour that the task has in `howdah run`."""

from __future__ import annotations

import click
import pytest

from howdah.cli.logs import print_pieces
from howdah.cli.terminal import coloured_task, styled_heading
from howdah.spec import TaskId


def colour(text: str) -> str:
    """The colour's number in a text with codes."""
    return text.partition("\x1b[")[2].partition("m")[0]


def test_headings_have_their_tasks_colours() -> None:
    tasks = [TaskId("worker", index) for index in range(3)]
    headings = [styled_heading(f"{task} stdout") for task in tasks]
    assert [click.unstyle(heading) for heading in headings] == [f"==> {task} stdout <==" for task in tasks]
    assert [colour(heading) for heading in headings] == [colour(coloured_task(task)) for task in tasks]
    assert len({colour(heading) for heading in headings}) == 3


@pytest.mark.parametrize("name", ["master", "container_1 on a:b stderr", ""])
def test_other_headings_have_none(name: str) -> None:
    assert styled_heading(name) == click.style(f"==> {name} <==", bold=True)


def test_a_pipe_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    print_pieces(iter([("worker:0 stdout", b"one"), ("worker:1 stdout", b"two\n")]), as_json=False)
    assert capsys.readouterr().out == "==> worker:0 stdout <==\none\n==> worker:1 stdout <==\ntwo\n"
