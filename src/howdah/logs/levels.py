"""The level of a log line, from words that programs write in many ways. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping

LEVELS: Mapping[str, tuple[bytes, ...]] = {
    "error": (
        b"error",
        b"Error",
        b"ERROR",
        b"xception",
        b"Traceback",
        b"FATAL",
        b"Fatal",
        b"fatal",
        b"CRITICAL",
        b"Segmentation fault",
        b": E ",
    ),
    "warning": (b"warn", b"Warn", b"WARN", b": W "),
}
"""Words that give a line its level. A search for warnings finds errors, too. The page colours lines by the same words
(frontend/src/logs/logLines.ts)."""
BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {"error": (b"E0", b"E1", b"F0", b"F1"), "warning": (b"W0", b"W1")}
DAY = rb"\d[0-3]\d "
"""How lines of glog begin, which also give a level: a letter, the month and the day."""


def level_of(line: bytes) -> str:
    """Return the level of a line, "" when it has none."""
    return next((level for level in LEVELS if _has_level(level, line)), "")


def _has_level(level: str, line: bytes) -> bool:
    begins = line.startswith(BEGINNINGS[level]) and re.match(DAY, line[2:]) is not None
    return begins or any(word in line for word in LEVELS[level])


class Traceback:
    """Follows a Python traceback in a stream, line by line. A rank, or other text, may stand before each line."""

    _BEGIN = b"Traceback (most recent call last):"

    def __init__(self) -> None:
        self._prefix: bytes | None = None

    @property
    def goes_on(self) -> bool:
        """Return whether the last line that was added lies in a traceback, and is not its end."""
        return self._prefix is not None

    def add(self, line: bytes) -> bool:
        """Return whether the next line of the stream belongs to a traceback, from its beginning to the exception."""
        begin = line.find(self._BEGIN)
        if begin >= 0:
            self._prefix = line[:begin]
            return True
        if self._prefix is None:
            return False
        rest = line[len(self._prefix) :] if line.startswith(self._prefix) else b""
        if not rest.startswith((b" ", b"\t")):
            self._prefix = None  # the line with the exception, or a line of something else
        return bool(rest.strip())
