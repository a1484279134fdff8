"""Finds the records in a section of an event file (TFRecord, tensorflow/core/lib/io/record_reader.cc).

Records of one length are grouped, so that the next step works on columns. Garbage is skipped up to the next length with
a correct checksum; an incomplete record is left for later.
"""

from __future__ import annotations

import functools
import re
import struct
import sys
from array import array
from dataclasses import field
from itertools import compress
from operator import eq, ne

from howdah.inputs.formats import framing
from howdah.spec.values import dataclass
from howdah.storage import native_codecs

FRAME = 16
"""The bytes around a record: its length (8) and the length's checksum (4) before it, its own checksum (4) after it."""
MAX_RECORD = 256 << 20
"""The bytes of the longest record; a longer one is treated as garbage."""
_HEAD = struct.Struct("<QI")
_MAX_HEADS = 1 << 14
_LIVE = re.compile(rb"[^\0]")
_MIN_FOR_LANES = 32


@dataclass(frozen=True)
class DamagedRecord:
    """The bytes of a file that were skipped, and the reason."""

    offset: int
    length: int
    text: str


@dataclass
class Scan:
    """Holds the frames that were found."""

    groups: dict[int, list[int]] = field(default_factory=dict)
    """For each length of a frame, the positions at which such frames begin."""
    used: int = 0
    """The position at which the incomplete frame at the end begins."""
    wanted: int = 0
    """The bytes of the incomplete frame; 0 if unknown."""
    damaged: list[DamagedRecord] = field(default_factory=list)


def scan(data: bytes, at: int = 0, limit: int = sys.maxsize) -> Scan:
    """Find at most `limit` frames in `data`, from `at` on, where a frame begins."""
    found = Scan()
    groups: dict[bytes, list[int]] = {}
    lengths: dict[bytes, int] = {}
    length_of = lengths.get
    last, size = -1, len(data)
    while at <= size - FRAME and limit > 0:
        head = data[at : at + 12]
        length = length_of(head)
        if length is None:
            length = _length(head)
            if length < 0 or length > MAX_RECORD:
                start = last + 12 if last >= 0 and not verified_frames([data[last:at]], [last])[0] else at
                at, last = _next_record(data, start + 1), -1
                found.damaged.append(DamagedRecord(start, at - start, "no record of an event file"))
                continue
            if len(lengths) >= _MAX_HEADS:
                lengths.clear()
            lengths[head] = length = length + FRAME
            groups.setdefault(head, [])
        end = at + length
        if end > size:
            found.wanted = length
            break
        groups[head].append(at)
        last, at = at, end
        limit -= 1
    found.used = at
    found.groups = {_HEAD.unpack(head)[0] + FRAME: offsets for head, offsets in groups.items() if offsets}
    return found


def verified_frames(frames: list[bytes], offsets: list[int]) -> tuple[list[bytes], list[int], list[DamagedRecord]]:
    """Return the frames whose records have a correct checksum, the positions of these frames, and the damaged records.

    `offsets` has the position of each frame. Without a library for checksums (google-crc32c, libcrc32c) only the
    checksums of the lengths are checked, in `scan`.
    """
    crc32c = crc32c_or_none()
    if crc32c is None:
        return frames, offsets, []
    sums = _masked_checksums(array("Q", map(crc32c, [frame[12:-4] for frame in frames])))
    stored = array("I", b"".join([frame[-4:] for frame in frames]))
    if sys.byteorder == "big":
        stored.byteswap()
    if sums == stored:
        return frames, offsets, []
    wrong = list(map(ne, sums, stored))
    damaged = [
        DamagedRecord(at, len(frame), "a record does not have the sum it must have")
        for at, frame in zip(compress(offsets, wrong), compress(frames, wrong), strict=True)
    ]
    correct = list(map(eq, sums, stored))
    return list(compress(frames, correct)), list(compress(offsets, correct)), damaged


def length_of(head: bytes) -> int:
    """Return the length of the frame that begins with these twelve bytes; -1 if no frame does."""
    length = _length(head)
    return length + FRAME if 0 <= length <= MAX_RECORD else -1


def _masked_checksums(sums: array[int]) -> array[int]:
    """Compute `framing.mask_crc` of all checksums at once: one large integer with a lane of 64 bits for each."""
    if len(sums) < _MIN_FOR_LANES or sys.byteorder == "big":
        return array("I", map(framing.mask_crc, sums))
    lanes = int.from_bytes(b"\1\0\0\0\0\0\0\0" * len(sums), "little")
    value = int.from_bytes(sums.tobytes(), "little")
    value = value >> 15 & lanes * 0x1FFFF | value << 17 & lanes * 0xFFFFFFFF
    value = value + lanes * framing.MASK & lanes * 0xFFFFFFFF
    return array("I", value.to_bytes(8 * len(sums), "little"))[::2]


def _length(head: bytes) -> int:
    """Return a record's length from the twelve bytes before it; -1 if their checksum is wrong."""
    length, stored = _HEAD.unpack(head)
    crc32c = crc32c_or_none() or _slow_crc32c
    return length if framing.mask_crc(crc32c(head[:8])) == stored else -1


def _next_record(data: bytes, at: int) -> int:
    """Return the position at which the next record may begin: at a length with a correct checksum. Lengths are below 4
    GiB and so have four zero bytes."""
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


def _slow_crc32c(data: bytes) -> int:
    """Compute CRC-32C in Python: fast enough for the few lengths where no library is installed."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _crc32c_of_byte((value ^ byte) & 0xFF)
    return value ^ 0xFFFFFFFF


@functools.cache
def _crc32c_of_byte(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


@functools.cache
def crc32c_or_none() -> native_codecs.Checksum | None:
    """Return the function that computes CRC-32C; None without a library."""
    try:
        return native_codecs.crc32c()
    except native_codecs.LibraryMissing:
        return None
