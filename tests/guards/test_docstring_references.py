"""Tests that what docstrings put in backquotes exists: names in the code, or words in its strings."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator

from source import imports, modules, tree

NAME = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`")
FOREIGN = {
    *("curves_scalars_svg", "host_port", "e02", "DB_PASS", "OPENAI_KEY", "passes"),
    *("application_1700000000000_0001", "container_e02_1700000000000_0001_01_000003"),
    *("nn1", "nn2", "_metadata", "horovodrun", "jax", "distributed", "initialize", "local_listen_port"),
    *("num_machines", "dist_sync", "dist_async"),
}
"""Examples of values, and names of Hadoop's and of frameworks, which stand in no line of code."""
SUFFIXES = {"json", "jsonl", "yaml", "xml"}
"""What follows the dot in the name of a file."""


def docstrings(module: str) -> Iterator[tuple[str, int]]:
    """Yield the texts that explain something, which are statements of their own, with their lines."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value, node.lineno


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that stand in a node, and the words of its text."""
    for name in ("id", "attr", "arg", "name", "module", "asname"):
        if isinstance(value := getattr(node, name, None), str):
            yield from value.split(".")
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        yield from re.findall(r"\w+", node.value if isinstance(node.value, str) else node.value.decode("latin-1"))


@functools.cache
def known() -> frozenset[str]:
    """Return all words of the package's code outside its docstrings, and Python's own names."""
    found = {*dir(builtins), *(part for module in modules() for part in module.split("."))}
    for module in modules():
        explaining = {
            id(node.value)
            for node in ast.walk(tree(module))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree(module)):
            if id(node) not in explaining:
                found.update(words_of(node))
    return frozenset(found)


@functools.cache
def defined(module: str) -> frozenset[str]:
    """Return the names in the code of a module."""
    return frozenset(word for node in ast.walk(tree(module)) for word in words_of(node))


def exists(name: str, place: str) -> bool:
    """Return whether a name in a docstring of the module `place` exists: of `other.name`, in the module `other` that
    the place imports."""
    *parents, last = name.split(".")
    named = [module for module in imports(place) if parents and module.split(".")[-1] == parents[-1]]
    if named and last not in SUFFIXES:
        return any(last in defined(module) or f"{module}.{last}" in modules() for module in named)
    return {*parents, last} <= known() | FOREIGN


def test_names_in_docstrings_exist() -> None:
    missing = [
        f"{module}:{line}: {name}"
        for module in modules()
        for text, line in docstrings(module)
        for name in NAME.findall(text)
        if not exists(name, module)
    ]
    assert missing == []
