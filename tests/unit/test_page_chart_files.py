"""Tests the files that the page makes of a chart: a row for each point, and no cell that a spreadsheet runs."""

from __future__ import annotations

from typing import Any

from page_script import called


def rows(*lines: dict[str, Any], axis: str = "step") -> list[str]:
    """Return the rows of the CSV of these lines, without the head."""
    (text,) = called("charts/chartFiles.ts", "toCsv", [[list(lines), axis]])
    head, *found = text.removesuffix("\r\n").split("\r\n")
    assert head == f"line,{axis},value,minimum,maximum"
    return found


def line(**fields: Any) -> dict[str, Any]:
    return {"name": "train", "colour": 0, "x": [1, 2, 3], "y": [0.5, None, 0.25], **fields}


def test_each_point_is_a_row_with_its_range() -> None:
    assert rows(line(low=[0.1, None, 0.2], high=[0.9, None, 0.3])) == [
        "train,1,0.5,0.1,0.9",
        "train,2,,,",
        "train,3,0.25,0.2,0.3",
    ]


def test_what_is_no_number_is_named_at_its_step() -> None:
    odd = [{"x": 2, "name": "NaN"}, {"x": 2.5, "name": "-Infinity"}]
    found = rows(line(nonFinite=odd))
    assert found[1:3] == ["train,2,NaN,NaN,NaN", "train,2.5,-Infinity,-Infinity,-Infinity"]


def test_a_point_of_a_pr_curve_has_its_threshold() -> None:
    lines = [line(x=[0, 1], y=[1, 0.5], thresholds=[0.9, 0]), line(x=[1], y=[1])]
    (text,) = called("charts/chartFiles.ts", "toCsv", [[lines, "recall"]])
    assert text.splitlines() == [
        "line,recall,value,minimum,maximum,threshold",
        "train,0,1,1,1,0.9",
        "train,1,0.5,0.5,0.5,0",
        "train,1,1,1,1,",
    ]


def test_a_name_is_never_a_formula_or_a_second_cell() -> None:
    assert rows(line(name='=HYPERLINK("x")', x=[1], y=[1])) == ['"\'=HYPERLINK(""x"")",1,1,1,1']
    assert rows(line(name="a,b", x=[1], y=[-1])) == ['"a,b",1,-1,-1,-1']
