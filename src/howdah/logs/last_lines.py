"""The last lines of what a program printed, for the message about its end."""

from __future__ import annotations

from howdah.logs.output_text import readable

LAST_BYTES = 4096
LAST_LINES = 20
_OWN = "[howdah: "
"""How the lines begin that howdah writes among a program's."""


def last_lines(data: bytes) -> tuple[str, ...]:
    """Return the last lines of `data`, as a terminal without colours shows them."""
    lines = [readable(line) for line in data.split(b"\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines[-LAST_LINES:])


def choose_last_lines(stderr: tuple[str, ...], stdout: tuple[str, ...]) -> tuple[str, ...]:
    """Return the last lines of stderr, where programs say what went wrong. If only howdah's own lines are there, since
    the program's go to stdout (`2>&1 | tee`), return those of stdout with howdah's after them."""
    if all(line.startswith(_OWN) for line in stderr):
        return (*stdout, *stderr)[-LAST_LINES:]
    return stderr
