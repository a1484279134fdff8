"""Tests that values are immutable once they are made, and compare by all of their fields."""

from __future__ import annotations

import ast
import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

import howdah
from howdah.spec import TaskId, values
from howdah.spec.events import GangRestarted, Noted

SOURCE = Path(howdah.__file__).parent
WIDE = 5
"""A value of so many fields is built by keyword."""
CHANGE = "from howdah.spec.events import Noted; note = Noted(0.0, 'text'); note.text = 'another'"


def wide_classes() -> set[str]:
    """The names of dataclasses of jobs, messages and the master's state that have many fields."""
    found = set()
    for package in ("spec", "wire", "master"):
        for path in (SOURCE / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list):
                    inherited = any(ast.unparse(base) == "Event" for base in node.bases)
                    if inherited + sum(isinstance(line, ast.AnnAssign) for line in node.body) >= WIDE:
                        found.add(node.name)
    return found


@pytest.mark.parametrize("package", ["spec", "master"])
def test_a_wide_value_is_built_by_keyword(package: str) -> None:
    wide, wrong = wide_classes(), []
    assert {"Joined", "Status", "TaskState"} <= wide
    for path in (SOURCE / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in wide:
                continue
            if len(node.args) > 3 or any(isinstance(each, ast.Starred) for each in node.args):
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {node.func.id}")
    assert not wrong


def test_a_frozen_value_does_not_change_in_tests() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Noted(0.0, "text").text = "another"  # type: ignore[misc]


@pytest.mark.parametrize(("enforced", "status"), [("1", 1), ("", 0)])
def test_other_processes_enforce_it_where_the_variable_says_so(enforced: str, status: int) -> None:
    environ = {**os.environ, "HOWDAH_ENFORCE_FROZEN": enforced}
    found = subprocess.run([sys.executable, "-c", CHANGE], env=environ, capture_output=True, text=True, check=False)
    assert found.returncode == status
    assert ("FrozenInstanceError" in found.stderr) is bool(status)


def test_values_of_equal_fields_are_equal_and_hash_alike() -> None:
    one, other = (GangRestarted(1.0, 2, "why", (TaskId("worker", 0),)) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    assert one != GangRestarted(1.0, 3, "why", (TaskId("worker", 0),))
    assert repr(Noted(1.0, "text")) == "Noted(time=1.0, text='text', decided=False)"


def test_a_value_is_made_as_the_standard_decorator_makes_it() -> None:
    @values.dataclass(frozen=True)
    class Base:
        name: str
        tags: list[str] = dataclasses.field(default_factory=list)
        count: int = dataclasses.field(default=0, init=False)

    @values.dataclass(frozen=True, kw_only=True)
    class Derived(Base):
        size: int = 1
        seen: ClassVar[list[str]] = []

        def __post_init__(self) -> None:
            self.seen.append(self.name)

    class Further(Derived):
        pass

    assert [repr(each).rpartition(".")[2] for each in (Base("a"), Derived("b", ["t"], size=2), Further("c"))] == [
        "Base(name='a', tags=[], count=0)",
        "Derived(name='b', tags=['t'], count=0, size=2)",
        "Further(name='c', tags=[], count=0, size=1)",
    ]
    assert Derived.seen == ["b", "c"]
    assert Base("a").tags is not Base("a").tags
    assert dataclasses.replace(Derived("b"), size=3).size == 3
    with pytest.raises(TypeError, match=r"Base\.__init__\(\) missing 1 required positional argument: 'name'"):
        Base()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Derived("b", [], 2)  # type: ignore[misc]
