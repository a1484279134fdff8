"""The interfaces of a record format: a reader and a writer, for howdah's own formats and for others'.

The rule: a record has the same form on a program's standard input, whichever format it comes from, and each record of a
file is in exactly one of the file's splits. Libraries are imported by the formats that need them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from howdah.errors import StagingError
from howdah.spec.staged import Split
from howdah.storage.filesystem import FileSystem, Sink

Piece = bytes | bytearray | memoryview
PIECE_BYTES = 1 << 20
"""The approximate size of a piece that `blocks` yields: large enough to do nothing per record, small enough for a
pipe."""


class Corrupt(StagingError):
    """A file's content does not fit its format. The message names the file and the byte where the error was found."""

    @classmethod
    def at(cls, uri: str, offset: int, problem: str) -> Corrupt:
        """Return the error. `offset` counts the file's own bytes; in a compressed file these are the compressed
        bytes."""
        return cls(f"{uri}: at byte {offset}: {problem}")


class RecordReader(ABC):
    """Reads the records of one stream; it is made with the stream's options. Only `records` must be implemented.

    All methods raise StagingError with the file's URI, and `Corrupt` for wrong content.
    """

    def splits(self, fs: FileSystem, uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
        """Cut a file of `size` bytes into splits of about `wanted_bytes` (0: as large as its blocks).

        No split crosses a block border when `block_size` (0: unknown) is larger than `wanted_bytes`. A file that cannot
        be cut is one split, and an empty file has none. `fs` is used only where the content must be read (`lines`). The
        caller fills in the splits' `hosts`.
        """
        return [Split(uri, 0, size)] if size else []

    def prologue(self, fs: FileSystem, split: Split) -> bytes:
        """Return the bytes at the beginning of a stream, which come once, before all records of all epochs; `split` is
        its first."""
        return b""

    def blocks(self, fs: FileSystem, split: Split) -> Iterator[Piece]:
        """Yield the split's records in pieces of about PIECE_BYTES; a piece may end within a record."""
        return join_blocks(self.records(fs, split))

    @abstractmethod
    def records(self, fs: FileSystem, split: Split) -> Iterator[bytes]:
        """Yield the split's records in their form on standard input: with line end or frame."""


class RecordWriter(ABC):
    """Writes one part file from the program's output; it is made with the options and a sink."""

    suffix: str = ""
    """The extension of part files. A function that makes a writer may have this attribute, too."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write the next bytes of the program's standard output, which may end within a record."""

    @abstractmethod
    def close(self) -> None:
        """Write the remaining bytes, so that the file is complete. The sink stays open: the caller closes it.

        Raises:
            Corrupt: the program's output ends within a record.
        """


def join_blocks(pieces: Iterable[Piece], size: int = PIECE_BYTES) -> Iterator[bytes]:
    """Join records or pieces to blocks of about `size` bytes."""
    held: list[Piece] = []
    held_bytes = 0
    for piece in pieces:
        held.append(piece)
        held_bytes += len(piece)
        if held_bytes >= size:
            yield b"".join(held)
            held.clear()
            held_bytes = 0
    if held:
        yield b"".join(held)


def cut_splits(uri: str, size: int, block_size: int, wanted_bytes: int) -> list[Split]:
    """Return splits of about `wanted_bytes` that follow block borders: whole blocks, or equal parts of each block."""
    block = block_size if block_size > 0 else wanted_bytes or max(size, 1)
    wanted = wanted_bytes if wanted_bytes > 0 else block
    if wanted >= block:
        borders = list(range(0, size, block * (wanted // block)))
    else:
        parts = -(-block // wanted)
        borders = [at + block * n // parts for at in range(0, size, block) for n in range(parts)]
        borders = [border for border in borders if border < size]
    # A last part of less than a tenth is not worth a start of its own (Hadoop's SPLIT_SLOP).
    if len(borders) > 1 and size - borders[-1] < min(wanted, block) // 10:
        borders.pop()
    return [Split(uri, at, end - at) for at, end in zip(borders, [*borders[1:], size], strict=False)]


__all__ = [
    "PIECE_BYTES",
    "Corrupt",
    "Piece",
    "RecordReader",
    "RecordWriter",
    "Sink",
    "Split",
    "cut_splits",
    "join_blocks",
]
