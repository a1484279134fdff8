"""Docstrings: every field of a value that is shared, sent or kept has its own; none begins with a bare pronoun."""

from __future__ import annotations

import ast
import re

import pytest
from source import modules, public_classes, tree

FIELDS_EXPLAINED = ("howdah.spec", "howdah.wire", "howdah.master.state", "howdah.master.snapshots.state")
FIELDS_EXPLAINED_TOO = ("howdah.master.preflight.state", "howdah.master.decisions.actions")
PRONOUN = re.compile(
    r"^(It|They|There|Theirs|Ours|Its|This|That|These|Those|He|She)\b(?! (job|task|master|module|machine))"
)


def is_dataclass(node: ast.ClassDef) -> bool:
    """Whether a class is decorated as a dataclass."""
    return any("dataclass" in ast.unparse(each) for each in node.decorator_list)


def unexplained(node: ast.ClassDef) -> list[str]:
    """The public fields of a dataclass that no docstring follows."""
    fields = [each for each in node.body if isinstance(each, (ast.AnnAssign, ast.Expr))]
    found = []
    for here, after in zip(fields, [*fields[1:], None], strict=True):
        if isinstance(here, ast.AnnAssign) and isinstance(here.target, ast.Name) and not here.target.id.startswith("_"):
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not explained:
                found.append(here.target.id)
    return found


@pytest.mark.parametrize("place", [*FIELDS_EXPLAINED, *FIELDS_EXPLAINED_TOO])
def test_every_field_has_its_own_docstring(place: str) -> None:
    lacking = {
        f"{module}.{node.name}": names
        for module, node in public_classes()
        if (module == place or module.startswith(f"{place}.")) and is_dataclass(node) and (names := unexplained(node))
    }
    assert lacking == {}


def test_every_module_says_what_it_is() -> None:
    silent = [module for module in modules() if not ast.get_docstring(tree(module)) and "proto" not in module]
    assert silent == []


def test_no_docstring_begins_with_a_pronoun() -> None:
    found = [
        f"{module}.{getattr(node, 'name', '')}: {text.splitlines()[0]}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module))
        and (text := ast.get_docstring(node))
        and PRONOUN.match(text)
    ]
    assert found == []
