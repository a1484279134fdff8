"""What a reader of a record format and a writer of one are, for howdah's own and for strangers'.

The rule: a record has one form on a program's standard input, whichever way it was read, and each record of a file is
in exactly one of the file's splits. Libraries are imported by the formats that need them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from howdah.errors import StagingError
from howdah.spec.staged import Split
from howdah.storage.filesystem import FileSystem, Sink

Piece = bytes | bytearray | memoryview
PIECE_BYTES = 1 << 20
"""About how much `blocks` gives at a time: large enough that nothing is done per record, small enough for a pipe."""


class Corrupt(StagingError):
    """A file's content is not what its format says. The message names the file and the byte where that was seen."""

    @classmethod
    def at(cls, uri: str, offset: int, problem: str) -> Corrupt:
        """`offset` counts the file's own bytes, compressed ones in a compressed file."""
        return cls(f"{uri}: at byte {offset}: {problem}")


class RecordReader(ABC):
    """Made once per stream with its options (`reader(name, options)`); a stranger's need only implement `records`.

    All methods raise StagingError, `Corrupt` for content, with the file's URI.
    """

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        """Cut a file of `size` bytes into parts of about `wanted_bytes` (0: as large as its blocks).

        No part crosses a block border when `block_size` (0: not known) is larger than `wanted_bytes`; what can't be
        cut is one part. An empty file has no parts. `fs` is asked only where the content must be seen (`lines`). The
        splits' `hosts` are left to the caller.
        """
        return [Split(uri, 0, size)] if size else []

    def prologue(self, fs: FileSystem, split: Split) -> bytes:
        """What a stream whose first split is `split` begins with, once, before all records of all epochs."""
        return b""

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        """The split's records one after another, in pieces of about PIECE_BYTES; a piece may end within a record."""
        return joined(self.records(fs, split))

    @abstractmethod
    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        """The split's records, each in the form it has on standard input: with its line end or its frame."""


class RecordWriter(ABC):
    """Made once per part file with options and a sink; takes what the program prints, cut anywhere.

    A class (or the stranger's function that makes one) has `suffix`, the end of the part files' names.
    """

    suffix: str = ""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Take the next bytes of the program's standard output."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left: the file is complete then. The sink stays open, whoever made it closes it.

        Raises:
            Corrupt: what the program printed last is not a whole record.
        """


def joined(records: Iterable[bytes]) -> Iterator[bytes]:
    """Records put together to pieces of about PIECE_BYTES."""
    held: list[bytes] = []
    size = 0
    for record in records:
        held.append(record)
        size += len(record)
        if size >= PIECE_BYTES:
            yield b"".join(held)
            held.clear()
            size = 0
    if held:
        yield b"".join(held)


def cut(uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
    """Parts of about `wanted_bytes` that follow block borders: whole blocks, or equal parts of each block."""
    block = block_size if block_size > 0 else wanted_bytes or max(size, 1)
    wanted = wanted_bytes if wanted_bytes > 0 else block
    if wanted >= block:
        step = block * (wanted // block)
        borders = list(range(0, size, step))
    else:
        parts = -(-block // wanted)
        borders = [at + block * n // parts for at in range(0, size, block) for n in range(parts)]
        borders = [border for border in borders if border < size]
    # A last part of less than a tenth is not worth a start of its own (Hadoop's SPLIT_SLOP).
    if len(borders) > 1 and size - borders[-1] < min(wanted, block) // 10:
        borders.pop()
    return [Split(uri, at, end - at) for at, end in zip(borders, [*borders[1:], size], strict=False)]


__all__ = ["PIECE_BYTES", "Corrupt", "Piece", "RecordReader", "RecordWriter", "Sink", "Split", "cut", "joined"]
