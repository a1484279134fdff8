"""Reads docs/tutorial.md: its steps, the files that a reader writes, and the commands below them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from printed_commands import BLOCK, Reader, Step, steps_of

ROOT = Path(__file__).parents[2]
SKIPPED = {
    "mkdir digits": "a test has a directory already",
    "pip install": "what a test imports is installed",
    "export HADOOP_CONF_DIR": "a test's cluster has another one",
}
CLONE = "~/howdah"
FILE = re.compile(r"`([\w.]+\.(?:py|txt|yaml))`[^`\n]*[:：]\n\Z")


class Part(NamedTuple):
    """A file to write, or a command to type."""

    file: str
    text: str
    step: Step | None = None


def sections(name: str) -> list[list[Part]]:
    """Return the files and commands of each of the page's numbered steps, in order."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    return [_parts(section) for section in re.split(r"^## \d+\. ", text, flags=re.M)[1:]]


def _parts(section: str) -> list[Part]:
    found: list[Part] = []
    for match in BLOCK.finditer(section):
        language, block = match.groups()
        if language == "console":
            found += [Part("", "", step) for step in steps_of(block)]
        else:
            named = FILE.search(section[: match.start()].rstrip("\n") + "\n")
            assert named, f"no file is named before\n{block}"
            found.append(Part(named[1], block))
    return found


def write(part: Part, directory: Path) -> None:
    """Write a file as the page says: a job file without roles is appended to the existing one."""
    adds = part.file.endswith(".yaml") and "roles:" not in part.text
    with (directory / part.file).open("a" if adds else "w", encoding="utf-8") as file:
        file.write(part.text)


def follow(reader: Reader, section: list[Part], code: int = 0) -> None:
    """Do a step. `code` is the exit code of its first command."""
    for part in section:
        if part.step is None:
            write(part, reader.directory)
        elif not part.step.command.startswith(tuple(SKIPPED)):
            refused = any("exists already" in line for line in part.step.printed)
            reader.follow(part.step, 66 if refused else code)
            code = 0
            if part.step.command.startswith("howdah submit"):
                # A reader takes a moment until the next command: the program has kept a checkpoint by then.
                reader.wait_for("epoch 2", "howdah logs")
