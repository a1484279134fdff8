"""Reads aggregated logs in YARN's indexed format, the other one beside TFile: the files of a node's containers one
after the other, each compressed by itself, and an index of their positions, written by Java's serialization.

Layout as in LogAggregationIndexedFileController (its version 1): a mark; the files; the index, its length, the mark
again. The mark is the SHA-256 of the application's id, before Hadoop 3.2 a UUID. While a node adds the logs of a
running job, `NAME-checksum` says how much of the file is valid.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

from howdah.engines.yarn.logs import java_serialization
from howdah.engines.yarn.logs.tfile import PIECE, Stream, TFileError

GOOD = "-checksum"
_MAX_INDEX_BYTES = 1 << 28  # bytes of an index
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def header_length(file: BinaryIO, application: str) -> int:
    """Return the length of the mark at the start of the file; 0 if it is no such file."""
    digest = hashlib.sha256(application.encode()).digest()
    file.seek(0)
    begin = file.read(36)
    return len(digest) if begin.startswith(digest) else len(begin) if _UUID.fullmatch(begin) else 0


def read(
    file: BinaryIO, mark: int, good: bytes, containers: Collection[str] | None
) -> Iterator[tuple[str, str, bytes]]:
    """Yield (container id, file name, piece of its bytes) of these containers, or of all; the pieces of a file in
    order. `good` is the content of the checksum file, if there is one.

    Raises:
        TFileError: the file is damaged, or compressed in an unknown way.
    """
    file.seek(0, io.SEEK_END)
    end = int.from_bytes(good, "big") if good else file.tell()
    if not end:
        return  # nothing was brought before the first round failed
    index = _index(file, mark, end)
    try:
        compression = index.fields["compressName"]
        for upload in index.fields["logMetas"].items():
            for container, logs in upload.fields["logMetas"].pairs():
                if containers is None or container in containers:
                    for log in logs.items():
                        yield from _pieces(file, container, log, compression)
    except TFileError:
        raise
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise TFileError(f"its index is not as YARN writes it: {error}") from None


def _index(file: BinaryIO, mark: int, end: int) -> Any:
    file.seek(max(0, end - mark - 4))
    tail = file.read(4)
    size = struct.unpack(">i", tail)[0] if len(tail) == 4 else 0
    if not 0 < size <= min(_MAX_INDEX_BYTES, end):
        raise TFileError("cut off, or not written to its end yet")
    file.seek(max(0, end - mark - 4 - size))
    try:
        return java_serialization.load(file.read(size))
    except java_serialization.JavaError as error:
        raise TFileError(f"its index is {error}") from None


def _pieces(file: BinaryIO, container: str, log: Any, compression: str) -> Iterator[tuple[str, str, bytes]]:
    name = log.fields["fileName"]
    stream = Stream(file, log.fields["startIndex"], log.fields["fileCompressedSize"], compression)
    if stream.at_end():
        yield container, name, b""
    while not stream.at_end():
        yield container, name, stream.some(PIECE)
