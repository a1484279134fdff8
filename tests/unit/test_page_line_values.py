"""Tests which values of a chart's lines the page shows at a place, and which step of a slider it keeps."""

from __future__ import annotations

from typing import Any

from page_script import called


def line(name: str, x: list[float], **fields: Any) -> dict[str, Any]:
    return {"name": name, "colour": 0, "x": x, "y": [each / 2 for each in x], **fields}


def shown_at(x: float, *lines: dict[str, Any]) -> dict[str, float | None]:
    """The values beside the pointer at this place, the nearest first."""
    (rows,) = called("charts/lineValues.ts", "nearestLines", [[list(lines), {"x": x, "y": 0}]])
    return {row["line"]["name"]: row["y"] for row in rows}


def test_a_line_has_no_value_far_from_its_points() -> None:
    ended, long = line("ended", [*range(101)], pinned=True), line("long", [*range(0, 10_001, 100)])
    assert shown_at(100, ended, long) == {"ended": 50, "long": 50}
    assert shown_at(10_000, ended, long) == {"ended": None, "long": 5000}


def test_a_line_keeps_its_value_until_its_next_point_is_due() -> None:
    early, late = line("early", [0, 10, 20]), line("late", [8, 18, 28])
    assert shown_at(28, early, late) == {"early": 10, "late": 14}
    assert shown_at(0, early, late) == {"early": 0, "late": 4}
    assert shown_at(31, early, late) == {"late": 14, "early": None}
    assert shown_at(5, line("one", [4])) == {"one": None}


def test_of_points_with_the_same_recall_the_one_at_the_pointer_is_shown() -> None:
    curve = {**line("pr", [0, 1, 1, 1]), "y": [1, 0.9, 0.6, 0.5], "thresholds": [0.9, 0.6, 0.3, 0]}
    found = called("charts/lineValues.ts", "nearestLines", [[[curve], {"x": 0.9, "y": y}] for y in (1, 0.62, 0)])
    assert [row["y"] for (row,) in found] == [0.9, 0.6, 0.5]


def steps(*numbers: int) -> list[dict[str, int]]:
    return [{"step": number} for number in numbers]


def test_the_chosen_step_stays_while_others_come_and_go() -> None:
    found = called(
        "trainingCurves/chosenStep.ts",
        "chosenIndex",
        [
            [steps(0, 10, 20), 10],
            [steps(0, 5, 10, 20), 10],
            [steps(0, 12, 20), 10],
            [steps(0, 10), None],
            [steps(), 10],
        ],
    )
    assert found == [1, 2, 1, 0, -1]


def test_the_last_step_is_no_choice() -> None:
    found = called("trainingCurves/chosenStep.ts", "chooseStep", [[steps(0, 10), 0], [steps(0, 10), 1]])
    assert found == [0, None]
