"""Tests that rows of scalars equal their records, and that a damaged row is skipped."""

from __future__ import annotations

import random
import struct

import event_files as files
import pytest

from howdah.eventfiles import scalar_rows
from howdah.eventfiles.event_batch import Points
from howdah.eventfiles.proto import event_pb2
from howdah.storage import native_codecs

Read = dict[bytes, list[tuple[int, float, float]]]
TAGS = ("loss", "acc1", "much/longer/than/those", "t")


def contents(steps: range) -> list[bytes]:
    writers = (files.scalar, files.scalar, files.scalar, files.tensor_scalar)
    return [write(tag, step, step / 7) for step in steps for tag, write in zip(TAGS, writers, strict=True)]


def taken(data: bytes) -> tuple[Read, int]:
    found: Read = {}

    def take(tag: bytes, points: Points) -> None:
        assert len(points.offsets) == len(points.steps)
        found.setdefault(tag, []).extend(zip(points.steps, points.walls, points.values, strict=True))

    return found, scalar_rows.decode_rows(data, 0, lambda _: True, take)[0]


def told(contents: list[bytes]) -> Read:
    found: Read = {}
    for event in map(event_pb2.Event.FromString, contents):
        for value in event.summary.value:
            raw = value.tensor.tensor_content
            number = struct.unpack("<f", raw)[0] if raw else value.simple_value
            found.setdefault(value.tag, []).append((event.step, event.wall_time, number))
    return found


@pytest.mark.parametrize("steps", [range(1, 65), range(200, 1512), range(20000, 20064), range(1 << 48, (1 << 48) + 64)])
def test_rows_are_their_records(steps: range) -> None:
    data = files.framed(contents(steps))
    found, end = taken(data)
    assert end == len(data)
    assert found == told(contents(steps))


def test_rows_end_where_a_step_takes_another_byte() -> None:
    few, more = files.framed(contents(range(64, 128))), files.framed(contents(range(128, 192)))
    assert taken(few + more)[1] == len(few)


def test_fewer_rows_are_left_alone() -> None:
    assert taken(files.framed(contents(range(scalar_rows.MIN_ROWS - 1))))[1] == 0


@pytest.mark.skipif(native_codecs.quick_crc32c() is None, reason="without a library there are no sums")
def test_any_byte_that_is_not_as_written_ends_them() -> None:
    data = files.framed(contents(range(200, 200 + scalar_rows.MIN_ROWS)))
    assert taken(data)[1] == len(data)
    chance = random.Random(7)
    for _ in range(300):
        at, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        broken = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        assert taken(broken)[1] == 0, (at, bit)


@pytest.mark.skipif(native_codecs.quick_crc32c() is None, reason="without a library there are no sums")
def test_the_same_damage_twice_is_seen() -> None:
    data = bytearray(files.framed(contents(range(200, 200 + scalar_rows.MIN_ROWS))))
    size = len(data) // scalar_rows.MIN_ROWS
    data[30] ^= 4
    data[30 + size] ^= 4
    assert taken(bytes(data))[1] == 0


def test_what_is_no_record_has_no_rows() -> None:
    for data in (b"", b"x" * 11, b"\0" * 4096, files.framed([files.start()] * 40), random.Random(1).randbytes(9999)):
        assert taken(data) == ({}, 0)
