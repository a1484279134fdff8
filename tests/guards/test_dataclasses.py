"""Tests which of the two decorators makes a dataclass: that of `howdah.spec.values`, but where it cannot serve."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from source import modules, nodes

BELOW = {"howdah.errors", "howdah.program", "howdah.program.task_identity", "howdah.spec.values"}
"""Modules without `howdah.spec`: errors are below it, and a program that asks for its rank imports little."""
LEFT_OUT = re.compile(r"\b(repr|compare|hash)=False")


def dataclasses() -> Iterator[tuple[str, str, ast.ClassDef]]:
    """Yield the module, the decorator and the definition of each dataclass."""
    for module in modules():
        for node in nodes(module):
            if isinstance(node, ast.ClassDef) and module not in BELOW:
                for decorator in map(ast.unparse, node.decorator_list):
                    if re.match(r"(dataclasses\.)?dataclass\b", decorator):
                        yield module, decorator, node


def needs_standard(decorator: str, node: ast.ClassDef) -> bool:
    """Return whether a dataclass is ordered, is equal to itself alone, or leaves a field out of its comparison or its
    repr."""
    return (
        "order=" in decorator
        or "eq=" in decorator
        or any(LEFT_OUT.search(ast.unparse(each)) for each in node.body if isinstance(each, ast.AnnAssign))
    )


def test_the_standard_decorator_stands_where_the_own_one_cannot_serve() -> None:
    wrong = [
        f"{module}.{node.name}: @{decorator}"
        for module, decorator, node in dataclasses()
        if decorator.startswith("dataclasses.") is not needs_standard(decorator, node)
    ]
    assert wrong == []


def test_the_bare_name_is_the_own_decorator() -> None:
    wrong = [
        module
        for module in modules().keys() - BELOW
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if any(alias.name == "dataclass" for alias in node.names)
    ]
    assert wrong == []


def test_own_dataclasses_define_no_comparison_or_repr() -> None:
    """The decorator would replace them without a word."""
    wrong = [
        f"{module}.{node.name}.{each.name}"
        for module, decorator, node in dataclasses()
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name in ("__eq__", "__hash__", "__repr__")
        if not decorator.startswith("dataclasses.")
    ]
    assert wrong == []
