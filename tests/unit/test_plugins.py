"""Tests the table of howdah's own plugins, and what another package may add to it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from howdah.engines import Allocator, Engine, info
from howdah.spec import plugins

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_table_is_that_of_pyproject() -> None:
    groups = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"]
    ours = {name: entries for name, entries in groups.items() if name.startswith("howdah.")}  # others look for theirs
    assert ours == plugins.BUILT_IN


@pytest.mark.parametrize("group", sorted(plugins.BUILT_IN.keys() - {"howdah.engines"}))
def test_every_plugin_is_there(group: str) -> None:
    for name, target in plugins.BUILT_IN[group].items():
        assert callable(plugins.load(target)), name


def test_every_engine_has_its_parts_and_an_id_prefix_of_its_own() -> None:
    infos = dict(info.known())
    for name, each in infos.items():
        engine, allocator = plugins.load(each.engine), plugins.load(each.allocator)
        assert issubclass(engine, Engine)
        assert issubclass(allocator, Allocator)
        assert engine.name == name
        assert engine.one_machine == allocator.one_machine
    prefixes = [each.id_prefix for each in infos.values()]
    assert not [one for one in prefixes for other in prefixes if one is not other and other.startswith(one)]


@pytest.mark.parametrize(
    ("container", "job"),
    [
        ("container_e17_1700000000000_0001_01_000002", "application_1700000000000_0001"),
        ("container_1700000000000_0001_01_000002", "application_1700000000000_0001"),
        ("local-20260101-000000-0a1b.3", "local-20260101-000000-0a1b"),
        ("slurm-5.0a1b.3", "slurm-5"),
        ("ssh-20260101-000000-0a1b2c3d-1-2", "ssh-20260101-000000-0a1b2c3d"),
        ("container_1_0001_01", ""),
        ("kubernetes-0a1b", ""),
        ("", ""),
    ],
)
def test_the_id_of_a_container_tells_the_job(container: str, job: str) -> None:
    assert info.job_of_container(container) == job


@pytest.fixture
def another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with a framework of its own, and one that has the name of howdah's."""
    about = tmp_path / "another-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[howdah.frameworks]\nflax = another:Flax\npytorch = another:Torch\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("another_package")
def test_another_package_adds_names_and_replaces_none() -> None:
    assert plugins.find("howdah.frameworks", "flax") == "another:Flax"
    assert plugins.find("howdah.frameworks", "pytorch") == "howdah.frameworks.pytorch:PyTorch"
    assert plugins.installed("howdah.frameworks") == {"flax": "another:Flax"}
    assert plugins.names("howdah.frameworks") == [*plugins.BUILT_IN["howdah.frameworks"], "flax"]
    assert plugins.find("howdah.frameworks", "flux") == ""


@pytest.mark.usefixtures("another_package")
def test_what_is_installed_and_removed_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    os.utime(packages, (0, 0))
    assert plugins.find("howdah.readers", "lines") == ""
    about = packages / "lines-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[howdah.readers]\nlines = lines:Reader\n")
    assert plugins.find("howdah.readers", "lines") == "lines:Reader"
    os.utime(packages, (1, 1))
    assert plugins.find("howdah.readers", "lines") == "lines:Reader"
    shutil.rmtree(about)
    assert plugins.find("howdah.readers", "lines") == ""
    assert plugins.find("howdah.frameworks", "flax") == "another:Flax"
