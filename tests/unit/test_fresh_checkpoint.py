"""Tests putting a checkpoint aside: it is renamed, comes back if the submission fails, and nothing else is moved."""

from __future__ import annotations

import errno
import json
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.client.fresh_checkpoint import begin_fresh
from howdah.client.submit import prepare
from howdah.errors import SpecError
from howdah.spec import Board, Checkpoint, Environment, Input, JobSpec, Output, Plan, Role, StagedJob, uris
from howdah.spec.codec import decode, encode, to_json
from howdah.staging.stage import stage


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "ck").mkdir()
    (tmp_path / "ck/step-1").write_text("trained")
    return tmp_path


def plan(checkpoint: Path) -> Plan:
    job = JobSpec({"worker": Role("true")}, checkpoint=Checkpoint(uris.of_local(checkpoint)))
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


@pytest.mark.parametrize("fails", [False, True])
def test_of_a_link_what_it_leads_to_is_kept_there_and_the_link_stays(directory: Path, fails: bool) -> None:
    scratch, told = directory / "scratch", list[str]()
    scratch.mkdir()
    (directory / "ck").rename(scratch / "st")
    (scratch / "st").chmod(0o2770)
    (directory / "ck").symlink_to(scratch / "st")
    with pytest.raises(KeyboardInterrupt) if fails else nullcontext(), begin_fresh(plan(directory / "ck"), told.append):
        assert (directory / "ck").is_symlink()
        assert list((directory / "ck").iterdir()) == []
        assert (scratch / "st").stat().st_mode & 0o7777 == 0o2770
        if fails:
            raise KeyboardInterrupt
    assert [path.name for path in directory.glob("ck*")] == ["ck"]
    kept = [path for path in scratch.glob("*/step-1") if path.read_text() == "trained"]
    if fails:
        assert kept == [scratch / "st/step-1"]
    else:
        assert told == [f"the checkpoint of earlier jobs is kept at {kept[0].parent}"]
        assert kept[0].parent.name.startswith("st.before-")


@pytest.mark.parametrize("fails", [False, True])
def test_where_that_cannot_be_renamed_the_link_is(
    directory: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    scratch = directory / "scratch"
    (directory / "ck").rename(scratch)
    (directory / "ck").symlink_to(scratch)
    rename = os.rename

    def rename_no_mount(old: str, new: str) -> None:
        if old == str(scratch):
            raise OSError(errno.EBUSY, "Device or resource busy", old)
        rename(old, new)

    monkeypatch.setattr(os, "rename", rename_no_mount)
    with pytest.raises(KeyboardInterrupt) if fails else nullcontext(), begin_fresh(plan(directory / "ck"), print):
        assert not (directory / "ck").exists()
        if fails:
            raise KeyboardInterrupt
    kept = next(directory.glob("ck*"))
    assert (kept.is_symlink(), (kept / "step-1").read_text(), kept.name == "ck") == (True, "trained", fails)


def test_without_one_there_is_nothing_to_do(directory: Path) -> None:
    with begin_fresh(plan(directory / "none"), lambda _: pytest.fail("nothing is kept")):
        pass
    with pytest.raises(SpecError, match=r"--fresh: the job has no checkpoint\.path"):
        prepare(JobSpec({"worker": Role("true")}), directory, {}, lambda _: None, fresh=True)


@pytest.fixture
def project(directory: Path) -> Path:
    """Beside a checkpoint a project, with code and checkpoints, of whom works in another directory."""
    for name in ("proj/train.py", "proj/bin/train", "proj/key", "proj/requirements.txt", "proj/step-1", "data/a.csv"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("")
    (directory / "proj/bin/train").chmod(0o755)
    return directory


@pytest.mark.parametrize(
    ("checkpoint", "job", "named"),
    [
        ("", {}, "holds the job file.s directory"),
        ("work", {}, "is the current directory"),
        ("work/..", {}, "holds the job file.s directory"),
        ("proj", {}, "is the job file's directory"),
        ("proj/bin", {"files": ("bin/train",)}, r"holds files\.0"),
        ("proj/bin", {"files": ("bin",)}, r"is files\.0"),
        ("proj/bin", {"secrets": {"KEY": "file:{directory}/proj/bin/train"}}, r"holds secrets\.KEY"),
        ("proj/bin", {"environment": Environment(requirements="bin/train")}, r"holds environment\.requirements"),
        ("proj/bin", {"environment": Environment(python="{directory}/proj/bin/train")}, r"holds environment\.python"),
        ("proj/bin", {"roles": {"worker": Role("{directory}/proj/bin/train --steps 3")}}, "holds roles.worker.command"),
        ("ck", {"roles": {"worker": Role(("python", "{directory}/ck/new/train.py"))}}, "holds roles.worker.command"),
        ("data", {"inputs": (Input("{directory}/data/a.csv"),)}, r"inputs\.0\.path"),
        ("ck", {"outputs": (Output("{directory}/ck/out"),)}, r"holds outputs\.0\.path"),
        ("howdah", {}, "is where howdah keeps its jobs"),
    ],
)
def test_what_holds_other_things_stays(project: Path, checkpoint: str, job: dict[str, Any], named: str) -> None:
    filled = json.loads(
        to_json(encode(JobSpec(**{"roles": {"worker": Role("true")}, **job}))).replace("{directory}", str(project))
    )
    spec = decode(JobSpec, filled)
    with pytest.raises(SpecError, match=rf"--fresh: would replace .*{named}") as error:
        stage(
            replace(spec, checkpoint=Checkpoint(str(project / checkpoint))),
            project / "proj",
            uris.of_local(project / "howdah"),
            fresh=True,
        )
    assert error.value.exit_code == SpecError.exit_code, "a mistake of the command line, and no missing file"


@pytest.mark.parametrize("path", ["ck", "proj/bin", "proj/none"])
def test_what_a_command_does_to_a_checkpoint_keeps_it_from_nothing(project: Path, path: str) -> None:
    """Nor that it lies in the job's code, or has the job's event files."""
    place = project / path
    command = f"python train.py --to {place} --resume {place}/last.pt --log {place}/train.log"
    job = JobSpec(
        {"worker": Role(command)}, files=(".",), checkpoint=Checkpoint(str(place)), board=Board(f"{place}/events")
    )
    stage(job, project / "proj", uris.of_local(project / "howdah"), fresh=True)
