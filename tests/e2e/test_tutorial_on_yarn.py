"""Tests the tutorial's steps on a cluster as a reader would; tests/faults has those on this machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import tutorial_pages
from printed_commands import Reader, Step, readers_variables

from howdah.sandbox import Sandbox

BEFORE = slice(0, 6)
SANDBOX, CLUSTER = 6, 7
ALREADY_UP = "howdah sandbox up"


@pytest.fixture
def reader(sandbox: Sandbox, tmp_path: Path) -> Reader:
    """After the steps before the sandbox, with a home of their own."""
    directory = tmp_path / "digits"
    shutil.copytree(tutorial_pages.ROOT / "examples" / "data" / "digits", directory / "data")
    for section in tutorial_pages.sections("tutorial.md")[BEFORE]:
        for part in section:
            if part.file:
                tutorial_pages.write(part, directory)
    return Reader(readers_variables(tmp_path / "home", sandbox.run_dir), directory)


def test_what_is_printed_is_what_happens(sandbox: Sandbox, reader: Reader) -> None:
    steps = tutorial_pages.sections("tutorial.md")
    up, *others = steps[SANDBOX]
    assert up.step is not None
    assert up.step.command == ALREADY_UP
    # The tests share one sandbox, so that it is up already: only the last line is the same.
    reader.follow(Step(ALREADY_UP, up.step.printed[-1:]))
    tutorial_pages.follow(reader, others)
    on_the_cluster = {**reader.environment, "HADOOP_CONF_DIR": str(sandbox.conf_dir)}
    tutorial_pages.follow(replace(reader, environment=on_the_cluster), steps[CLUSTER])
