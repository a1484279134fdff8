"""Tests that the commands of each framework's tutorial print what it says, on this machine and on a YARN."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from printed_commands import Reader, console_steps, readers_variables

from howdah.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
PAGES = [page for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")) if ".zh-" not in page.name]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_printed_is_what_happens(page: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")  # in which models appear
    reader = Reader(readers_variables(tmp_path / "home", sandbox.run_dir), tmp_path)
    steps = [step for step in console_steps(page.read_text(encoding="utf-8")) if step.printed]
    assert len(steps) >= 2
    for step in steps:  # those that print nothing want GPUs, or a program of the reader's own
        reader.follow(step)
