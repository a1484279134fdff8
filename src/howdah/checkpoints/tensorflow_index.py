"""How long the data files of a TensorFlow checkpoint must be: its index says where each tensor lies.

`PREFIX.index` is a table of LevelDB's format (leveldb/doc/table_format.md) without compression, whose values are
BundleHeaderProto under the empty key, else BundleEntryProto (tensorflow/core/protobuf/tensor_bundle.proto).
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5  # of a block: its compression, and a checksum


class IndexUnreadable(ValueError):
    """The file is no index, or only a part of one."""


def shards(index: bytes) -> list[int]:
    """The least number of bytes in each of its data files.

    Raises:
        Unreadable: it is not, or not all of, an index.
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
        raise IndexUnreadable("it is no index of a checkpoint") from error
    return ends


def entries(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What is in a table: keys in order, and their values.

    Raises:
        Unreadable, IndexError: it is none, or not all of one.
    """
    if len(table) < _FOOTER or table[-8:] != MAGIC:
        raise IndexUnreadable("it is cut: the end of the index is missing")
    _, place = _varint(table, len(table) - _FOOTER)
    _, place = _varint(table, place)
    for _, handle in _block(table, *_handle(table, place)):
        yield from _block(table, *_handle(handle, 0))


def _handle(data: bytes, place: int) -> tuple[int, int]:
    offset, place = _varint(data, place)
    return offset, _varint(data, place)[0]


def _block(table: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key shares a beginning with the one before."""
    if offset + size + _TRAILER > len(table):
        raise IndexError
    if table[offset + size]:
        raise IndexUnreadable("its index is compressed, which TensorFlow does not do")
    restarts = int.from_bytes(table[offset + size - 4 : offset + size], "little")
    place, end, key = offset, offset + size - 4 * (restarts + 1), b""
    while place < end:
        shared, place = _varint(table, place)
        own, place = _varint(table, place)
        length, place = _varint(table, place)
        key = key[:shared] + table[place : place + own]
        yield key, table[place + own : place + own + length]
        place += own + length


def _fields(message: bytes) -> dict[int, int]:
    """The numbers of a protobuf message by field; what is no number is passed over."""
    found: dict[int, int] = {}
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == 0:
            found[tag >> 3], place = _varint(message, place)
        elif kind == 2:
            length, place = _varint(message, place)
            place += length
        else:
            place += 8 if kind == 1 else 4
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
