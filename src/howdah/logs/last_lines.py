"""The last lines of what a program printed, for the message about its end. Any bytes may come."""

from __future__ import annotations

LAST_BYTES = 4096
LAST_LINES = 20


def readable(data: bytes) -> tuple[str, ...]:
    """The last lines of `data`: undecodable and control bytes are escaped, and of a line that was overwritten with
    carriage returns only what was seen last is kept."""
    text = data.decode("utf-8", "backslashreplace")
    lines = [_printable(line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines[-LAST_LINES:])


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() or one == "\t" else f"\\x{ord(one):02x}" for one in line)
