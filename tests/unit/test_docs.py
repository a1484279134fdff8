"""Tests that the documents' links work, and that options, settings, keys and variables are all documented."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from howdah.cli import COMMANDS
from howdah.compat.submarine.options import OPTIONS
from howdah.compat.xlearning.submit import OPTION_NAMES
from howdah.config.job_schema import schema
from howdah.config.settings import SETTINGS
from howdah.config.spec_reader import keys_of
from howdah.spec import (
    Board,
    Checkpoint,
    Deadline,
    Environment,
    Input,
    JobSpec,
    Master,
    Output,
    Placement,
    Preemption,
    Preflight,
    Resources,
    Role,
    Save,
    Timeouts,
)

ROOT = Path(__file__).parents[2]
PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


def anchors(path: Path) -> set[str]:
    """The names that a Markdown page gives its headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        there = path.parent / target if target else path
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


def test_every_extra_is_listed_with_what_it_brings() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[project.optional-dependencies]")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (ROOT / "docs/install.md").read_text(encoding="utf-8"), re.M))
    extras = re.findall(r"^(\w+) = \[([^\]]*)\]", text.partition("[project.scripts]")[0], re.MULTILINE)
    listed = {
        name: [re.match(r"[\w.-]+", each)[0] for each in re.findall(r'"([^"]+)"', needs)] for name, needs in extras
    }  # type: ignore[index]
    assert {name: row.split(", ") for name, row in rows.items()} == listed


def test_installation_is_told_in_one_way() -> None:
    for path in PAPERS:
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"pip install.*howdah\[", line), f"{path}: {line}"


def first_column(name: str) -> set[str]:
    """The words in backquotes in the first column of a page's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", (ROOT / "docs" / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_the_page_lists_every_setting() -> None:
    assert first_column("configuration.md") == set(SETTINGS)


def test_the_page_lists_every_key_of_a_job_file() -> None:
    kinds = (JobSpec, Role, Resources, Input, Output, Environment, Timeouts)
    more = (Board, Checkpoint, Deadline, Master, Placement, Preemption, Preflight, Save)
    keys = {key for kind in (*kinds, *more) for key in keys_of(kind)}
    assert first_column("spec.md") == keys | {"vars"}
    assert set(schema()["properties"]) <= first_column("spec.md")


def options(command: click.Command) -> Iterator[str]:
    yield from (name for option in command.params if isinstance(option, click.Option) for name in option.opts)
    for name, below in command.commands.items() if isinstance(command, click.Group) else ():
        yield name
        yield from options(below)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_names_every_option_of_a_command(name: str) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    module, _, attribute = COMMANDS[name][0].partition(":")
    for word in (name, *options(getattr(importlib.import_module(module), attribute))):
        assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text), word


def test_options_of_xlearning() -> None:
    assert {f"--{option}" for option in OPTION_NAMES} <= first_column("coming-from-xlearning.md")


def test_options_of_submarine() -> None:
    options = {f"--{option}" for option in OPTIONS if option != "f"} | {"-f"}
    assert options <= first_column("coming-from-submarine.md")
