"""Tests which tasks the page draws beside the band of all tasks, and what the band holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from page_script import FRONTEND, called, run_node

STEPS = 40
PROGRAM = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const options = { compilerOptions: { module: 1, target: 9 } };
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), options);
const exported = {};
new Function("exports", made.outputText)(exported);
const lines = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify(exported.toBand(lines, (count) => `median of ${count}`)));
"""


def band(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    found = run_node(PROGRAM, [str(FRONTEND / "src/trainingCurves/rankBand.ts")], json.loads(json.dumps(lines)))
    return list(found)


def line(rank: int, values: list[Any], **fields: Any) -> dict[str, Any]:
    return {
        "name": f"worker:{rank}",
        "id": f"{rank}",
        "colour": rank,
        "x": [*range(len(values))],
        "y": values,
        **fields,
    }


def level(rank: int, value: float, **fields: Any) -> dict[str, Any]:
    return line(rank, [value] * STEPS, **fields)


def test_the_band_holds_the_usual_and_the_odd_one_is_a_line() -> None:
    found = band(*(level(rank, 1 + rank / 100) for rank in range(9)), level(9, 3.0))
    assert [each["name"] for each in found] == ["median of 10", "worker:9"]
    assert found[0]["y"][0] == 1.045, "the median of all"
    assert (found[0]["low"][0], found[0]["high"][0]) == (1.0, 1.08), "the range without the odd one"


def test_one_that_is_slow_only_at_the_end_is_odd_and_a_single_spike_is_not() -> None:
    late = line(8, [1.0] * 30 + [2.0] * 10)
    spike = line(9, [1.0] * 20 + [9.0] + [1.0] * 19)
    found = band(*(level(rank, 1.0) for rank in range(8)), late, spike)
    assert [each["name"] for each in found] == ["median of 10", "worker:8"]
    assert max(found[0]["high"]) == 9.0, "the spike is in the band"


def test_what_the_reader_pins_stays_a_line() -> None:
    found = band(*(level(rank, 1.0) for rank in range(8)), level(8, 1.0, pinned=True))
    assert [each["name"] for each in found] == ["median of 9", "worker:8"]


def test_two_lines_and_lines_of_many_steps() -> None:
    two = [level(0, 1.0), level(1, 2.0)]
    assert band(*two) == two
    long = [line(rank, [float(rank)] * 5000) for rank in range(3)]
    found = band(*long)
    assert len(found[0]["x"]) == 400
    assert (found[0]["low"][7], found[0]["y"][7], found[0]["high"][7]) == (0.0, 1.0, 2.0)


def staggered(points: int) -> list[dict[str, Any]]:
    """Eight tasks, each of which reports at times of its own; all but the last one at about 1."""
    return [
        line(rank, [100.0 if rank == 7 else 1 + rank / 100] * points, x=[10 * at + rank for at in range(points)])
        for rank in range(8)
    ]


@pytest.mark.parametrize("points", [50, 150])
def test_tasks_that_report_at_times_of_their_own_have_one_median(points: int) -> None:
    found = band(*staggered(points))
    assert [each["name"] for each in found] == ["median of 8", "worker:7"]
    usual = found[0]
    assert all(0.99 < value < 1.07 for key in ("low", "y", "high") for value in usual[key]), "no gap and nothing odd"
    assert all(high - low > 0.02 for low, high in zip(usual["low"][10:-10], usual["high"][10:-10], strict=True))


def test_a_task_whose_values_are_no_numbers_any_more_is_odd_with_its_marks() -> None:
    marks = [{"x": step, "name": "NaN"} for step in range(20, STEPS)]
    fails = line(8, [1.0] * 20 + [None] * 20, nonFinite=marks, dash=2)
    ends = line(9, [1.0] * 20)
    found = band(*(level(rank, 1.0) for rank in range(8)), fails, ends)
    assert found[1:] == [fails], "one that has ended is not odd"


def test_the_bands_of_several_jobs_have_their_names() -> None:
    tasks = [f"worker:{rank}" for rank in range(3)]
    told = [
        {"job": job, "task": task, "name": "loss", "points": [[1, 2, 2, 2]], "steps": [1]}
        for job in ("job-1", "job-2")
        for task in tasks
    ]
    members = [
        {"id": f"{job} told {task}", "label": f"a · b · {task}", "colour": 0, "dash": 0, "job": job}
        for job in ("job-1", "job-2")
        for task in tasks
    ]
    names = {"map_of": [["job-1", "a · b"]]}
    wish = {"axis": "step", "smoothing": 0, "pinned": [], "band": True}
    (found,) = called("trainingCurves/programMetrics.ts", "bandedMetricLines", [[told, "loss", members, wish, names]])
    assert [each["name"] for each in found] == [
        "{count} 个任务的中位数 · a · b",
        "{count} 个任务的中位数 · job-2",
    ]
