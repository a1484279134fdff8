"""Tests putting a checkpoint aside: it is renamed, comes back if the submission fails, and nothing else is moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.fresh_checkpoint import begin_fresh
from howdah.errors import SpecError
from howdah.spec import Checkpoint, JobSpec, Plan, Role, StagedJob, uris
from howdah.spec.job import Output


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck/step-1").write_text("trained")
    return tmp_path


def plan(checkpoint: Path | None, *outputs: Path) -> Plan:
    path = uris.of_local(checkpoint) if checkpoint else ""
    made = tuple(Output(uris.of_local(output)) for output in outputs)
    job = JobSpec({"worker": Role("true")}, checkpoint=Checkpoint(path), outputs=made)
    return Plan("local", StagedJob(job, "file:///home"))


def test_it_is_kept_beside(directory: Path) -> None:
    told: list[str] = []
    with begin_fresh(plan(directory / "ck"), told.append):
        assert not (directory / "ck").exists()
    (aside,) = directory.glob("ck.before-*")
    assert (aside / "step-1").read_text() == "trained"
    assert told == [f"the checkpoint of earlier jobs is kept at {aside}"]


def test_it_comes_back_if_the_submission_fails(directory: Path) -> None:
    def submit() -> None:
        with begin_fresh(plan(directory / "ck"), lambda _: None):
            (directory / "ck").mkdir()  # where the engine has put its lock, and taken it away
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit()
    assert [path.name for path in directory.glob("ck*")] == ["ck"]
    assert (directory / "ck/step-1").read_text() == "trained"


def test_without_one_there_is_nothing_to_do(directory: Path) -> None:
    with begin_fresh(plan(directory / "none"), lambda _: pytest.fail("nothing is kept")):
        pass
    with pytest.raises(SpecError, match=r"has no checkpoint\.path"), begin_fresh(plan(None), lambda _: None):
        pass


@pytest.mark.parametrize("path", ["", "work", "work/.."])
def test_what_holds_other_things_stays(directory: Path, path: str) -> None:
    with pytest.raises(SpecError, match="--fresh: would replace"), begin_fresh(plan(directory / path), lambda _: None):
        pass
    with (
        pytest.raises(SpecError, match=r"which holds outputs\.0"),
        begin_fresh(plan(directory / "ck", directory / "ck/out"), lambda _: None),
    ):
        pass
    assert (directory / "ck/step-1").exists()
