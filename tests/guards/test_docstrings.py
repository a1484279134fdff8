"""Tests docstrings: the names in them exist, and each field of a value that is shared, sent or stored has its own."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterator

from source import imports, modules, nodes, public_classes

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
FIELDS_EXPLAINED = (
    *("howdah.spec", "howdah.wire", "howdah.master.state", "howdah.master.snapshots.state"),
    *("howdah.master.preflight.state", "howdah.master.decisions.actions"),
)


def docstrings(module: str) -> list[ast.Constant]:
    """Return the texts that explain something, which are statements of their own."""
    explaining = (node.value for node in nodes(module) if isinstance(node, ast.Expr))
    return [text for text in explaining if isinstance(text, ast.Constant) and isinstance(text.value, str)]


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that stand in a node, and the words of its text."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (str, bytes)):
            yield from re.findall(r"\w+", node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
        return
    for name in ("id", "attr", "arg", "name", "module", "asname"):
        if isinstance(value := getattr(node, name, None), str):
            yield from value.split(".")


@functools.cache
def defined(module: str) -> frozenset[str]:
    """Return the words of a module's code outside its docstrings."""
    explaining = set(docstrings(module))
    return frozenset(word for node in nodes(module) if node not in explaining for word in words_of(node))


@functools.cache
def known() -> frozenset[str]:
    """Return all words of the package's code outside its docstrings, and Python's own names."""
    parts = {part for module in modules() for part in module.split(".")}
    return frozenset({*dir(builtins), *parts}.union(*map(defined, modules())))


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
        f"{module}:{text.lineno}: {name}"
        for module in modules()
        for text in docstrings(module)
        for name in NAME.findall(str(text.value))
        if not exists(name, module)
    ]
    assert missing == []


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


def test_every_field_has_its_own_docstring() -> None:
    lacking = {
        f"{module}.{node.name}": names
        for module, node in public_classes()
        if f"{module}.".startswith(tuple(f"{place}." for place in FIELDS_EXPLAINED)) and is_dataclass(node)
        if (names := unexplained(node))
    }
    assert lacking == {}
