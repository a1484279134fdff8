"""What is kept in memory of a stream: its last lines, the progress it reports, and how often it asked for a copy of its
outputs. Any bytes may come."""

from __future__ import annotations

import re
from typing import Optional, Pattern, Tuple

from howdah.logs.last_lines import LAST_BYTES, readable

_CARRY = 96
_PROGRESS = re.compile(rb"(?:reporter progress:|howdah progress )[ \t]*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%?)[ \t]*[\r\n]")
_SAVE = re.compile(rb"(?:\A|[\r\n])(?:reporter|howdah) save[ \t]*[\r\n]")


class LogTail:
    """Fed with every piece of a stream, in order. `progress` is 0..1, None as long as nothing was reported; `saves`
    counts the lines `reporter save`."""

    def __init__(self) -> None:
        self.progress: Optional[float] = None
        self.saves = 0
        self._last = b""

    def feed(self, data: bytes) -> None:
        """Costs a search for a short word and a copy of at most 4 KiB, whatever the size of `data`."""
        if b"progress" in data or b"progress" in self._last[-_CARRY:]:
            self._look(self._last[-_CARRY:] + data)
        elif self._last:
            self._look(self._last[-_CARRY:] + data[:_CARRY])
        if b" save" in data or (self._last and b" save" in self._last[-_CARRY:] + data[:_CARRY]):
            self._count_saves(data)
        self._last = data[-LAST_BYTES:] if len(data) >= LAST_BYTES else (self._last + data)[-LAST_BYTES:]

    def lines(self) -> Tuple[str, ...]:
        """The last lines, as people can read them."""
        return readable(self._last)

    def contains(self, words: Pattern[bytes]) -> bool:
        """Whether they are in the last 4 KiB."""
        return words.search(self._last) is not None

    def _look(self, data: bytes) -> None:
        for match in _PROGRESS.finditer(data):
            value = float(match.group(1)) / (100.0 if match.group(2) else 1.0)
            self.progress = min(1.0, value)

    def _count_saves(self, data: bytes) -> None:
        """A line counts with the piece that ends it; one's end may be the beginning of the next."""
        carried = self._last[-_CARRY:]
        text, place = carried + data, 0
        while (match := _SAVE.search(text, place)) is not None:
            self.saves += match.end() > len(carried)
            place = match.end() - 1
