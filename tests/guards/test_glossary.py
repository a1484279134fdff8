"""Tests the glossary: each word has its Chinese, meaning and place in the code; no noun of the code is missing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

import pytest
from source import ROOT, modules, public_classes, tree

CARRIES_THE_CODE = 12
"""A public class that so many modules import is a noun of the code."""
# Values of the standard kind, exceptions, and parts of a noun that is in the glossary.
NO_NOUNS = {"Phase", "State", "Goal", "Entry", "Request", "Response", "Mistake", "Corrupt"}


class Word(NamedTuple):
    word: str
    chinese: str
    meaning: str
    place: str


def glossary() -> list[Word]:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    return [Word(*(cell.strip() for cell in row)) for row in rows]


@pytest.mark.parametrize("row", glossary(), ids=lambda row: row.word)
def test_a_word_is_in_the_code(row: Word) -> None:
    assert re.search("[\u4e00-\u9fff]", row.chinese)
    assert len(row.meaning) > 20
    dotted = f"howdah.{row.place.strip('`')}"
    module, _, name = dotted.rpartition(".")
    assert dotted in modules() or re.search(rf"^(class |def |async def )?{name}\b", source_of(module), re.M), dotted


def source_of(module: str) -> str:
    return modules()[module].read_text(encoding="utf-8")


def test_each_word_is_there_once() -> None:
    for column in ("word", "chinese"):
        counts = Counter(getattr(row, column) for row in glossary())
        assert [word for word, count in counts.items() if count > 1] == []


def test_what_carries_the_code_is_in_the_glossary() -> None:
    users = Counter(
        alias.name
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("howdah.")
        for alias in node.names
    )
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    nouns = {
        node.name
        for module, node in public_classes()
        if users[node.name] >= CARRIES_THE_CODE
        and node.name not in NO_NOUNS
        and not any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
        and module != "howdah.errors"
        and not node.name.endswith("Error")
    }
    assert sorted(noun for noun in nouns if not re.search(rf"\b{noun}\b", text)) == []
