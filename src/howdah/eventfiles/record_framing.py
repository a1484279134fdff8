"""Where the records of an event file lie in a stretch of its bytes (TFRecord, tensorflow/core/lib/io/record_reader.cc).

Records of one length lie together in a group, so that what follows works on columns. A garbage stretch is passed over,
up to the next length that has its sum; a record that is not whole yet is left for later.
"""

from __future__ import annotations

import functools
import re
import struct
import sys
from array import array
from dataclasses import dataclass, field
from itertools import compress
from operator import eq, ne

from howdah.inputs.formats import framing
from howdah.storage import native_codecs

FRAME = 16
"""Bytes around a record: its length (8), that one's sum (4); after it its own sum (4)."""
MAX_RECORD = 256 << 20
"""A longer one is taken for garbage."""
_HEAD = struct.Struct("<QI")
_MOST_HEADS = 1 << 14
_LIVE = re.compile(rb"[^\0]")
_FEW = 32


@dataclass(frozen=True)
class DamagedRecord:
    """Bytes of a file that were passed over, and why."""

    offset: int
    length: int
    text: str


@dataclass
class Scan:
    """`groups` has for each length of a whole frame where such frames begin; the bytes from `used` on are not whole,
    and `wanted` is how many of them (0: not known) would be."""

    groups: dict[int, list[int]] = field(default_factory=dict)
    used: int = 0
    wanted: int = 0
    flaws: list[DamagedRecord] = field(default_factory=list)


def scan(data: bytes, at: int = 0, most: int = sys.maxsize) -> Scan:
    """The frames in `data` from `at` on, where one begins; at most so many of them."""
    found = Scan()
    groups: dict[bytes, list[int]] = {}
    lengths: dict[bytes, int] = {}
    length_of = lengths.get
    last, size = -1, len(data)
    while at <= size - FRAME and most > 0:
        head = data[at : at + 12]
        length = length_of(head)
        if length is None:
            length = _length(head)
            if length < 0 or length > MAX_RECORD:
                begun = last + 12 if last >= 0 and not _whole(data, last, at) else at
                at, last = _resynced(data, begun + 1), -1
                found.flaws.append(DamagedRecord(begun, at - begun, "no record of an event file"))
                continue
            if len(lengths) >= _MOST_HEADS:
                lengths.clear()
            lengths[head] = length = length + FRAME
            groups.setdefault(head, [])
        end = at + length
        if end > size:
            found.wanted = length
            break
        groups[head].append(at)
        last, at = at, end
        most -= 1
    found.used = at
    found.groups = {_HEAD.unpack(head)[0] + FRAME: ats for head, ats in groups.items() if ats}
    return found


def good(frames: list[bytes], ats: list[int]) -> tuple[list[bytes], list[int], list[DamagedRecord]]:
    """Those of some frames, which lie at `ats`, whose records have the sum they must have; flaws of the others.

    Without a library for sums (google-crc32c, libcrc32c) only the lengths' own are checked, in `scan`.
    """
    crc32c = _library()
    if crc32c is None:
        return frames, ats, []
    sums = _masked(array("Q", map(crc32c, [frame[12:-4] for frame in frames])))
    stored = array("I", b"".join([frame[-4:] for frame in frames]))
    if sys.byteorder == "big":
        stored.byteswap()
    if sums == stored:
        return frames, ats, []
    flaws = [
        DamagedRecord(at, len(frame), "a record does not have the sum it must have")
        for at, frame in zip(compress(ats, map(ne, sums, stored)), compress(frames, map(ne, sums, stored)), strict=True)
    ]
    kept = list(map(eq, sums, stored))
    return list(compress(frames, kept)), list(compress(ats, kept)), flaws


def length_of(head: bytes) -> int:
    """How long the frame is that begins with these twelve bytes; -1 when none does."""
    length = _length(head)
    return length + FRAME if 0 <= length <= MAX_RECORD else -1


def sum_of() -> native_codecs.Checksum | None:
    """What makes the sums; None without a library."""
    return _library()


def _masked(sums: array[int]) -> array[int]:
    """`framing.masked` of all of them at once: one large number with 64 bits for each, of which the sum has 32."""
    if len(sums) < _FEW or sys.byteorder == "big":
        return array("I", map(framing.masked, sums))
    lanes = int.from_bytes(b"\1\0\0\0\0\0\0\0" * len(sums), "little")
    value = int.from_bytes(sums.tobytes(), "little")
    value = value >> 15 & lanes * 0x1FFFF | value << 17 & lanes * 0xFFFFFFFF
    value = value + lanes * framing.MASK & lanes * 0xFFFFFFFF
    return array("I", value.to_bytes(8 * len(sums), "little"))[::2]


def _whole(data: bytes, at: int, end: int) -> bool:
    return bool(good([data[at:end]], [at])[0])


def _length(head: bytes) -> int:
    """That of a record, by the twelve bytes before it; -1 when they have not the sum they must have."""
    length, stored = _HEAD.unpack(head)
    crc32c = _library() or _slow_crc32c
    return length if framing.masked(crc32c(head[:8])) == stored else -1


def _resynced(data: bytes, at: int) -> int:
    """Where the next record may begin: at a length that has its sum. Any is below 4 GiB, so it has four zeros."""
    last = len(data) - 12
    while at <= last:
        at = data.find(b"\0\0\0\0", at + 4) - 4
        if at < 0 or at > last:
            break
        if not any(data[at : at + 12]):  # a stretch of zeros
            live = _LIVE.search(data, at + 12)
            if live is None:
                break
            at = live.start() - 11
        if 0 <= _length(data[at : at + 12]) <= MAX_RECORD:
            return at
        at += 1
    return max(0, len(data) - 11)


_tables: list[list[int]] = []


def _slow_crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, by a table: for a few lengths, where no library is."""
    if not _tables:
        _tables.append([_shifted(number) for number in range(256)])
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _tables[0][(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def _shifted(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


@functools.cache
def _library() -> native_codecs.Checksum | None:
    try:
        return native_codecs.crc32c()
    except native_codecs.Missing:
        return None
