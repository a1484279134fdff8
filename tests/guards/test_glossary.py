"""Tests the glossary: each word has its Chinese, meaning and place in the code; no noun of the code is missing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

from source import ROOT, modules, nodes, public_classes, text

CARRIES_THE_CODE = 12
"""A public class that so many modules import is a noun of the code."""
# Values of the standard kind, exceptions, and parts of a noun that is in the glossary.
NO_NOUNS = {"Phase", "State", "Goal", "Entry", "Request", "Response", "Mistake", "Corrupt"}


class Word(NamedTuple):
    word: str
    chinese: str
    meaning: str
    place: str


GLOSSARY = text(ROOT / "docs" / "glossary.md")


def glossary() -> list[Word]:
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in GLOSSARY.splitlines() if line.startswith("| ")][1:]
    return [Word(*(cell.strip() for cell in row)) for row in rows]


def is_defined(place: str) -> bool:
    """Return whether a module, or something that is defined in one, has this name below `howdah`."""
    dotted = f"howdah.{place}"
    module, _, name = dotted.rpartition(".")
    if dotted in modules():
        return True
    defined = rf"^(class |def |async def )?{name}\b"
    return module in modules() and bool(re.search(defined, text(modules()[module]), re.M))


def test_each_word_is_in_the_code() -> None:
    words = glossary()
    assert len(words) > 50
    assert [row for row in words if not is_defined(row.place.strip("`"))] == []


def test_each_word_has_its_chinese_and_its_meaning() -> None:
    assert [row for row in glossary() if not re.search("[\u4e00-\u9fff]", row.chinese) or len(row.meaning) <= 20] == []


def test_each_word_is_there_once() -> None:
    for column in ("word", "chinese"):
        counts = Counter(getattr(row, column) for row in glossary())
        assert [word for word, count in counts.items() if count > 1] == []


def test_what_carries_the_code_is_in_the_glossary() -> None:
    users = Counter(
        alias.name
        for module in modules()
        for node in nodes(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("howdah.")
        for alias in node.names
    )
    nouns = {
        node.name
        for module, node in public_classes()
        if users[node.name] >= CARRIES_THE_CODE
        and node.name not in NO_NOUNS
        and not any(ast.unparse(base).endswith(("Error", "Exception")) for base in node.bases)
        and module != "howdah.errors"
        and not node.name.endswith("Error")
    }
    assert sorted(noun for noun in nouns if not re.search(rf"\b{noun}\b", GLOSSARY)) == []
