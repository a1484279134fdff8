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
