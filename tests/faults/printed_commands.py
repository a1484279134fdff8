"""Follows the console blocks of a page as a reader would: types each command, and compares its output.

A printed line counts as true when a line of the real output matches it, where numbers, ids, times and the user's name
may differ, `…` stands for anything, and a state RUNNING may still be PENDING. Lines that the page leaves out are not
compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
VARIABLE = re.compile(
    r"(?P<id>local-\d{8}-\d{6}-[0-9a-f]{4}|application_\d+_\d+)|(?<=\"pid\":)(?P<pid>\d+)|(?P<state>RUNNING)"
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
NAMES = {"id": r"((?:local-|application_)[\w-]+)", "pid": r"(\d+)"}
"""Patterns of words that later commands may repeat."""


@dataclass
class Step:
    """A command and the lines that are printed below it."""

    command: str
    printed: list[str] = field(default_factory=list)


def readers_variables(home: Path, sandbox: Path | None = None) -> dict[str, str]:
    """Return the variables of a user whose jobs are in `home`. Large things are shared: environments, and the sandbox
    if its directory is given."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "howdah", "environments")
    cache.mkdir(parents=True, exist_ok=True)
    links = {"cache/environments": cache} | ({"state/sandbox": sandbox} if sandbox else {})
    for name, target in links.items():
        (home / name).parent.mkdir(parents=True)
        (home / name).symlink_to(target)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOWDAH_", "HADOOP_", "LC_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "HOWDAH_HOME": str(home), "LC_ALL": "C.UTF-8"}


def console_steps(text: str) -> list[Step]:
    """The commands of all console blocks of a page, in order."""
    return [step for language, block in BLOCK.findall(text) if language == "console" for step in steps_of(block)]


def steps_of(block: str) -> list[Step]:
    """The commands of one console block."""
    found: list[Step] = []
    for line in re.sub(r"\\\n\s*", "", block).splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:]))
        else:
            found[-1].printed.append(line)
    return found


@dataclass
class Reader:
    """A user who types the printed commands; `ids` maps ids and other words of the page to the real ones."""

    environment: Mapping[str, str]
    directory: Path
    ids: dict[str, str] = field(default_factory=dict)

    def follow(self, step: Step, code: int = 0) -> None:
        """Type a command, and compare its exit code and the lines that it prints."""
        ended, output = self.type(step.command)
        assert ended == code, f"{step.command}\n{output}"
        for line in step.printed:
            assert self.finds(line, output), f"{step.command}\nprints no line like\n{line}\nbut\n{output}"

    def type(self, command: str) -> tuple[int, str]:
        """Run a command to its end, and return its exit code and output."""
        for printed, real in self.ids.items():
            command = command.replace(printed, real)
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            env=self.environment,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=600,
        )
        return done.returncode, done.stdout

    def finds(self, line: str, output: str) -> bool:
        """Return whether a line of the output matches `line`; remember new ids in it."""
        names: list[str] = []
        match = re.search(f"^{self._pattern(line, names)}$", output, re.MULTILINE)
        if match:
            self.ids.update(zip(names, match.groups(), strict=True))
        return match is not None

    def wait_for(self, words: str, command: str) -> None:
        """Type a command until its output has the words."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            output = self.type(command)[1]
            if words in output:
                return
            time.sleep(0.2)
        raise AssertionError(f"{command} prints no {words}:\n{output}")

    def _pattern(self, line: str, names: list[str]) -> str:
        return "".join(self._parts(line, names)) + r"\s*"

    def _parts(self, line: str, names: list[str]) -> Iterator[str]:
        end = 0
        for match in VARIABLE.finditer(line):
            yield re.escape(line[end : match.start()])
            end = match.end()
            kind, text = str(match.lastgroup), match.group()
            if kind not in NAMES:
                yield PATTERNS[kind]
            elif text in self.ids:
                yield re.escape(self.ids[text])
            else:
                names.append(text)
                yield NAMES[kind]
        yield re.escape(line[end:])
