"""Values that a program announces for later ones: found in its standard output, line by line."""

from __future__ import annotations

from typing import Dict, Mapping

LONGEST = 64 << 10
"""A longer line is passed over: half a value is none, and no variable may be much longer."""


class AnnouncedValues:
    """Fed with every piece of a stream, in order. `found` has the first value of each variable in `wanted`, which
    gives the words that stand before it."""

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self.found: Dict[str, str] = {}
        self._wanted = {name: words.encode() for name, words in wanted.items()}
        self._line = b""
        self._too_long = False

    def feed(self, data: bytes) -> None:
        """Costs nothing once all is found, or when nothing is wanted."""
        if len(self.found) == len(self._wanted):
            return
        first, newline, rest = data.partition(b"\n")
        if not newline:
            self._keep(data)
            return
        if not self._too_long:
            self._look(self._line + first)
        *lines, last = rest.split(b"\n")
        for line in lines:
            self._look(line)
        self._line, self._too_long = b"", False
        self._keep(last)

    def end(self) -> None:
        """No more comes: a last line needs no line end."""
        if not self._too_long:
            self._look(self._line)

    def _keep(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(part) > LONGEST
        self._line = b"" if self._too_long else self._line + part

    def _look(self, line: bytes) -> None:
        if len(line) > LONGEST:
            return
        for name, words in self._wanted.items():
            if name not in self.found and words in line:
                value = line.partition(words)[2].rstrip(b"\r")
                self.found[name] = value.decode("utf-8", "replace").replace("\0", "")
