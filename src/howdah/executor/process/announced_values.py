"""Finds in a program's standard output, line by line, the values that it announces for later roles."""

from __future__ import annotations

from typing import Dict, Mapping

MAX_LINE = 64 << 10
"""A longer line is skipped: half a value is useless, and no variable may be much longer."""


class AnnouncedValues:
    """Takes every piece of a stream, in order, and puts the first value of each variable into `found`.

    `wanted` maps each variable to the words that stand before its value.
    """

    def __init__(self, wanted: Mapping[str, str]) -> None:
        self.found: Dict[str, str] = {}
        self._wanted = {name: words.encode() for name, words in wanted.items()}
        self._line = b""
        self._too_long = False

    def feed(self, data: bytes) -> None:
        """Search one piece; this costs nothing when all variables are found."""
        if len(self.found) == len(self._wanted):
            return
        first, newline, rest = data.partition(b"\n")
        if not newline:
            self._append_to_line(data)
            return
        if not self._too_long:
            self._find_values(self._line + first)
        *lines, last = rest.split(b"\n")
        for line in lines:
            self._find_values(line)
        self._line, self._too_long = b"", False
        self._append_to_line(last)

    def end(self) -> None:
        """Search the last line, which needs no line end."""
        if not self._too_long:
            self._find_values(self._line)

    def _append_to_line(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(part) > MAX_LINE
        self._line = b"" if self._too_long else self._line + part

    def _find_values(self, line: bytes) -> None:
        if len(line) > MAX_LINE:
            return
        for name, words in self._wanted.items():
            if name not in self.found and words in line:
                value = line.partition(words)[2].rstrip(b"\r")
                self.found[name] = value.decode("utf-8", "replace").replace("\0", "")
