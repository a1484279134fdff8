"""Tests which scripts of a command are known to be missing before the job is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.client.missing_scripts import missing_scripts
from howdah.spec import Environment, Input, JobSpec, Role, StagedFile, StagedJob


def found(command: str | tuple[str, ...], base: Path, **changes: object) -> list[str]:
    files = (StagedFile("train.py", "file:///x/train.py"), StagedFile("src", "file:///x/src.tar", "archive"))
    job = JobSpec({"worker": Role(command)}, **changes)  # type: ignore[arg-type]
    staged = StagedJob(job, "file:///home", files=files)
    return [mistake.problem for mistake in missing_scripts(job, staged, base)]


@pytest.mark.parametrize(
    "command",
    [
        ("python", "nosuch.py"),
        "python3 -u nosuch.py --lr 0.1",
        ("/opt/env/bin/python3.11", "-X", "dev", "./nosuch.py"),
        "bash -e nosuch.sh",
        ("./nosuch.sh",),
        "lib/nosuch.py",
    ],
)
def test_a_script_that_the_job_does_not_bring(command: str | tuple[str, ...], tmp_path: Path) -> None:
    (text,) = found(command, tmp_path)
    assert "which the job does not bring: there is no such file in" in text


def test_a_script_that_is_here_and_not_among_the_files(tmp_path: Path) -> None:
    (tmp_path / "other.py").touch()
    assert found("python other.py", tmp_path) == ["runs 'other.py', which the job does not bring: add it to `files`"]


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python ./train.py",
        "python src/main.py",
        "python -m nosuch",
        "python -c 'import x'",
        "python -Im nosuch",
        "python /opt/nosuch.py",
        "python ../nosuch.py",
        "bash -c nosuch.sh",
        "bash -lc 'nosuch.sh'",
        "bash -o pipefail nosuch.sh",
        "bash -O extglob nosuch.sh",
        "cd src && python nosuch.py",
        "python $SCRIPT",
        "python 'half",
        "torchrun nosuch.py",
        "nosuch",
        "python",
        "python -uW ignore train.py",
        "python -uX dev train.py",
        "python - x.py",
        "bash +e run.sh",
        "bash ls",
        "",
        (),
        "python data/nosuch.py",
    ],
)
def test_what_is_there_or_not_certain(command: str | tuple[str, ...], tmp_path: Path) -> None:
    assert found(command, tmp_path, inputs=(Input("hdfs://a/b", to="./data"),)) == []


def test_files_whose_names_are_not_known_may_have_any_script(tmp_path: Path) -> None:
    spread = (StagedFile("code", "file:///x/code.tar", "spread"),)
    job = JobSpec({"worker": Role("python nosuch.py")})
    assert list(missing_scripts(job, StagedJob(job, "file:///home", files=spread), tmp_path)) == []
    assert found("python nosuch.py", tmp_path, inputs=(Input("hdfs://a/b", to="."),)) == []
    assert found("python nosuch.py", tmp_path, environment=Environment(image="python:3.12")) == []
