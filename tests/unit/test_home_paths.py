"""Tests the paths of a job file that begin with the user's home."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.home_paths import expand_home
from howdah.errors import SpecError
from howdah.spec import Environment, Input, JobSpec, Output, Role
from howdah.spec.job import Board, Checkpoint


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path))
    return str(tmp_path)


def test_of_a_job_of_this_machine_all_paths_are_expanded(home: str) -> None:
    job = JobSpec(
        {"worker": Role("x", files=("~/a.py",), archives=("~/b.zip#b",))},
        files=("~/c.py#d.py", "e~", "~f"),
        environment=Environment(requirements="~/r.txt"),
        inputs=(Input("~/data/*.csv"), Input(("~", "x/~/y"))),
        outputs=(Output("~/out"),),
        checkpoint=Checkpoint("~/ck"),
        board=Board("~/board/{job}"),
    )
    found = expand_home(job, one_machine=True)
    assert (found.roles["worker"].files, found.roles["worker"].archives) == ((f"{home}/a.py",), (f"{home}/b.zip#b",))
    assert found.files == (f"{home}/c.py#d.py", "e~", "~f")
    assert found.environment.requirements == f"{home}/r.txt"
    assert [each.path for each in found.inputs] == [f"{home}/data/*.csv", (home, "x/~/y")]
    assert (found.outputs[0].path, found.checkpoint.path) == (f"{home}/out", f"{home}/ck")
    assert found.board.path == f"{home}/board/{{job}}"


def test_on_a_cluster_only_what_is_sent_along_may_be_in_it(home: str) -> None:
    assert expand_home(JobSpec({}, files=("~/a.py",)), one_machine=False).files == (f"{home}/a.py",)
    with pytest.raises(SpecError) as found:
        expand_home(JobSpec({}, inputs=(Input("~/x"),), outputs=(Output("~/y"),)), one_machine=False)
    assert [mistake.place for mistake in found.value.mistakes] == ["inputs.0.path", "outputs.0.path"]
