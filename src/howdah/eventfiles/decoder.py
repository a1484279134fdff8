"""Decodes an event file from a given byte on, in batches of half a MiB.

Rows of scalars are decoded as a whole; records outside rows are cut into columns by their length, or read one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from howdah.eventfiles import events, scalar_columns, scalar_rows
from howdah.eventfiles.event_batch import Batch, Points
from howdah.eventfiles.record_framing import DamagedRecord, Scan, scan, verified_frames
from howdah.storage.filesystem import FileSystem

WINDOW = 1 << 19
"""The bytes decoded at once, which fit into a core's own cache: with 4 MiB, each byte takes half as long again."""

HEAD = 48
"""The bytes at the beginning of a file by which a replaced file is noticed."""
_FIRST_SCAN = 64
"""The number of records that are read before rows are tried again; it is multiplied by four each time no row begins."""


def batches(fs: FileSystem, uri: str, start: int, kinds: dict[bytes, bytes]) -> Iterator[Batch]:
    """Yield the content of the file from byte `start` on, as far as its records are complete; update `kinds`.

    Raises:
        StagingError, EngineUnavailable: the file cannot be read.
    """
    parts: list[bytes] = []
    size, wanted = 0, WINDOW
    for piece in fs.iter_chunks(uri, start):
        parts.append(piece)
        size += len(piece)
        if size < wanted:
            continue
        data = b"".join(parts)
        batch, used, needed = decode(data, uri, start, kinds, has_more=True)
        start, parts, size = start + used, [data[used:]], len(data) - used
        wanted = max(WINDOW, needed)
        yield batch
    if parts:
        yield decode(b"".join(parts), uri, start, kinds)[0]


def decode(
    data: bytes, uri: str, start: int, kinds: dict[bytes, bytes], has_more: bool = False
) -> tuple[Batch, int, int]:
    """Decode the complete records in `data`, which begins at byte `start` of a file.

    Return their values, their number of bytes, and the number of bytes that the next record needs. If the file
    `has_more`, a few rows at the end are left for later.
    """
    batch = Batch(uri, start, head=data[:HEAD] if not start else b"")
    before = dict(kinds)
    pieces: dict[bytes, list[Points]] = {}

    def is_scalar(frame: bytes) -> bool:
        return events.is_scalar(frame[12:-4], kinds)

    def add_points(tag: bytes, points: Points) -> None:
        pieces.setdefault(tag, []).append(_with_absolute_offsets(points, start))

    at, limit = 0, _FIRST_SCAN
    while True:
        end, row = scalar_rows.decode_rows(data, at, is_scalar, add_points)
        limit = _FIRST_SCAN if end > at else limit * 4
        if has_more and end > at and len(data) - end < row * scalar_rows.MIN_ROWS:
            at, wanted = end, 0
            break
        found = scan(data, end, limit)
        batch.damaged += found.damaged
        at, wanted = found.used, found.wanted
        if at == end:
            break
        for frame_at, frame in sorted(_columns(data, found, batch, is_scalar, add_points)):
            if not events.read(frame[12:-4], start + frame_at, len(frame), batch, kinds):
                batch.damaged.append(DamagedRecord(frame_at, len(frame), "a record is not an event"))
    batch.next = start + at
    for tag, points in pieces.items():
        slow = batch.scalars.get(tag)
        batch.scalars[tag] = _merge_points(points + ([slow] if slow else []), with_offsets=bool(batch.restarts))
    batch.damaged.sort(key=lambda each: each.offset)
    batch.damaged = [replace(each, offset=start + each.offset) for each in batch.damaged]
    if not batch.restarts:
        for series in batch.scalars.values():
            series.offsets = []
    batch.kinds = {tag: kind for tag, kind in kinds.items() if before.get(tag) != kind}
    return batch, at, wanted


def _columns(
    data: bytes,
    found: Scan,
    batch: Batch,
    is_scalar: Callable[[bytes], bool],
    add_points: scalar_columns.PointsCallback,
) -> list[tuple[int, bytes]]:
    """Decode the scalars that lie in columns; return the offsets and frames of the rest."""
    rest: list[tuple[int, bytes]] = []
    # In the order of the file, because the first value of a tag determines its kind; small groups are read one by one
    # first.
    for length, offsets in sorted(found.groups.items(), key=lambda item: item[1][0]):
        frames, correct, damaged = verified_frames([data[at : at + length] for at in offsets], offsets)
        batch.damaged += damaged
        rest += scalar_columns.decode_columns(frames, correct, is_scalar, add_points)
    return rest


def _with_absolute_offsets(points: Points, start: int) -> Points:
    offsets: Sequence[int] = points.offsets
    if isinstance(offsets, range):
        offsets = range(start + offsets.start, start + offsets.stop, offsets.step)
    elif start:
        offsets = [start + at for at in offsets]
    return Points(offsets, points.steps, points.walls, points.values)


def _merge_points(pieces: list[Points], with_offsets: bool) -> Points:
    """Return all points of one tag in the order of the file; their `offsets` only if they are needed."""
    pieces.sort(key=lambda points: points.offsets[0])
    if len(pieces) == 1:
        return pieces[0]
    steps, walls, values = array("q"), array("d"), array("d")
    for points in pieces:
        steps += points.steps
        walls += points.walls
        values += points.values
    in_order = all(one.offsets[-1] < other.offsets[0] for one, other in pairwise(pieces))
    offsets = list(chain.from_iterable(points.offsets for points in pieces)) if with_offsets or not in_order else []
    if in_order:
        return Points(offsets, steps, walls, values)
    order = sorted(range(len(offsets)), key=offsets.__getitem__)
    return Points(
        [offsets[number] for number in order],
        array("q", [steps[number] for number in order]),
        array("d", [walls[number] for number in order]),
        array("d", [values[number] for number in order]),
    )
