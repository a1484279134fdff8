"""The last lines of a program's output, for the message about its end."""

from __future__ import annotations

from typing import NamedTuple

from howdah.logs.output_text import newest, readable

LAST_BYTES = 4096
LAST_LINES = 20
END_BYTES = 1 << 16
"""Bytes at a stream's end that are searched for a failure's cause: a traceback is longer than the lines that people
see."""
_OWN = "[howdah: "
"""The beginning of lines that howdah writes among a program's lines."""


def last_lines(data: bytes, limit: int = LAST_LINES) -> tuple[str, ...]:
    """Return the last lines of `data`, at most `limit`, as a terminal without colours shows them."""
    lines = [readable(line) for line in data.split(b"\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(lines[-limit:])


def choose_last_lines(stderr: tuple[str, ...], stdout: tuple[str, ...], limit: int = LAST_LINES) -> tuple[str, ...]:
    """Return the last lines of stderr, where programs report errors. If it has only howdah's own lines, because the
    program's go to stdout (`2>&1 | tee`), return those of stdout, followed by howdah's."""
    if all(line.startswith(_OWN) for line in stderr):
        return (*stdout, *stderr)[-limit:]
    return stderr


class OutputEnd(NamedTuple):
    """The end of a program's output, in which the reason of its end is searched."""

    lines: tuple[str, ...]
    is_stderr: bool = True
    """Whether the lines are those of stderr; lines of stdout may also be results."""


def output_end(stderr: bytes, stdout: bytes) -> OutputEnd:
    """Return the end of the stream that explains the failure (see `choose_last_lines`)."""
    said = last_lines(stderr, END_BYTES)
    lines = choose_last_lines(said, last_lines(stdout, END_BYTES), END_BYTES)
    return OutputEnd(lines, lines == said)


def cut_lines(data: bytes) -> bytes:
    """Return the last 64 KiB of `data` after cutting long lines: a single line could push out all lines that explain
    the failure."""
    if not _has_long_line(data):
        return data[-END_BYTES:]
    *lines, last = data.split(b"\n")
    cut = [newest(line)[:LAST_BYTES] for line in lines]
    cut.append(last[-LAST_BYTES:] if b"\r" in last else last[:LAST_BYTES])
    return b"\n".join(cut)[-END_BYTES:]


def _has_long_line(data: bytes) -> bool:
    """Return whether a line is longer than 4 KiB; this looks for one newline in each 4 KiB."""
    begin = 0
    while len(data) - begin > LAST_BYTES:
        newline = data.rfind(b"\n", begin, begin + LAST_BYTES + 1)
        if newline < 0:
            return True
        begin = newline + 1
    return False
