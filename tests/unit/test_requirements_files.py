"""Tests that an environment is another one when anything changes that its requirements file leads to."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from howdah.errors import SpecError
from howdah.staging.requirements_files import read_content
from howdah.staging.virtual_environments import ensure_environment, environment_path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with files that are included, and packages."""
    for name in (
        "nested/base.txt",
        "pins.txt",
        "pkg/setup.py",
        "pkg/src/a.py",
        "at@2/setup.py",
        "wheels/x-1-py3-none-any.whl",
        "x.tar.gz",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("-r nested/base.txt", "nested/base.txt"),
        ("-rnested/base.txt", "nested/base.txt"),
        ("--requirement nested/base.txt", "nested/base.txt"),
        ("--requirement=nested/base.txt  # all of ours", "nested/base.txt"),
        ("-c pins.txt", "pins.txt"),
        ("--constraint pins.txt", "pins.txt"),
        ("./pkg", "pkg/src/a.py"),
        ("pkg/", "pkg/setup.py"),
        ("./pkg[gpu]; python_version > '3'", "pkg/src/a.py"),
        ("-e ./pkg", "pkg/src/a.py"),
        ("--editable './pkg'", "pkg/src/a.py"),
        ("ours @ {uri}/pkg", "pkg/src/a.py"),
        ("file://{path}/x.tar.gz", "x.tar.gz"),
        ("x.tar.gz", "x.tar.gz"),
        ("{path}/wheels/x-1-py3-none-any.whl", "wheels/x-1-py3-none-any.whl"),
        ("--find-links wheels", "wheels/x-1-py3-none-any.whl"),
        ("${{WHEELS}}/x-1-py3-none-any.whl", "wheels/x-1-py3-none-any.whl"),
        ("-r ${{NESTED}}", "nested/base.txt"),
        ("ours@{uri}/pkg", "pkg/src/a.py"),
        ("ours[gpu] @{uri}/x.tar.gz", "x.tar.gz"),
        ("-e ./pkg[gpu]", "pkg/src/a.py"),
        ("-e {uri}/pkg#egg=ours", "pkg/src/a.py"),
        ("-e ours @ {uri}/pkg", "pkg/src/a.py"),
        ("\ufeff-r nested/base.txt", "nested/base.txt"),
        ("# see C:\\\n./pkg", "pkg/src/a.py"),
        ("x.tar.gz \\\n# and\n./pkg", "pkg/src/a.py"),
        ("-e ./at@2", "at@2/setup.py"),
    ],
)
def test_what_the_file_leads_to_counts(project: Path, line: str, changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHEELS", str(project / "wheels"))
    monkeypatch.setenv("NESTED", "nested/base.txt")
    requirements = project / "requirements.txt"
    requirements.write_text(line.format(uri=project.as_uri(), path=project) + "\n")
    before = environment_path(requirements)
    assert environment_path(requirements) == before
    (project / changed).write_text("another")
    os.utime(project / changed, (0, time.time()))
    assert environment_path(requirements) != before


def test_files_that_include_each_other_are_read_once(project: Path) -> None:
    (project / "nested/base.txt").write_text("-r ../requirements.txt\n-c ../pins.txt\n")
    (project / "requirements.txt").write_text("-r nested/base.txt\n")
    found = read_content(project / "nested/../requirements.txt")
    assert list(found.texts) == [project / name for name in ("requirements.txt", "nested/base.txt", "pins.txt")]


@pytest.mark.parametrize(
    "text",
    [
        "six==1.17.0\n",
        "${NOT_SET_ANYWHERE}/x.whl\n",
        "git+ssh://git@host/x.git\n",
        "# -r none.txt\nsix\n",
        "--index-url https://x/simple\nsix[a]>1\n",
        "a @ https://x/y.whl\n",
    ],
)
def test_a_file_that_leads_to_nothing_here_is_known_by_its_own_content(project: Path, text: str) -> None:
    (project / "requirements.txt").write_text(text)
    expected = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert environment_path(project / "requirements.txt").name == expected


def test_an_included_file_that_is_not_there_is_named(project: Path) -> None:
    (project / "requirements.txt").write_text("-r none.txt\n")
    with pytest.raises(SpecError, match=r"none\.txt'.*No such file.*included by .*requirements\.txt"):
        environment_path(project / "requirements.txt")


def test_the_age_of_open_versions_is_told(project: Path) -> None:
    requirements = project / "requirements.txt"
    requirements.write_text("six\nnumpy>=1.20\nflax==0.8\n")
    environment = environment_path(requirements)
    environment.mkdir(parents=True)
    said: list[str] = []
    ensure_environment(requirements, said.append)
    os.utime(environment, (0, time.time() - 10 * 86400))
    ensure_environment(requirements, said.append)
    assert said == [
        f"the environment is 10 days old, and six, numpy>=1.20 may be newer: remove {environment} to install it again"
    ]
