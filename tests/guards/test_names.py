"""Tests names: each class has a unique one, none is a single letter or of the old vocabulary, tests name their
subject."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict

from source import ROOT, modules, public_classes, tree

LONGEST_FILE = 500
VAGUE = {"utils", "util", "common", "helpers", "misc", "tools"}
GIVEN_UP = {
    *("bell", "rung", "wish", "wishes", "chore", "chores", "showing", "warden", "hindrance", "hindrances", "patience"),
    *("patiently", "sidecar", "losttime", "forewarning", "forewarnings", "verdicts", "tryout", "unplaced", "uncounted"),
    *("soon_failed", "struck", "boardcopy", "gpuwatch", "stackshot", "logsearch", "yamltree", "lasthosts"),
    *("near_the_last", "outlives", "taken_apart", "sleepers", "told_at", "step_back", "take_from_writer", "hear_late"),
}
"""Words that stood for things which have a public name (docs/glossary.md)."""
BARE = {
    *("of", "take", "told", "look", "own", "want", "go", "here", "nobody", "whose", "accept", "admits"),
    *("aliased", "announced", "anywhere", "apart", "bean", "blame", "collected", "decided", "declared"),
    *("decompressed", "elsewhere", "exposition", "good", "judge", "lack", "leads", "meeting", "misplaced"),
    *("of_protocol", "overridden", "placeable", "prepared", "reassignment", "settled", "shortened"),
    *("temporary", "unheard", "unquoted", "verified", "weights", "without", "wrapped"),
}
"""Names of functions that say nothing without their module."""


def test_no_two_public_classes_have_one_name() -> None:
    places = defaultdict(list)
    for module, node in public_classes():
        places[node.name].append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_module_is_imported_by_a_letter() -> None:
    letters = [
        f"{module}: {alias.name} as {alias.asname}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if alias.name.startswith("howdah")
        or (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("howdah"))
        if len(alias.asname or "..") == 1
    ]
    assert letters == []


def test_no_module_is_a_drawer() -> None:
    assert [module for module in modules() if VAGUE & set(module.split("."))] == []


def test_no_file_is_too_long() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in modules().items()}
    assert {module: length for module, length in lengths.items() if length > LONGEST_FILE} == {}


def identifiers(node: ast.AST) -> list[str]:
    """The names that a node gives to what is defined in it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    return []


def test_no_name_is_of_the_vocabulary_that_was_given_up() -> None:
    found = {
        f"{module}: {name}"
        for module in modules()
        for node in ast.walk(tree(module))
        for name in identifiers(node)
        if name.strip("_").lower() in GIVEN_UP
    }
    words = {module for module in modules() if GIVEN_UP & set(module.split("."))}
    assert sorted(found | words) == []


def test_no_function_has_a_bare_name() -> None:
    found = [
        f"{module}: {node.name}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.strip("_") in BARE
    ]
    assert found == ["howdah.program.task_identity: of"]  # `here.world().of(role)` is in users' programs


def exceptions() -> dict[str, str]:
    """Return every exception of the package by name, with its module."""
    bases: dict[str, tuple[str, set[str]]] = {
        node.name: (module, {ast.unparse(base).rpartition(".")[2] for base in node.bases})
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ClassDef)
    }
    found = {name for name in dir(builtins) if isinstance(getattr(builtins, name), type(Exception))}
    found = {name for name in found if issubclass(getattr(builtins, name), BaseException)}
    while more := {name for name, (_, above) in bases.items() if above & found} - found:
        found |= more
    return {name: bases[name][0] for name in found & bases.keys()}


def test_an_exception_says_what_happened() -> None:
    """A name of one word needs its module to be understood. `Conflict` is HTTP's word, and users' formats raise
    `Corrupt`."""
    vague = {name for name in exceptions() if len(re.findall("[A-Z][a-z]+", name)) < 2}
    assert sorted(vague) == ["Conflict", "Corrupt", "Superseded"]


def test_limits_are_called_max_or_min() -> None:
    other = re.compile(r"_*(MOST|LONGEST|LARGEST|LEAST|FEWEST|DEEPEST|SHORTEST|SMALLEST)(_|$)")
    found = {
        f"{module}: {name}"
        for module in modules()
        for node in ast.walk(tree(module))
        for name in identifiers(node)
        if other.match(name) or name.strip("_") in ("most", "least")
    }
    assert sorted(found) == []


def test_tests_name_their_subject() -> None:
    pronoun = re.compile(
        r"test_((it|its|they|them|their|those|that|nor|he|she|nobody|somebody|everybody)_|"
        r"(one|another|each)_(that|who|which|of_them|or|is|are|was|had|has|gets|have|for|than)_)"
    )
    found = [
        f"{path.name}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and pronoun.match(f"{node.name}_")
    ]
    assert found == []


def test_a_directory_is_not_called_a_folder() -> None:
    """The history's tables, which are on disk, have a column `folder_ms`."""
    found = [
        f"{module}:{number}"
        for module, path in modules().items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "folder" in line.lower().replace("folder_ms", "")
    ]
    documents = [*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")]
    found += [document.name for document in documents if re.search(r"(?i)\bfolders?\b", document.read_text())]
    assert found == []
