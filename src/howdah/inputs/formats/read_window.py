"""A piece of a file in memory, in which many records lie whole: it moves on by a MiB, or by as much as one record."""

from __future__ import annotations

from typing import Protocol

from howdah.inputs.formats import writables
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt


class WindowSource(Protocol):
    """What is read: a file, or one that has only `read`."""

    def read(self, size: int, /) -> bytes:
        """About `size` bytes; none at the end."""

    def seek(self, position: int, /) -> int:
        """Go on at `position`."""


class ReadWindow:
    """`data` from file position `base` on, of which `at` is the next byte to take. Nothing larger than `limit` is
    taken. Errors are ValueError for the caller to place, and `Corrupt` for a file that is cut."""

    def __init__(self, file: WindowSource, uri: str, limit: int) -> None:
        self._file, self.uri, self.limit = file, uri, limit
        self.data, self.base, self.at = b"", 0, 0

    @property
    def position(self) -> int:
        """In the file, of the next byte."""
        return self.base + self.at

    @property
    def size(self) -> int:
        """Bytes in memory that were not taken yet."""
        return len(self.data) - self.at

    def seek(self, position: int) -> None:
        """Go on from there."""
        if self.base <= position <= self.base + len(self.data):
            self.at = position - self.base
        else:
            self._file.seek(position)
            self.data, self.base, self.at = b"", position, 0

    def need(self, size: int, optional: bool = False) -> bool:
        """Have `size` bytes in memory. Whether they are there, if that is `optional`, else Corrupt."""
        parts, have = [], self.size
        if have >= size:
            return True
        parts.append(self.data[self.at :])
        while have < size:
            more = self._file.read(max(PIECE_BYTES, size - have))
            if not more:
                break
            parts.append(more)
            have += len(more)
        self.base += self.at
        self.data, self.at = b"".join(parts), 0
        if have < size and not optional:
            self.cut(size)
        return have >= size

    def cut(self, wanted: int) -> None:
        """Raises Corrupt: the file ends too early."""
        problem = f"the file is cut: {self.size} bytes are left of the {wanted} or more of a record that begins here"
        raise Corrupt.at(self.uri, self.position, problem)

    def read_exactly(self, size: int) -> bytes:
        """The next `size` bytes."""
        if not 0 <= size <= self.limit:
            raise ValueError(f"a length of {size} bytes, allowed are {self.limit} (max_record)")
        self.need(size)
        self.at += size
        return self.data[self.at - size : self.at]

    def vint(self) -> int:
        """The next number of variable length."""
        self.need(9, optional=True)
        try:
            value, self.at = writables.vint(self.data, self.at)
        except IndexError:
            self.cut(1)
            raise
        return value

    def text(self) -> str:
        """The next Text."""
        return self.read_exactly(self.vint()).decode("utf-8", "replace")

    def find(self, pattern: bytes, end: int) -> bool:
        """Go to the next `pattern` that begins before file position `end`; whether there is one."""
        while self.position < end:
            found = self.data.find(pattern, self.at)
            if found >= 0:
                self.at = found
                return self.position < end
            self.at = max(self.at, len(self.data) - len(pattern) + 1)
            if not self.need(len(pattern), optional=True):
                return False
        return False
