"""Tests modules: they import each other in no circle, each has a subject, and every one that a text names exists."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from source import ROOT, imports, modules, public_classes, text, tree

LONGEST_FILE = 500
VAGUE = {"utils", "util", "common", "helpers", "misc", "tools"}

# Names below `howdah.` that are no modules: groups of entry points, credentials, files of settings, keys.
NO_MODULES = {
    *("allocators", "dialects", "engines", "frameworks", "readers", "writers"),
    *("key", "job", "secret", "yaml", "words", "escaped", "client.who", "tests", "bench", "po", "mo"),
}
TEXTS = ("src", "tests", "bench", "tools", "frontend/dev", "docs", "pyproject.toml")
MODULE = re.compile(r"(?<![\w./@-])howdah((?:\.[a-z_][a-z_0-9]*)+)(?![\w(])")


def circles() -> list[list[str]]:
    """The groups of modules that import each other, found as strongly connected components (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(imports(module)):
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in modules():
        if module not in index:
            visit(module)
    return found


def test_modules_import_each_other_in_no_circle() -> None:
    assert circles() == []


def is_known(dotted: str) -> bool:
    """Whether `howdah` followed by `dotted` is a module, or begins with one and goes on with a name in it."""
    if dotted.lstrip(".") in NO_MODULES or dotted.lstrip(".").partition(".")[0] in NO_MODULES - {
        "engines",
        "frameworks",
    }:
        return True
    dotted = re.sub(r"^\.here\b", ".program", dotted)
    module, _, name = f"howdah{dotted}".rpartition(".")
    if f"howdah{dotted}" in modules() or f"howdah{dotted}".endswith("_pb2"):
        return True
    return module in modules() and bool(re.search(rf"\b{name}\b", text(modules()[module])))


def test_modules_that_texts_name_exist() -> None:
    unknown = []
    for place in map(ROOT.joinpath, TEXTS):
        files = [place] if place.is_file() else place.rglob("*")
        for file in (each for each in files if each.suffix in (".py", ".md", ".toml", ".yaml")):
            if re.search(r"\bhowdah: (CommandLine|Session|Howdah)|^def howdah\(|import howdah$", text(file), re.M):
                continue  # a test's own object of that name
            names = [name for name in MODULE.findall(text(file)) if not is_known(name)]
            unknown += [f"{file.relative_to(ROOT)}: howdah{name}" for name in names]
    assert unknown == []


def test_every_module_says_what_it_is() -> None:
    silent = [module for module in modules() if not ast.get_docstring(tree(module)) and "proto" not in module]
    assert silent == []


def test_no_module_is_a_drawer() -> None:
    assert [module for module in modules() if VAGUE & set(module.split("."))] == []


def test_no_file_is_too_long() -> None:
    lengths = {module: len(text(path).splitlines()) for module, path in modules().items()}
    assert {module: length for module, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for module, node in public_classes():
        places[node.name].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
