"""Tests that the README's console blocks, run in order, print what the README says."""

from __future__ import annotations

from pathlib import Path

import pytest
from printed_commands import Reader, Step, console_steps, readers_variables

from howdah.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
SKIPPED = {
    "make demo": "the command below it is what it runs",
    "pip install": "this is a test of what is installed",
}
EXIT_CODES = {"--queue defualt": 77, "replcas": 64, "memory=256MiB": 1}
ALREADY_UP = "howdah sandbox up"
LONG = " --set 'roles.chief.command=python train.py --epochs 5000'"

pytestmark = pytest.mark.timeout(900)


def steps(name: str) -> list[Step]:
    return console_steps((ROOT / name).read_text(encoding="utf-8"))


def follow(reader: Reader, step: Step) -> None:
    if step.command.startswith(tuple(SKIPPED)):
        return
    submits = step.command.startswith("howdah submit")
    code = next((code for words, code in EXIT_CODES.items() if words in step.command), 0)
    # The tests share one sandbox, so that it is up already: only the last line is the same.
    printed = step.printed[-1:] if step.command == ALREADY_UP else step.printed
    # Ten epochs end while a slow machine starts the commands that look at them.
    reader.follow(Step(step.command + LONG * submits, printed), code)
    if submits:
        # A reader takes a moment until the next command: the job runs by then, and TensorFlow has warned of something
        # on its standard error, to which it writes after the program's first line.
        reader.wait_for("==> worker:1 stderr <==", f"howdah logs {reader.ids[step.printed[0]]} worker:1")


@pytest.fixture
def reader(sandbox: Sandbox, tmp_path: Path) -> Reader:
    """With a home of their own."""
    return Reader(readers_variables(tmp_path, sandbox.run_dir), ROOT)


def test_what_is_printed_is_what_happens(reader: Reader) -> None:
    for step in steps("README.md"):
        follow(reader, step)


def test_the_chinese_readme_shows_the_same() -> None:
    def bare(name: str) -> list[Step]:
        return [Step(step.command.partition(" #")[0].rstrip(), step.printed) for step in steps(name)]

    assert bare("README.zh-CN.md") == bare("README.md")
