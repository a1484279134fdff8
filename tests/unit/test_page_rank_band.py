"""Tests which tasks the page draws beside the band of all tasks, and what the band holds."""

from __future__ import annotations

import json
from typing import Any

from page_script import FRONTEND, run_node

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


def line(rank: int, values: list[float], **fields: Any) -> dict[str, Any]:
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
