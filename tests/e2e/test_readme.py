"""Tests that the README's console blocks, run in order, print what the README says.

A printed line counts as true when a line of the real output matches it, where numbers, ids, times and the user's name
may differ, `…` stands for anything, and a state RUNNING may still be PENDING. Lines that the README leaves out are not
looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from howdah.sandbox import Sandbox

ROOT = Path(__file__).parents[2]
SKIPPED = {
    "make demo": "the command below it is what it runs",
    "pip install": "this is a test of what is installed",
}
EXIT_CODES = {"--queue defualt": 77, "replcas": 64, "memory=256MiB": 1}
ALREADY_UP = "howdah sandbox up"
LONG = " --set 'roles.chief.command=python train.py --epochs 5000'"
VARIABLE = re.compile(
    r"(?P<id>local-\d{8}-\d{6}-[0-9a-f]{4}|application_\d+_\d+)|(?P<state>RUNNING)"
    r"|(?P<user>\broot\b)|(?P<any>…)|(?P<used>(?:\s{2,}\d+ MiB)+)|(?P<number>\d+(?:\.\d+)?)|(?P<space>\s{2,})"
)
PATTERNS = {
    "state": "(?:RUNNING|PENDING)",
    "user": r"\S+",
    "any": ".*",
    "used": r"(?:\s+\d+ MiB)*",  # a task that has just begun has not said yet
    "number": r"\d+(?:\.\d+)?",  # 350 MiB or 348.6
    "space": r"\s+",
}

pytestmark = pytest.mark.timeout(900)


@dataclass
class Step:
    """A command and the lines that are printed below it."""

    command: str
    printed: list[str] = field(default_factory=list)


def steps(name: str) -> list[Step]:
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.M | re.S):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:]))
            else:
                found[-1].printed.append(line)
    return found


@dataclass
class Reader:
    """Somebody who types what is printed; `ids` are the ids that the README's stand for."""

    environment: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    def follow(self, step: Step) -> None:
        if step.command.startswith(tuple(SKIPPED)):
            return
        submits = step.command.startswith("howdah submit")
        # Ten epochs end while a slow machine starts the commands that look at them.
        code, output = self.type(step.command + LONG * submits)
        expected = next((code for words, code in EXIT_CODES.items() if words in step.command), 0)
        assert code == expected, f"{step.command}\n{output}"
        # The tests share one sandbox, so that it is up already: only the last line is the same.
        for line in step.printed[-1:] if step.command == ALREADY_UP else step.printed:
            assert self.finds(line, output), f"{step.command}\nprints no line like\n{line}\nbut\n{output}"
        if submits:
            self.wait_for_words(self.ids[step.printed[0]])

    def type(self, command: str) -> tuple[int, str]:
        for readme, real in self.ids.items():
            command = command.replace(readme, real)
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=600,
        )
        return done.returncode, done.stdout

    def finds(self, line: str, output: str) -> bool:
        """Whether a line of the output is like `line`; ids that are new in it are remembered."""
        names: list[str] = []
        match = re.search(f"^{self.pattern(line, names)}$", output, re.MULTILINE)
        if match:
            self.ids.update(zip(names, match.groups(), strict=True))
        return match is not None

    def pattern(self, line: str, names: list[str]) -> str:
        return "".join(self.parts(line, names)) + r"\s*"

    def parts(self, line: str, names: list[str]) -> Iterator[str]:
        end = 0
        for match in VARIABLE.finditer(line):
            yield re.escape(line[end : match.start()])
            end = match.end()
            kind, text = str(match.lastgroup), match.group()
            if kind != "id":
                yield PATTERNS[kind]
            elif text in self.ids:
                yield re.escape(self.ids[text])
            else:
                names.append(text)
                yield r"((?:local-|application_)[\w-]+)"
        yield re.escape(line[end:])

    def wait_for_words(self, job_id: str) -> None:
        """A reader takes a moment until the next command: the job runs by then, and TensorFlow has warned of something
        on its standard error, to which it writes after the program's first line."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if "==> worker:1 stderr <==" in self.type(f"howdah logs {job_id} worker:1")[1]:
                return
            time.sleep(0.2)
        raise AssertionError(self.type(f"howdah status {job_id}"))


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
    return Reader({**kept, "PATH": path, "HOWDAH_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"})


def test_what_is_printed_is_what_happens(reader: Reader) -> None:
    for step in steps("README.md"):
        reader.follow(step)


def test_the_chinese_readme_shows_the_same() -> None:
    def bare(name: str) -> list[Step]:
        return [Step(step.command.partition(" #")[0].rstrip(), step.printed) for step in steps(name)]

    assert bare("README.zh-CN.md") == bare("README.md")
