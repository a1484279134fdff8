"""Tests that an environment is another one when anything changes that its requirements file leads to."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

import pytest

from howdah.errors import SpecError
from howdah.staging import requirements_files
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


@pytest.mark.parametrize(
    ("python", "version"),
    [("/usr/bin/python3.1", "3.1"), (sys.executable, "3.1"), ("/gone/python", "{}.{}".format(*sys.version_info))],
)
def test_the_environment_of_another_python_is_not_taken_for_ones_own(project: Path, python: str, version: str) -> None:
    """Such as that before an upgrade, which may be gone, or of another installation of howdah."""
    requirements = project / "requirements.txt"
    requirements.write_text("x==1\n")
    made = environment_path(requirements)
    (made / "bin").mkdir(parents=True)
    (made / "lib" / f"python{version}").mkdir(parents=True)
    (made / "bin" / "python").symlink_to(python)
    other = environment_path(requirements)
    assert other != made
    assert environment_path(requirements) == other
    (made / "bin" / "python").unlink()
    (made / "bin" / "python").symlink_to(sys.executable)
    (made / "lib" / "python{}.{}".format(*sys.version_info)).mkdir(exist_ok=True)
    assert environment_path(requirements) == made


@pytest.mark.parametrize(
    ("installer", "name", "value"),
    [
        ("uv", "UV_INDEX_URL", "https://x/simple"),
        ("uv", "UV_DEFAULT_INDEX", "https://x/simple"),
        ("uv", "UV_FIND_LINKS", "/wheels"),
        ("uv", "UV_EXCLUDE_NEWER", "2026-01-01"),
        ("uv", "UV_TORCH_BACKEND", "cpu"),
        ("uv", "UV_CONSTRAINT", "pins.txt"),
        ("pip", "PIP_INDEX_URL", "https://x/simple"),
        ("pip", "PIP_EXTRA_INDEX_URL", "https://x/simple"),
        ("pip", "PIP_FIND_LINKS", "/wheels"),
        ("pip", "PIP_NO_INDEX", "1"),
        ("pip", "PIP_PRE", "1"),
        ("pip", "PIP_CONSTRAINT", "pins.txt"),
    ],
)
def test_variables_by_which_the_installer_chooses_count(
    project: Path, installer: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements_files, "find_uv", lambda: "uv" if installer == "uv" else "")
    requirements = project / "requirements.txt"
    requirements.write_text("six\n")
    monkeypatch.delenv(name, raising=False)
    before = environment_path(requirements)
    for other in ("PIP_TIMEOUT", "PIP_CERT", "UV_HTTP_TIMEOUT", "UV_CACHE_DIR", "PIP_PREFIX"):
        monkeypatch.setenv(other, "7")
    assert environment_path(requirements) == before, "it chooses no package"
    monkeypatch.setenv(name, value)
    assert environment_path(requirements) != before


def test_only_the_settings_of_the_installer_that_is_there_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = project / "requirements.txt"
    requirements.write_text("six\n")
    monkeypatch.setattr(requirements_files, "find_uv", lambda: "uv")
    before = environment_path(requirements)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert environment_path(requirements) == before


@pytest.mark.parametrize(
    ("installer", "file", "text"),
    [
        ("uv", "project/uv.toml", "no-index = true\n"),
        ("uv", "uv.toml", "no-index = true\n"),
        ("uv", "project/pyproject.toml", "[project]\nname = 'x'\n[tool.uv]\nno-index = true\n[tool.ruff]\n"),
        ("uv", "project/pyproject.toml", "[[tool.uv.index]]\nurl = 'https://x/simple'\n"),
        ("uv", "config/uv/uv.toml", "no-index = true\n"),
        ("pip", "config/pip/pip.conf", "[global]\nno-index = true\n"),
    ],
)
def test_configuration_of_the_installer_counts(
    project: Path, installer: str, file: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements_files, "find_uv", lambda: "uv" if installer == "uv" else "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project / "config"))
    requirements = project / "project/requirements.txt"
    requirements.parent.mkdir()
    requirements.write_text("six\n")
    (project / "project/pyproject.toml").write_text("[project]\nname = 'x'\n[tool.ruff]\nline-length = 120\n")
    before = environment_path(requirements)
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    (project / file).write_text(text)
    assert environment_path(requirements) != before


def test_a_new_token_of_the_same_index_makes_no_other_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements_files, "find_uv", lambda: "uv")
    requirements = project / "requirements.txt"
    requirements.write_text("six\n")
    monkeypatch.setenv("UV_INDEX_URL", "https://aws:monday@x/simple")
    before = environment_path(requirements)
    monkeypatch.setenv("UV_INDEX_URL", "https://aws:tuesday@x/simple")
    monkeypatch.setenv("UV_INDEX_PRIVATE_PASSWORD", "tuesday")
    assert environment_path(requirements) == before


@pytest.mark.parametrize("variable", ["UV_CONFIG_FILE", "PIP_CONFIG_FILE"])
def test_configuration_that_cannot_be_read_is_none(
    project: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements_files, "find_uv", lambda: "uv" if variable.startswith("UV") else "")
    (project / "requirements.txt").write_text("six\n")
    monkeypatch.setenv(variable, str(project))
    without = environment_path(project / "requirements.txt")
    monkeypatch.setenv(variable, "/dev/full")
    assert environment_path(project / "requirements.txt").parent == without.parent


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
        "git+file:///nowhere/x.git\n",
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
        "the environment is 10 days old, and six, numpy>=1.20 may be newer: a new comment in requirements.txt makes"
        " howdah install it again"
    ]
    requirements.write_text("six\nnumpy>=1.20\nflax==0.8\n# again\n")
    assert environment_path(requirements) != environment
