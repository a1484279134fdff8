"""Tests the tutorial's steps on this machine as a reader would: files are written, commands typed, output compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import local_jobs
import pytest
import tutorial_pages
from printed_commands import Reader, readers_variables

SANDBOX, CLUSTER, FAILURE = 7, 8, 9


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """In an empty directory, with a home of their own."""
    directory = tmp_path / "digits"
    directory.mkdir()
    with local_jobs.howdah_home(tmp_path / "home") as home:
        yield Reader(readers_variables(home), directory, {tutorial_pages.CLONE: str(tutorial_pages.ROOT)})


@pytest.mark.timeout(600)
def test_what_is_printed_is_what_happens(reader: Reader) -> None:
    steps = tutorial_pages.sections("tutorial.md")
    assert len(steps) == 10
    for number, section in enumerate(steps, 1):
        if number not in (SANDBOX, CLUSTER):
            tutorial_pages.follow(reader, section, code=1 if number == FAILURE else 0)


def test_the_chinese_tutorial_asks_for_the_same() -> None:
    def bare(name: str) -> list[list[tuple[object, ...]]]:
        return [
            [
                (part.file, [line.partition("#")[0].rstrip() for line in part.text.splitlines()], part.step)
                for part in one
            ]
            for one in tutorial_pages.sections(name)
        ]

    assert bare("tutorial.zh-CN.md") == bare("tutorial.md")
