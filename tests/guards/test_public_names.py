"""Tests the modules that users and plug-ins import: `__all__` is sorted and complete, its names are explained."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
from collections.abc import Iterator

import pytest
from source import ROOT, modules, tree

from howdah.program.task_identity import NAMES

PUBLIC = ("howdah", "howdah.engines", "howdah.errors", "howdah.frameworks", "howdah.here", "howdah.testing")
EARLIER = {"Member", "World", "alive", "swap"}
"""Names of earlier versions in `howdah.here`, which programs may still use."""
PAGES = {"howdah": "docs/sdk.md", "howdah.here": "docs/here.md"}


def defined(module: str) -> set[str]:
    """Return the public names to which the top of a module gives a value."""
    found = set()
    for node in tree(module).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def explained(module: str) -> Iterator[str]:
    """Yield the names at the top of a module that a text follows, there or where they are imported from."""
    body = tree(module).body
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module in modules():
            yield from {alias.name for alias in node.names} & set(explained(node.module))
    for node, after in itertools.pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_sorted_and_complete(name: str) -> None:
    module = importlib.import_module(name)
    module = importlib.import_module(module.__name__)  # here.py puts another module in its place
    names = module.__all__
    assert names == sorted(names, key=lambda each: (not each.isupper(), not each[0].isupper(), each))
    assert len(set(names)) == len(names)
    assert defined(module.__name__) - EARLIER <= set(names)
    assert not EARLIER & set(names)
    for each in names:
        assert getattr(module, each) is not None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_explained(name: str) -> None:
    module = importlib.import_module(name)
    texts = set(explained(module.__name__))
    unexplained = [each for each in module.__all__ if each not in texts and not getattr(module, each).__doc__]
    assert not unexplained
    if name in PAGES:
        page = (ROOT / PAGES[name]).read_text(encoding="utf-8")
        assert [each for each in module.__all__ if not re.search(rf"\b{each}\b", page)] == []


def test_names_of_earlier_versions_still_work() -> None:
    from howdah import here

    assert (here.World, here.Member) == (here.Peers, here.Peer)
    assert (here.alive, here.swap) == (here.heartbeat, here.compare_and_set)


def test_a_type_checker_sees_all_that_here_has() -> None:
    (checked,) = (node for node in tree("howdah.here").body if isinstance(node, ast.If))
    names = {alias.asname for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names - {None} == {"inside", *NAMES} | EARLIER
