"""Tests the jobs that `submit --grid` makes: their values and tags, and what keeps them out of each other's way."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from history_jobs import job_id, whole

from howdah.cli import grid as cli_grid
from howdah.cli.grid import table
from howdah.cli.submit import submit
from howdah.client import grid
from howdah.client.annotated_jobs import keep_tags, with_annotations
from howdah.client.job_list import ListedJob
from howdah.engines.local.engine import LocalEngine
from howdah.errors import NotPermitted, SpecError
from howdah.spec import JobReport, JobSpec, Output, Role, State, uris
from howdah.spec.job import Board, Checkpoint, Save

PLAN = SimpleNamespace(job=SimpleNamespace(job=SimpleNamespace(tags=("a=1",))))


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
    grid.check([job("a", "m1", "c1"), job("b", "m2", "c2")], {"lr": ["1", "2"]}, ["lr"])
    grid.check([job("a", "m1")], {"lr": ["1"]}, ["lr"])


def test_equal_jobs_are_refused() -> None:
    with pytest.raises(SpecError, match=r"^--grid: makes the same job twice: .* write \$\{lr\} into the job"):
        grid.check([job("a"), job("a")], {"lr": ["1", "2"], "seed": ["1"]}, ["lr", "seed"])
    with pytest.raises(SpecError, match=r"^--grid: makes the same job twice: give each name different values$"):
        grid.check([job("a"), job("a")], {"roles.worker.replicas": ["1", "1"]}, [])


def test_jobs_that_write_to_the_same_place_are_refused() -> None:
    jobs = [job("a", "m", "c"), job("b", "m", "c"), job("c", "n", "c"), job("d", "n", "c")]
    with pytest.raises(SpecError) as refused:
        grid.check(jobs, {"a": ["1", "2"], "b": ["3", "4"], "roles.worker.replicas": ["1", "2"]}, ["a", "b"])
    problem = "is the same for several jobs of the grid: write ${a} and ${b} into it"
    assert list(map(str, refused.value.mistakes)) == [f"outputs.0.path: {problem}", f"checkpoint.path: {problem}"]
    grid.check(
        [replace(jobs[0], checkpoint=Checkpoint()), replace(jobs[2], checkpoint=Checkpoint())],
        {"a": ["1", "2"]},
        ["a"],
    )


def test_names_that_no_job_can_contain_are_not_recommended() -> None:
    with pytest.raises(SpecError, match=r"grid: vary its path, too, by a variable under `vars`$"):
        grid.check([job("a", "m"), job("b", "m")], {"roles.worker.replicas": ["1", "2"]}, [])


def test_snapshots_and_boards_are_places_of_one_job() -> None:
    def saving(command: str, board: str) -> JobSpec:
        output = Output(f"m{command}", source="model", save=Save(to="snapshots/"))
        return JobSpec({"worker": Role(command)}, outputs=(output,), board=Board(path=board))

    with pytest.raises(SpecError) as refused:
        grid.check([saving("1", "curves"), saving("2", "curves")], {"a": ["1", "2"]}, ["a"])
    assert [mistake.place for mistake in refused.value.mistakes] == ["outputs.0.save.to", "board.path"]
    with pytest.raises(SpecError) as refused:
        grid.check([saving("1", "curves/{job}"), saving("2", "curves/{job}")], {"a": ["1", "2"]}, ["a"])
    assert [mistake.place for mistake in refused.value.mistakes] == ["outputs.0.save.to"]


def staged(command: str, output: str = "", checkpoint: str = "", board: str = "") -> JobSpec:
    return replace(job(command, output, checkpoint), board=Board(path=board))


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        (staged("1", "file:///w/m/a"), staged("2", "file:///w/m/a"), "outputs.0.path"),
        (staged("1", "file:///w/m/a"), staged("2", "file:///w/m/a/b"), "outputs.0.path"),
        (staged("1", "file:///w/m/a"), staged("2", "file:///w/m/a.saved"), "outputs.0.path"),
        (staged("1", "hdfs://n/m/a"), staged("2", "", "hdfs://n/m"), "outputs.0.path"),
        (staged("1", "", "file:///w/c"), staged("2", "", "file:///w/c/"), "checkpoint.path"),
        (staged("1", "", "", "file:///w/b"), staged("2", "", "", "file:///w/b/c"), "board.path"),
    ],
)
def test_a_place_under_another_name_is_the_same_place(one: JobSpec, other: JobSpec, place: str) -> None:
    with pytest.raises(SpecError, match=f"^{place}: is .*, which is, holds or lies in .* of another job of the grid"):
        grid.check_places([one, other], "")


def test_a_link_is_the_place_to_which_it_leads(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    jobs = [staged(name, "", uris.of_local(tmp_path / name)) for name in "ab"]
    with pytest.raises(SpecError, match=r"^checkpoint\.path: "):
        grid.check_places(jobs, "")


def test_a_job_may_use_one_place_twice_and_a_thousand_have_their_own() -> None:
    jobs = [
        staged(str(number), f"file:///w/m/{number}", f"file:///w/c/{number}", f"file:///w/c/{number}")
        for number in range(grid.MAX_JOBS)
    ]
    began = time.monotonic()
    grid.check_places([replace(each, name=str(number)) for number, each in enumerate(jobs)], "")
    assert time.monotonic() - began < 10
    grid.check_places([staged(name, "", "", "file:///w/b/%7Bjob%7D") for name in "ab"], "")


def test_a_grid_with_one_place_twice_is_refused_before_the_first_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(
        "vars: {x: a}\nroles: {worker: {command: 'echo ${x}'}}\ncheckpoint: {path: 'c/${x}'}\n"
    )
    command = ("--output", "m/${x}#model", "--", "sh", "-c", "echo ${x}")
    for values, words, place in (
        ("a,./a", command, "outputs.0.path"),
        ("a,a/b", command, "outputs.0.path"),
        ("a,a/", ("job.yaml",), "checkpoint.path"),
        ("a,a/b", ("job.yaml",), "checkpoint.path"),
    ):
        done = CliRunner().invoke(submit, ["--on", "local", "--grid", f"x={values}", *words])
        assert isinstance(done.exception, SpecError), (values, words, done.output, done.exception)
        assert [mistake.place for mistake in done.exception.mistakes] == [place]
        assert not (tmp_path / "home" / "jobs").exists()


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
    many = [f"tag-{number}" for number in range(30)]
    keep_tags(engine, job_id(1), many)
    (listed,) = with_annotations([ListedJob(engine.describe(job_id(1))[0])])
    assert listed.report.tags == tuple(many)


def test_a_tag_that_is_not_kept_is_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise NotPermitted("it belongs to eve")

    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    monkeypatch.setattr(cli_grid, "_prepare_jobs", lambda *_: [({}, SimpleNamespace(engine=None, plan=PLAN))] * 2)
    monkeypatch.setattr(cli_grid, "submit_or_exit", lambda *_: "local-1")
    monkeypatch.setattr(cli_grid, "tell_id", lambda *_: None)
    monkeypatch.setattr(cli_grid, "keep_tags", lambda *_: None)
    cli_grid.submit_grid(["a=1,2"], False, False, False, {"stdin": False})
    assert "2 jobs with the tag grid-" in capsys.readouterr().err
    monkeypatch.setattr(cli_grid, "keep_tags", refuse)
    cli_grid.submit_grid(["a=1,2"], False, False, False, {"stdin": False})
    said = capsys.readouterr().err
    assert "howdah: local-1: it belongs to eve" in said
    assert "howdah: 2 of 2 jobs were submitted; not all are found by a tag" in said
    assert "--tag" not in said
