"""Tests imports: modules form no cycle, and every module that a string names exists."""

from __future__ import annotations

import re

import pytest
from source import ROOT, imports, modules

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
    return module in modules() and bool(re.search(rf"\b{name}\b", modules()[module].read_text(encoding="utf-8")))


@pytest.mark.parametrize("place", TEXTS)
def test_modules_that_texts_name_exist(place: str) -> None:
    path = ROOT / place
    files = (
        [path]
        if path.is_file()
        else [each for each in path.rglob("*") if each.suffix in (".py", ".md", ".toml", ".yaml")]
    )
    unknown = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        if re.search(r"\bhowdah: (CommandLine|Session|Howdah)|^def howdah\(|import howdah$", text, re.M):
            continue  # a test's own object of that name
        unknown += [f"{file.relative_to(ROOT)}: howdah{name}" for name in MODULE.findall(text) if not is_known(name)]
    assert unknown == []
