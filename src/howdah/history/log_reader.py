"""Whole lines of a file that grows, in memory that does not grow with a line's length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LONGEST = 4 << 20
"""Bytes of a line that is still read: JobStarted, with the whole spec, is the longest that a master writes."""


@dataclass
class LineReader:
    """`offset` is where the first line not told yet begins; while `skipping`, in the middle of one too long to tell.

    `passed_over` counts those.
    """

    offset: int = 0
    skipping: bool = False
    passed_over: int = 0

    def lines(self, pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Lines without their ends, of `pieces` that begin at `offset`. One that is not ended is left for later."""
        rest = b""
        for piece in pieces:
            data = rest + piece
            *whole, rest = data.split(b"\n")
            self.offset += len(data) - len(rest)
            if self.skipping and whole:
                self.skipping, whole = False, whole[1:]
            if self.skipping or len(rest) > LONGEST:
                self.passed_over += not self.skipping
                self.skipping = True
                self.offset += len(rest)
                rest = b""
            if whole:
                yield whole
