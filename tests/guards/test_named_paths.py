"""Tests that ARCHITECTURE.md and CONTRIBUTING.md name existing paths, and ARCHITECTURE.md every package."""

from __future__ import annotations

import re

import pytest
from source import ROOT, SOURCE

PACKAGE = SOURCE / "howdah"
# Paths of a job's directory, of this machine, and of what a build makes.
NOT_IN_THE_REPOSITORY = re.compile(r"tasks/|~|\$|\.venv/|frontend/generated/")
PATH = re.compile(r"[\w.*<>-]+/[\w./*<>-]*")


def named_paths(document: str) -> list[str]:
    """The paths in a document's code and in its references to `docs/adr`, as patterns."""
    text = (ROOT / document).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    words = [word for code in re.findall(r"`([^`]+)`", text) for word in code.split()]
    paths = [word for word in words if PATH.fullmatch(word) and not NOT_IN_THE_REPOSITORY.match(word)]
    paths += [f"{record}-*.md" for record in re.findall(r"\bdocs/adr/\d+", text)]
    return sorted({re.sub("<[^>]*>", "*", path).rstrip("/") for path in paths})


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_a_document_names_exist(document: str) -> None:
    paths = named_paths(document)
    assert len(paths) > 20
    assert [path for path in paths if not any(any(root.glob(path)) for root in (ROOT, PACKAGE))] == []


def test_architecture_lists_every_package() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Layers")[0]
    names = {
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    }
    assert sorted(name for name in names if not (PACKAGE / name).exists()) == []
    modules = {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert {init.parent.name for init in PACKAGE.glob("*/__init__.py")} | modules <= names
