"""Tests which modules travel with a function: those that lie beside the program as it imports them."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import howdah
from howdah.errors import SpecError
from howdah.functions.packed_function import modules_beside_program, pack_function


def loaded(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Import a module as a program in `directory` does, and return whether it travels."""
    monkeypatch.chdir(directory)
    monkeypatch.syspath_prepend(directory)
    importlib.import_module(name)
    try:
        return name in modules_beside_program()
    finally:
        for each in [each for each in sys.modules if each.partition(".")[0] == name]:
            del sys.modules[each]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    for path in ("lib/linkedmodule.py", "lib/linkedpackage/__init__.py", "venv/site-packages/linkedinstalled.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
        name = Path(path).parent if path.endswith("__init__.py") else Path(path)
        (tmp_path / "project" / name.name).symlink_to(tmp_path / name)
    return tmp_path / "project"


@pytest.mark.parametrize("name", ["linkedmodule", "linkedpackage"])
def test_a_module_beside_the_program_travels_wherever_its_link_leads(
    project: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loaded(project, name, monkeypatch)


def test_a_module_is_found_through_a_link_to_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "plainmodule.py").write_text("")
    (tmp_path / "link").symlink_to(project)
    assert loaded(tmp_path / "link", "plainmodule", monkeypatch)


def test_what_is_installed_does_not_travel(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not loaded(project, "linkedinstalled", monkeypatch)


@pytest.mark.parametrize("given", [None, "train.py", Path("train.py")])
def test_what_cannot_be_called_is_refused_before_anything_starts(given: Any, tmp_path: Path) -> None:
    told = rf"^function: is of the type {type(given).__name__}, must be a function: give its arguments after it$"
    with pytest.raises(SpecError, match=told):
        pack_function(tmp_path, given, (), {}, "first")
    with pytest.raises(SpecError, match=told):
        howdah.map(given, [1])
    if given is not None:
        with pytest.raises(SpecError, match=told):
            howdah.distributed(given)
    assert not list(tmp_path.iterdir())


def test_a_function_with_a_variable_that_has_no_value_yet_is_refused_in_one_line(tmp_path: Path) -> None:
    lock = threading.Lock()

    def train() -> Any:
        return lock, later

    with pytest.raises(
        SpecError, match=r"^function: cannot be sent: the function is a function, which cannot be p.*lock"
    ):
        pack_function(tmp_path, train, (), {}, "first")
    later = 1
