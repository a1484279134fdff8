"""Writes files of record formats for tests, and reads them whole or split by split."""

from __future__ import annotations

from pathlib import Path

from howdah.inputs.formats import RecordReader, Split, writer
from howdah.spec import uris
from howdah.storage.local import LocalFileSystem

FS = LocalFileSystem()


class Bytes:
    """Keeps the bytes that are written to it."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes | memoryview, /) -> None:
        self.data += bytes(data)

    def close(self) -> None:
        raise AssertionError("whoever made the sink closes it")


def put(path: Path, data: bytes) -> Split:
    """Write a file and return it as one split."""
    path.write_bytes(data)
    return Split(uris.of_local(path), 0, len(data))


def splits(reader: RecordReader, whole: Split, wanted: int, block: int = 0) -> list[Split]:
    found = reader.splits(FS, whole.uri, whole.length, block, wanted)
    # They lie one after another and cover the file.
    assert [split.start for split in found[1:]] == [split.start + split.length for split in found[:-1]]
    assert not found or (found[0].start, found[-1].start + found[-1].length) == (0, whole.length)
    return found


def blocks(reader: RecordReader, *parts: Split) -> bytes:
    return b"".join(bytes(piece) for part in parts for piece in reader.blocks(FS, part))


def records(reader: RecordReader, *parts: Split) -> list[bytes]:
    return [record for part in parts for record in reader.records(FS, part)]


def written(name: str, options: dict[str, str], data: bytes, step: int = 1000) -> bytes:
    """Return the part file that `data` makes, printed `step` bytes at a time."""
    sink = Bytes()
    made = writer(name, options, sink)
    for at in range(0, len(data), step):
        made.write(data[at : at + step])
    made.close()
    return sink.data
