"""Tests the table of howdah's own plugins, and what another package may add to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from howdah.spec import plugins

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_table_is_that_of_pyproject() -> None:
    assert tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"] == plugins.BUILT_IN


@pytest.mark.parametrize("group", plugins.BUILT_IN)
def test_every_plugin_is_there(group: str) -> None:
    for name, target in plugins.BUILT_IN[group].items():
        assert callable(plugins.load(target)), name


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
