"""The last lines of what a program printed, for the message about its end."""

from __future__ import annotations

from howdah.logs.output_text import readable

LAST_BYTES = 4096
LAST_LINES = 20


def last_lines(data: bytes) -> tuple[str, ...]:
    """Return the last lines of `data`, as a terminal without colours shows them."""
    lines = [readable(line) for line in data.split(b"\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines[-LAST_LINES:])
