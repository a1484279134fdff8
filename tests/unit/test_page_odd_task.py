"""Tests which task the overview's strips name as the odd one out, and that the cells of thousands of tasks fit."""

from __future__ import annotations

from typing import Any

import pytest
from page_script import called


def odd(*values: float | None, roles: str = "") -> Any:
    """Return the index of the task that the page names, None for none; `roles` has a letter for each task."""
    tasks = [{"role": role, "value": value} for role, value in zip(roles or "w" * len(values), values, strict=True)]
    (found,) = called("overview/oddTask.ts", "findOddTask", [[tasks]])
    return found and found["index"]


def test_the_task_that_differs_most_is_named() -> None:
    assert odd(0.9, 0.88, 0.1, 0.91, 0.6) == 2
    assert odd(0.1, 0.1, 0.1, 0.9) == 3


def test_tasks_that_are_alike_or_all_different_have_no_odd_one() -> None:
    assert odd(0.9, 0.88, 0.86, 0.75) is None
    assert odd(0.1, 0.4, 0.7, 1.0) is None
    assert odd(0.9, 0.1) is None
    assert odd(None, None, None, 0.9) is None


def test_a_task_is_compared_with_those_of_its_role() -> None:
    assert odd(0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9, roles="ppppwww") == 3
    assert odd(0.0, 0.0, 0.0, 0.9, 0.9, 0.9, 0.9, roles="pppwwww") is None


@pytest.mark.parametrize("width", [300, 820, 1050])
@pytest.mark.parametrize("count", [1, 4, 64, 1000, 5000])
def test_the_cells_of_all_tasks_fill_the_strip(width: int, count: int) -> None:
    (layout,) = called("overview/stripLayout.ts", "layoutCells", [{"count": count, "width": width}])
    rows = -(-count // layout["columns"])
    assert rows * layout["cellHeight"] == layout["height"]
    assert layout["columns"] * layout["cellWidth"] == pytest.approx(width)
    if count <= 1000:
        assert layout["height"] <= 60
