"""Tests that the interpreter which a job names by its path is the one that runs as `python` and `python3`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from howdah.client.submit import prepare
from howdah.errors import SpecError
from howdah.spec import Environment, JobSpec, Role, StagedJob
from howdah.staging.archive_extraction import unpack


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stages a job for this machine, of whose environment these are keys; its files lie in tmp_path."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "howdah"))

    def stage(files: tuple[str, ...] = (), **environment: str) -> StagedJob:
        job = JobSpec({"worker": Role("true")}, files=files, environment=Environment(**environment))
        return prepare(job, tmp_path, {"engine": "local"}, lambda notice: None).plan.job

    return stage


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says} $0 $*\n")
    path.chmod(0o755)
    return path


def said_by(staged: StagedJob, name: str, directory: Path) -> str:
    """What a program prints that calls its interpreter by `name`, where the archives are unpacked."""
    for file in staged.files:
        unpack(Path(file.source), directory / file.name)
    found = [str(directory / place / name) for place in staged.program_path if (directory / place / name).exists()]
    return subprocess.run([found[0], "x y"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ["python", "python3"])
def test_another_name_than_python_is_what_runs(staged: Any, tmp_path: Path, name: str) -> None:
    wanted = program(tmp_path / "my bin/python3.11x", "wanted")
    program(tmp_path / "my bin/python3", "another")
    for environment in (
        {"python": str(wanted)},
        {"python": "my bin/python3.11x"},
        {"python": str(wanted), "image": "i"},
    ):
        job = staged(**environment)
        assert said_by(job, name, Path(tempfile.mkdtemp(dir=tmp_path))) == f"wanted {wanted} x y"
        assert job.program_path[1:] == (str(wanted.parent),)


def test_a_virtual_environment_is_named_by_its_directory(staged: Any, tmp_path: Path) -> None:
    python = program(tmp_path / "ve/bin/python", "wanted")
    (tmp_path / "ve/bin/python3").symlink_to("python")
    for named in ("./ve", str(tmp_path / "ve"), "ve/bin/python", "./ve/bin/python3"):
        job = staged(python=named)
        assert (job.program_path, job.files) == ((str(python.parent),), ())
    assert staged(files=("ve",), python="./ve").program_path == ("ve/bin",)  # the copy that the job brings along


@pytest.mark.parametrize("named", ["./ve/bin", "{directory}/ve/bin", "ve/bin/notes", "./nothing"])
def test_what_is_no_interpreter_is_refused(staged: Any, tmp_path: Path, named: str) -> None:
    program(tmp_path / "ve/bin/python", "")
    (tmp_path / "ve/bin/notes").write_text("")
    named = named.format(directory=tmp_path)
    with pytest.raises(SpecError, match=rf"environment\.python: '{named}': no such interpreter"):
        staged(python=named)


def test_in_an_image_its_own_python_is_meant(staged: Any) -> None:
    job = staged(python="/only/in/the/image/python3", image="i")
    assert (job.program_path, job.files) == (("/only/in/the/image",), ())


def test_a_real_environment_keeps_its_own_packages(staged: Any, tmp_path: Path) -> None:
    """A script runs it by its own path, beside which its pyvenv.cfg lies; a link would be another Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "ve")], check=True)
    (tmp_path / "ve/bin/train").symlink_to(os.path.realpath(sys.executable))
    job = staged(python="./ve/bin/train")
    for file in job.files:
        unpack(Path(file.source), tmp_path / "work" / file.name)
    python = tmp_path / "work" / job.program_path[0] / "python"
    said = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(tmp_path / "ve")
