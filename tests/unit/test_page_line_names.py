"""Tests that the page names runs and jobs by what differs between them."""

from __future__ import annotations

from typing import Any

import pytest
from page_script import FRONTEND, called, run_node

NAMES = """
const fs = require("fs");
const [compiler, source] = process.argv.slice(1);
const options = { compilerOptions: { module: 1, target: 9 } };
const made = require(compiler).transpileModule(fs.readFileSync(source, "utf8"), options);
const exported = {};
new Function("exports", made.outputText)(exported);
console.log(JSON.stringify([...exported.describeJobs(JSON.parse(fs.readFileSync(0, "utf8"))).values()]));
"""


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["exp/lr0.1/train", "exp/lr0.1/eval"], ["train", "eval"]),
        (["exp/lr0.1/train", "exp/lr0.3/train"], ["lr0.1", "lr0.3"]),
        (["exp/a/train", "exp/train"], ["a/train", "train"]),
        (["exp/a", "exp/a/b"], ["a", "a/b"]),
        (["train"], ["train"]),
        (["a/b", "a/b"], ["a/b", "a/b"]),
        ([], []),
    ],
)
def test_directories_that_all_runs_share_are_left_out(names: list[str], shown: list[str]) -> None:
    assert called("trainingCurves/lineNames.ts", "differingParts", [[names]]) == [shown]


def job(identity: str, name: str = "digits", **params: Any) -> dict[str, Any]:
    return {"id": identity, "name": name, "params": params}


@pytest.mark.parametrize(
    ("jobs", "shown"),
    [
        ([job("1", lr=0.1, batch=32), job("2", lr=0.3, batch=32)], ["lr=0.1", "lr=0.3"]),
        ([job("1", "base", lr=0.1), job("2", "wide", lr=0.3)], ["base lr=0.1", "wide lr=0.3"]),
        ([job("1"), job("2")], ["digits 1", "digits 2"]),
        ([job("1", lr=0.1), job("2")], ["lr=0.1", "digits"]),
    ],
)
def test_jobs_are_named_by_name_and_parameters(jobs: list[dict[str, Any]], shown: list[str]) -> None:
    assert run_node(NAMES, [str(FRONTEND / "src/trainingCurves/lineNames.ts")], jobs) == shown
