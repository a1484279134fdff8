"""What is kept in memory of a stream: its last lines, and the progress it reports. Any bytes may come."""

from __future__ import annotations

import re
from typing import Optional, Tuple

LAST_BYTES = 4096
LAST_LINES = 20
_CARRY = 96
_PROGRESS = re.compile(rb"(?:reporter progress:|howdah progress )[ \t]*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%?)[ \t]*[\r\n]")


class Tail:
    """Fed with every piece of a stream, in order. `progress` is 0..1, None as long as nothing was reported."""

    def __init__(self) -> None:
        self.progress: Optional[float] = None
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Costs a search for a short word and a copy of at most 4 KiB, whatever the size of `data`."""
        if b"progress" in data or b"progress" in self._last[-_CARRY:]:
            self._look(self._last[-_CARRY:] + data)
        elif self._last:
            self._look(self._last[-_CARRY:] + data[:_CARRY])
        self._last = data[-LAST_BYTES:] if len(data) >= LAST_BYTES else (self._last + data)[-LAST_BYTES:]

    def lines(self) -> Tuple[str, ...]:
        """The last lines as people can read them: undecodable and control bytes are escaped, and of a line that was
        overwritten with carriage returns only what was seen last is kept."""
        text = self._last.decode("utf-8", "backslashreplace")
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
        readable = [_printable(line) for line in lines]
        while readable and not readable[-1].strip():
            readable.pop()
        return tuple(readable[-LAST_LINES:])

    def contains(self, *words: bytes) -> bool:
        """Whether one of `words` (lower case) is in the last 4 KiB."""
        last = self._last.lower()
        return any(word in last for word in words)

    def _look(self, data: bytes) -> None:
        for match in _PROGRESS.finditer(data):
            value = float(match.group(1)) / (100.0 if match.group(2) else 1.0)
            self.progress = min(1.0, value)


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(one if one.isprintable() or one == "\t" else f"\\x{ord(one):02x}" for one in line)
