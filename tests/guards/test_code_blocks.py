"""Tests the documents' code blocks: imports exist, job files have known keys, commands have known options."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import yaml
from source import ROOT, documents
from source import text as text_of

from howdah.cli import COMMANDS
from howdah.config.job_file import loads
from howdah.config.job_schema import schema

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)
VERBATIM = {"tony", "azkaban-job", "xl-submit", "hbox-submit", "submarine", "convert", "import-history"}
"""Commands whose options are those of another system; the golden files have those."""


class Block(NamedTuple):
    paper: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.paper.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    return [block for paper in documents() for block in blocks_of(paper) if block.language in languages]


def blocks_of(paper: Path) -> Iterator[Block]:
    text = text_of(paper)
    for match in BLOCK.finditer(text):
        inner = re.sub(rf"^{match[1]}", "", match[3], flags=re.M)
        yield Block(paper, text.count("\n", 0, match.start()) + 1, match[2], inner)


def guides_job_files() -> list[Block]:
    """The whole job files of tutorials, and of pages for who comes from another system."""
    guides = re.compile(re.escape(f"{ROOT}/docs/") + "(tutorial|coming-from)")
    whole = re.compile("^roles:", re.M)
    return [block for block in blocks("yaml") if guides.match(str(block.paper)) and whole.search(block.text)]


@pytest.mark.parametrize("block", blocks("python", "py"), ids=str)
def test_python_compiles_and_imports_what_exists(block: Block) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "howdah":
            for alias in node.names:
                try:
                    if not hasattr(importlib.import_module(node.module or ""), alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
                except ModuleNotFoundError as error:
                    if error.name != "pyspark":  # it is not here
                        raise


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_job_files_have_known_keys(block: Block) -> None:
    read = yaml.safe_load(block.text)
    known = set(schema()["properties"])
    if isinstance(read, dict) and ("roles" in read or set(read) & {"inputs", "outputs", "framework"}):
        assert set(read) <= known | {"include"}


@pytest.mark.parametrize("block", guides_job_files(), ids=str)
def test_job_files_of_guides_have_no_mistake(block: Block) -> None:
    loads(block.text, str(block), {}, {})


@pytest.mark.parametrize("paper", sorted((ROOT / "docs" / "tutorials").glob("*.md")), ids=lambda paper: paper.name)
def test_tutorials_show_parts_of_the_examples_job_files(paper: Path) -> None:
    shown = next(block for block in blocks_of(paper) if block.language == "yaml")
    example = re.search(r"howdah run (examples/\S+)", text_of(paper))
    assert example
    whole, part = yaml.safe_load(text_of(ROOT / example[1])), yaml.safe_load(shown.text)
    assert {key: whole.get(key) for key in part} == part


@pytest.mark.parametrize("paper", sorted((ROOT / "docs").rglob("*.zh-CN.md")), ids=lambda paper: paper.name)
def test_chinese_pages_have_the_same_code(paper: Path) -> None:
    def bare(page: Path) -> list[list[str]]:
        return [re.sub(r"\s*#(?!SBATCH|!).*", "", block.text).split("\n") for block in blocks_of(page)]

    assert bare(paper) == bare(paper.with_name(paper.name.replace(".zh-CN", "")))


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for block in blocks("console", "sh", "bash", "shell"):
        joined = block.text.replace("\\\n", " ")
        for line in joined.splitlines():
            match = re.match(r"\s*(?:\$ )?((?:\w+=\S+ )*)howdah ([a-z].*)", line)
            if match and (block.language != "console" or line.lstrip().startswith("$")):
                words = shlex.split(match[2].partition("  #")[0], comments=True)
                found.append((str(block), words))
    return found


@pytest.mark.parametrize(
    ("where", "words"), commands(), ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_commands_have_known_options(where: str, words: list[str]) -> None:
    name, *rest = words
    assert name in COMMANDS, where
    if name in VERBATIM:
        return
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    options = [word.partition("=")[0] for word in rest[: rest.index("--") if "--" in rest else None]]
    assert [word for word in options if word.startswith("--") and word not in {*known, "--help"}] == [], where
