"""The last lines of what a program printed, for the message about its end."""

from __future__ import annotations

LAST_BYTES = 4096
LAST_LINES = 20


def readable(data: bytes) -> tuple[str, ...]:
    """Return the last lines of `data`, which may hold any bytes. Undecodable and control bytes are escaped; a line that
    was overwritten with carriage returns is cut to what was visible last."""
    text = data.decode("utf-8", "backslashreplace")
    lines = [_printable(line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines[-LAST_LINES:])


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() or char == "\t" else f"\\x{ord(char):02x}" for char in line)
