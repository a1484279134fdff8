"""Tests environments from a project's own files: pyproject.toml and uv.lock, by uv itself. Nothing is downloaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from howdah.errors import SpecError
from howdah.staging import project_files
from howdah.staging.project_files import find_uv
from howdah.staging.virtual_environments import ensure_environment, environment_key, installed_packages

BACKEND = """
import os, zipfile
NAME = os.path.basename(os.getcwd())
FACTS = {"METADATA": f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: 1\\n",
         "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n", "RECORD": ""}
def build_wheel(directory, *_, files=(f"{NAME}.py",)):
    name = f"{NAME}-1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        for file in files: wheel.writestr(os.path.basename(file), open(file).read())
        for file, text in FACTS.items(): wheel.writestr(f"{NAME}-1.dist-info/" + file, text)
    return name
def build_editable(directory, *_):
    pth = os.path.join(directory, f"{NAME}.pth")
    open(pth, "w").write(os.getcwd())
    return build_wheel(directory, files=(pth,))
"""
PROJECT = '[project]\nname = "{name}"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = [{needs}]\n'
SYSTEM = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
SOURCES = '[tool.uv.sources]\nhelper = {path = "lib/helper", editable = true}\n'


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "uv"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/")
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))


def _package(directory: Path, needs: str = "", more: str = "") -> Path:
    """Write a package of the directory's name, which builds itself and says of which version it is."""
    directory.mkdir(parents=True)
    (directory / "pyproject.toml").write_text(PROJECT.format(name=directory.name, needs=needs) + SYSTEM + more)
    (directory / "backend.py").write_text(BACKEND)
    (directory / f"{directory.name}.py").write_text("VERSION = 'old'\n")
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package with another one below it, which it needs."""
    project = _package(tmp_path / "trains", '"helper"', SOURCES)
    _package(project / "lib" / "helper")
    return project


def _lock(project: Path) -> None:
    subprocess.run([find_uv(), "lock", "--quiet"], cwd=project, check=True, timeout=60)


def _files(project: Path) -> dict[Path, bytes]:
    """Return all files but those that Python leaves where a package builds itself."""
    return {path: path.read_bytes() for path in project.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def _says(venv: Path) -> list[str]:
    program = "import helper, sys, trains; print(trains.VERSION, helper.VERSION, sys.prefix in helper.__file__)"
    command = [venv / "bin/python", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


@pytest.mark.parametrize("file", ["uv.lock", "pyproject.toml", "pyproject.toml without a lock"])
def test_a_project_is_installed_with_what_it_needs(project: Path, file: str) -> None:
    if "without" not in file:
        _lock(project)
    before = _files(project)
    requirements = project / file.partition(" ")[0]
    said: list[str] = []
    first, key = ensure_environment(requirements, said.append), environment_key(requirements)
    assert [line.partition(" for ")[2].partition(":")[0] for line in said] == [requirements.name]
    assert _says(first) == ["old", "old", "True"]
    assert installed_packages(first).items() >= {"trains": "1", "helper": "1"}.items()
    assert _files(project) == before, "what the user wrote"

    assert ensure_environment(requirements, said.append) == first
    assert len(said) == 1
    (project / "trains.py").write_text("VERSION = 'new'\n")
    assert environment_key(requirements) != key
    assert _says(ensure_environment(requirements, said.append)) == ["new", "old", "True"]
    assert _says(first) == ["old", "old", "True"]


def test_a_member_of_a_workspace_has_the_lock_of_the_workspace(tmp_path: Path) -> None:
    root = tmp_path / "root"
    member = _package(root / "trains", '"helper"', "[tool.uv.sources]\nhelper = {workspace = true}\n")
    _package(root / "helper")
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["trains", "helper"]\n')
    _lock(root)
    assert _says(ensure_environment(member / "pyproject.toml", lambda _: None)) == ["old", "old", "True"]


def test_a_lock_that_does_not_fit_its_project_is_refused(project: Path) -> None:
    _lock(project)
    _package(project / "lib" / "second")
    text = (project / "pyproject.toml").read_text().replace('"helper"', '"helper", "second"')
    (project / "pyproject.toml").write_text(f'{text}second = {{path = "lib/second"}}\n')
    with pytest.raises(SpecError, match=r"environment\.requirements: .*uv\.lock.*needs to be updated") as refused:
        ensure_environment(project / "uv.lock", lambda _: None)
    assert len(str(refused.value).splitlines()) == 1


def test_a_workspace_without_a_lock_is_told_to_make_one(project: Path) -> None:
    text = (project / "pyproject.toml").read_text().replace('path = "lib/helper", editable', "workspace")
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(SpecError, match="is part of a workspace that has no lock: run `uv lock`"):
        ensure_environment(project / "pyproject.toml", lambda _: None)


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("poetry.lock", "", "run `poetry export -o requirements.txt`"),
        ("pyproject.toml", "[tool.poetry.dependencies]\n", "run `poetry export -o requirements.txt`"),
        ("pdm.lock", "", "run `pdm export -o requirements.txt`"),
        ("Pipfile", "", "run `pipenv requirements > requirements.txt`"),
        ("setup.py", "", "run `echo . > requirements.txt`"),
        ("environment.yaml", "name: x\n", "write `conda: NAME` instead"),
    ],
)
def test_files_of_other_tools_are_answered_with_a_command(tmp_path: Path, name: str, text: str, advice: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(SpecError) as refused:
        ensure_environment(tmp_path / name, lambda _: None)
    assert advice in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_without_uv_the_way_out_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "find_uv", lambda: "")
    with pytest.raises(
        SpecError, match=r"uv, which is not here: install it .*`uv export --no-dev -o requirements\.txt`"
    ):
        ensure_environment(project / "pyproject.toml", lambda _: None)
