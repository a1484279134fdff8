"""Tests that the README's console blocks, run in order, print what the README says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from printed_commands import Reader, Step, console_steps

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
    """With a home of their own, in which the sandbox is everybody's and so are the environments, for they are big."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "howdah", "environments")
    cache.mkdir(parents=True, exist_ok=True)
    for name, target in (("cache/environments", cache), ("state/sandbox", sandbox.run_dir)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).symlink_to(target)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOWDAH_", "HADOOP_", "LC_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return Reader({**kept, "PATH": path, "HOWDAH_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}, ROOT)


def test_what_is_printed_is_what_happens(reader: Reader) -> None:
    for step in steps("README.md"):
        follow(reader, step)


def test_the_chinese_readme_shows_the_same() -> None:
    def bare(name: str) -> list[Step]:
        return [Step(step.command.partition(" #")[0].rstrip(), step.printed) for step in steps(name)]

    assert bare("README.zh-CN.md") == bare("README.md")
