"""Tests the jobs that `submit --grid` makes: their values and tags, and what keeps them out of each other's way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from history_jobs import job_id, whole

from howdah.cli.grid import table
from howdah.client import grid
from howdah.client.annotated_jobs import keep_tags, with_annotations
from howdah.client.job_list import ListedJob
from howdah.engines.local.engine import LocalEngine
from howdah.errors import SpecError
from howdah.spec import JobReport, JobSpec, Output, Role, State, uris
from howdah.spec.job import Checkpoint


def job(command: str, output: str = "", checkpoint: str = "") -> JobSpec:
    outputs = (Output(path=output, source="model"),) if output else ()
    return JobSpec(roles={"worker": Role(command)}, outputs=outputs, checkpoint=Checkpoint(path=checkpoint))


def test_values() -> None:
    assert grid.parse(["lr=0.1,0.01", "seed=-1..1", "lr=3"]) == {"lr": ["0.1", "0.01", "3"], "seed": ["-1", "0", "1"]}
    assert grid.parse(["a=x=1,y..z"]) == {"a": ["x=1", "y..z"]}


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["lr"], "is 'lr', must be NAME=VALUE,VALUE or NAME=FIRST..LAST"),
        (["lr=1,"], "is 'lr=1,', must be"),
        (["=1"], "is '=1', must be"),
        (["n=4..1"], "a range goes up"),
        (["n=0..999999999"], "a range goes up"),
        (["a=1..100", "b=1..11"], "has 1100 combinations, at most 1000 jobs"),
    ],
)
def test_what_is_no_grid(texts: list[str], problem: str) -> None:
    with pytest.raises(SpecError, match=f"^--grid: .*{problem}"):
        grid.parse(texts)


def test_each_combination_is_a_job() -> None:
    assert list(grid.combinations({"a": ["1", "2"], "b": ["x", "y"]})) == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


def test_tags_are_possible_ones() -> None:
    values = {"lr": "0.1", "name": "größe", "long": "x" * 100}
    assert grid.tags("grid-12", values) == ("grid-12", "lr=0.1")


def test_jobs_that_differ_are_all_right() -> None:
    grid.check([job("a", "m1", "c1"), job("b", "m2", "c2")], {"lr": ["1", "2"]})
    grid.check([job("a", "m1")], {"lr": ["1"]})


def test_equal_jobs_are_refused() -> None:
    with pytest.raises(SpecError, match=r"^--grid: makes the same job twice: .* write \$\{lr\} into the job"):
        grid.check([job("a"), job("a")], {"lr": ["1", "2"], "seed": ["1"]})


def test_jobs_that_write_to_the_same_place_are_refused() -> None:
    jobs = [job("a", "m", "c"), job("b", "m", "c"), job("c", "n", "c"), job("d", "n", "c")]
    with pytest.raises(SpecError) as refused:
        grid.check(jobs, {"a": ["1", "2"], "b": ["3", "4"]})
    problem = "is the same for several jobs of the grid: write ${a} and ${b} into it"
    assert list(map(str, refused.value.mistakes)) == [f"outputs.0.path: {problem}", f"checkpoint.path: {problem}"]
    grid.check(
        [replace(jobs[0], checkpoint=Checkpoint()), replace(jobs[2], checkpoint=Checkpoint())], {"a": ["1", "2"]}
    )


def test_an_empty_table() -> None:
    assert table([]) == [("Id", "State", "Took")]


class Untagged(LocalEngine):
    """An engine whose reports have no tags, as YARN's."""

    def __init__(self, home: Path) -> None:
        self.directory = uris.of_local(home / "jobs" / job_id(1))

    def describe(self, job_id: str | None = None) -> list[JobReport]:
        return [JobReport(job_id or "", "train", State.RUNNING, "yarn", "eve", directory=self.directory)]


def test_tags_are_kept_where_the_engine_does_not_know_them(tmp_path: Path) -> None:
    whole(tmp_path / "home", 1)
    engine = Untagged(tmp_path / "home")
    keep_tags(engine, job_id(1), ["grid-12", "lr=0.1"])
    (listed,) = with_annotations([ListedJob(engine.describe(job_id(1))[0])])
    assert listed.report.tags == ("grid-12", "lr=0.1")
