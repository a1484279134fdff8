"""Computes how long the data files of a TensorFlow checkpoint must be: the index says where each tensor lies.

`PREFIX.index` is a table of LevelDB's format (leveldb/doc/table_format.md) without compression, whose values are
BundleHeaderProto under the empty key, else BundleEntryProto (tensorflow/core/protobuf/tensor_bundle.proto).
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5  # of a block: its compression, and a checksum


class IndexUnreadable(ValueError):
    """The file is no index, or only a part of an index."""


def shards(index: bytes) -> list[int]:
    """Return the least number of bytes in each data file.

    Raises:
        IndexUnreadable: `index` is no index, or only a part of one.
    """
    try:
        found = dict(entries(index))
        count = _fields(found[b""]).get(1, 0)
        ends = [0] * max(1, count)
        for key, value in found.items():
            fields = _fields(value)
            if key:
                shard = fields.get(3, 0)
                ends[shard] = max(ends[shard], fields.get(4, 0) + fields.get(5, 0))
    except (IndexError, KeyError) as error:
        raise IndexUnreadable("it is not an index of a checkpoint") from error
    return ends


def entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys of a table in their order, and their values.

    Raises:
        IndexUnreadable, IndexError: `table` is no table, or only a part of one.
    """
    if len(table) < _FOOTER or table[-8:] != MAGIC:
        raise IndexUnreadable("it is cut: the end of the index is missing")
    _, position = _varint(table, len(table) - _FOOTER)
    _, position = _varint(table, position)
    for _, handle in _block(table, *_handle(table, position)):
        yield from _block(table, *_handle(handle, 0))


def _handle(data: bytes, position: int) -> tuple[int, int]:
    offset, position = _varint(data, position)
    return offset, _varint(data, position)[0]


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key shares a beginning with the one before."""
    if offset + size + _TRAILER > len(table):
        raise IndexError
    if table[offset + size]:
        raise IndexUnreadable("its index is compressed, which TensorFlow does not do")
    restarts = int.from_bytes(table[offset + size - 4 : offset + size], "little")
    position, end, key = offset, offset + size - 4 * (restarts + 1), b""
    while position < end:
        shared, position = _varint(table, position)
        own, position = _varint(table, position)
        length, position = _varint(table, position)
        key = key[:shared] + table[position : position + own]
        yield key, table[position + own : position + own + length]
        position += own + length


def _fields(message: bytes) -> dict[int, int]:
    """Return the numbers of a protobuf message by field; other fields are skipped."""
    found: dict[int, int] = {}
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == 0:
            found[tag >> 3], position = _varint(message, position)
        elif kind == 2:
            length, position = _varint(message, position)
            position += length
        else:
            position += 8 if kind == 1 else 4
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
