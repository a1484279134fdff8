"""Reads the package's source as text and syntax trees, for the guards; imports none of it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name, without what protoc has made."""
    found = {}
    for path in sorted((SOURCE / "howdah").rglob("*.py")):
        if not path.stem.endswith("_pb2"):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The package's own modules that `module` imports when it runs: at its top, or later in a function."""
    found = set()
    for node in _running(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules() else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found & modules().keys() - {module})


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below `node`, without what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from _running(child)


def public_classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every public class at the top of a module, with the module's name."""
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node
