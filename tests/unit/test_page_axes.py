"""Tests what the axes of the page's charts show: a part that the address names, few points, values without outliers."""

from __future__ import annotations

from typing import Any

from page_script import called


def horizontal(points: list[float], zoom: list[float] | None = None, log: bool = True) -> list[float]:
    """The ends of the horizontal axis of a chart with these points."""
    ends = [points[0], points[-1]]
    wish = {"zoom": zoom, "logX": log, "around": 1} if zoom else {"logX": log, "around": 1}
    (found,) = called("charts/plotOptions.ts", "horizontalRange", [[points, ends, wish]])
    return list(found)


def test_a_logarithmic_axis_begins_above_zero() -> None:
    assert horizontal([1, 10, 50], [0, 20]) == [1, 20], "uPlot seeks ticks from 0 without end"
    assert horizontal([1, 10, 50], [-5, -1]) == [1, 50]
    assert horizontal([1, 10, 50], [0, 0.5]) == [1, 50]
    assert horizontal([1, 10, 50], [2, 20]) == [2, 20]
    assert horizontal([1]) == [0.5, 2], "a single point"
    assert horizontal([1], [0, 20]) == [1, 20]


def test_another_axis_shows_what_is_asked_for() -> None:
    assert horizontal([0, 10], [-1, 5], log=False) == [-1, 5]
    assert horizontal([0, 10], log=False) == [0, 10]
    assert horizontal([7], log=False) == [6, 8]


def zoom_of(text: str) -> Any:
    (settings,) = called("trainingCurves/chartSettings.ts", "readChartSettings", [{"map_of": [["zoom", text]]}])
    return settings.get("zoom")


def test_the_address_names_a_part_with_two_ends() -> None:
    assert zoom_of("0,20") == [0, 20]
    assert [zoom_of(text) for text in ("20,0", "0,Infinity", "-Infinity,1", "1", "a,b")] == [None] * 5


def test_outliers_are_those_of_the_part_that_is_shown() -> None:
    line = {"name": "loss", "colour": 0, "x": [*range(200)], "y": [*([1000.0] * 100), *([1.0] * 99), 5.0]}
    found = called("charts/plotOptions.ts", "rangeWithoutOutliers", [[[line], [100, 199]], [[line]]])
    assert found == [[1.0, 1.0], [1.0, 1000.0]]
