"""Reads the package's source as text and syntax trees, for the guards; imports none of it."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


@functools.cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name, except those that protoc has made."""
    found = {}
    for path in sorted((SOURCE / "howdah").rglob("*.py")):
        if not path.stem.endswith("_pb2"):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def documents() -> tuple[Path, ...]:
    """The Markdown pages of the repository, without the READMEs of packages."""
    return tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]))


@functools.cache
def text(path: Path) -> str:
    """The text of a file."""
    return path.read_text(encoding="utf-8")


def tree(module: str) -> ast.Module:
    """The syntax tree of a module."""
    return _trees()[module]


@functools.cache
def _trees() -> dict[str, ast.Module]:
    # The collector would go through half a million nodes again and again, which takes four times as long as parsing.
    gc.disable()
    try:
        return {module: ast.parse(text(path)) for module, path in modules().items()}
    finally:
        gc.freeze()
        gc.enable()


def nodes(module: str) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax tree."""
    return _nodes()[module]


@functools.cache
def _nodes() -> dict[str, tuple[ast.AST, ...]]:
    gc.disable()
    try:
        return {module: tuple(ast.walk(tree(module))) for module in modules()}
    finally:
        gc.freeze()
        gc.enable()


def functions(module: str) -> list[Function]:
    """All functions of a module, methods among them."""
    return [node for node in nodes(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The package's own modules that `module` imports when it runs: at its top, or later in a function."""
    unread = {below for node in nodes(module) if _is_type_checking(node) for below in ast.walk(node)}
    found = set()
    for node in nodes(module):
        if node in unread:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules() else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found & modules().keys() - {module})


def _is_type_checking(node: ast.AST) -> bool:
    """Return whether only a type checker reads the code below `node`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def public_classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Every public class at the top of a module, with the module's name."""
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield module, node
