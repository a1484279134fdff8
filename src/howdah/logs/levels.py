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
"""The beginning of glog's lines, which also shows a level: a letter, the month and the day."""

_RANK = re.compile(
    rb"\s*(?:\[[\w.:,-]{1,40}\](?:<\w{1,20}>)?|\([^()]{1,60} pid=\d{1,9}[^()]{0,60}\)|"
    rb"\w{1,20}[_:-]?\d{1,6}\s*[:|>]|\d{1,6}:)[: |>]*"
)
"""The prefix that launchers write before each line of a rank: `[rank0]: `, `[1,3]<stderr>:`, `(train pid=7) `,
`worker:1 | `."""


def level_of(line: bytes) -> str:
    """Return the level of a line, "" when it has none."""
    return next((level for level in LEVELS if _has_level(level, line)), "")


def _has_level(level: str, line: bytes) -> bool:
    begins = line.startswith(BEGINNINGS[level]) and re.match(DAY, line[2:]) is not None
    return begins or any(word in line for word in LEVELS[level])


class Traceback:
    """Follows Python tracebacks in a stream, line by line. Each line may begin with a rank, and the tracebacks of
    several ranks may be interleaved."""

    _BEGIN = b"Traceback (most recent call last):"
    _MAX_OPEN = 64

    def __init__(self) -> None:
        self._open: dict[bytes, None] = {}  # what stands before each line; the latest is the last

    @property
    def goes_on(self) -> bool:
        """Return whether a traceback has begun and has not ended yet."""
        return bool(self._open)

    def add(self, line: bytes) -> bool:
        """Return whether the next line of the stream belongs to a traceback, from its beginning to the exception."""
        begin = line.find(self._BEGIN)
        if begin >= 0:
            before = line[:begin]
            # A progress bar or a logger's time stands before the first line alone: the frames begin with blanks.
            self._open[before if _RANK.fullmatch(before) else b""] = None
            if len(self._open) > self._MAX_OPEN:
                del self._open[next(iter(self._open))]
            return True
        prefix = max((prefix for prefix in self._open if line.startswith(prefix)), key=len, default=None)
        if prefix is None:
            return False
        rest = line[len(prefix) :]
        if not prefix and _RANK.match(line):
            return False  # another rank's line, between those of one that has no rank before its lines
        if not rest.startswith((b" ", b"\t")):
            del self._open[prefix]  # the line with the exception, or a line of something else
        return bool(rest.strip())
