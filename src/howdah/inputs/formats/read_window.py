"""A section of a file in memory that has many whole records; it moves on by a MiB, or by the size of one record."""

from __future__ import annotations

from typing import Protocol

from howdah.inputs.formats import writables
from howdah.inputs.formats.base import PIECE_BYTES, Corrupt


class WindowSource(Protocol):
    """The source of a window: a file, or an object whose `seek` raises an error."""

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes; none at the end."""

    def seek(self, position: int, /) -> int:
        """Continue at `position`."""


class ReadWindow:
    """Holds `data`, which begins at file position `base`; the byte at `at` is read next.

    A record of more than `limit` bytes is refused. Errors are ValueError, to which the caller adds the position, and
    `Corrupt` for a file that ends too early.
    """

    def __init__(self, file: WindowSource, uri: str, limit: int) -> None:
        self._file, self.uri, self.limit = file, uri, limit
        self.data, self.base, self.at = b"", 0, 0

    @property
    def position(self) -> int:
        """Return the file position of the next byte."""
        return self.base + self.at

    @property
    def size(self) -> int:
        """Return the number of bytes in memory that were not read yet."""
        return len(self.data) - self.at

    def seek(self, position: int) -> None:
        """Continue at a file position."""
        if self.base <= position <= self.base + len(self.data):
            self.at = position - self.base
        else:
            self._file.seek(position)
            self.data, self.base, self.at = b"", position, 0

    def need(self, size: int, optional: bool = False) -> bool:
        """Bring `size` bytes into memory; return whether the file has them. Raise Corrupt if it has not, unless
        `optional` is true."""
        available = self.size
        if available >= size:
            return True
        parts = [self.data[self.at :]]
        while available < size and (more := self._file.read(max(PIECE_BYTES, size - available))):
            parts.append(more)
            available += len(more)
        self.base += self.at
        self.data, self.at = b"".join(parts), 0
        if available < size and not optional:
            self.raise_cut(size)
        return available >= size

    def raise_cut(self, wanted: int) -> None:
        """Raise Corrupt: the file ends too early."""
        problem = f"the file is cut: {self.size} bytes are left of the {wanted} or more of a record that begins here"
        raise Corrupt.at(self.uri, self.position, problem)

    def read_exactly(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if not 0 <= size <= self.limit:
            raise ValueError(f"a length of {size} bytes, allowed are {self.limit} (max_record)")
        self.need(size)
        self.at += size
        return self.data[self.at - size : self.at]

    def vint(self) -> int:
        """Return the next number of variable length."""
        self.need(9, optional=True)
        try:
            value, self.at = writables.vint(self.data, self.at)
        except IndexError:
            self.raise_cut(1)
            raise
        return value

    def text(self) -> str:
        """Return the next Text."""
        return self.read_exactly(self.vint()).decode("utf-8", "replace")

    def find(self, pattern: bytes, end: int) -> bool:
        """Go to the next `pattern` that begins before file position `end`; return whether there is one."""
        while self.position < end:
            found = self.data.find(pattern, self.at)
            if found >= 0:
                self.at = found
                return self.position < end
            self.at = max(self.at, len(self.data) - len(pattern) + 1)
            if not self.need(len(pattern), optional=True):
                return False
        return False
