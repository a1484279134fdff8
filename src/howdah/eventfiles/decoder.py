"""Decode an event file from a given byte on, in batches of half a MiB.

Rows of scalars are decoded as a whole; records outside rows are cut into columns by their length, or read one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from howdah.eventfiles import events, scalar_columns, scalar_rows
from howdah.eventfiles.event_batch import Batch, Points
from howdah.eventfiles.record_framing import DamagedRecord, Scan, good, scan
from howdah.storage.filesystem import FileSystem

WINDOW = 1 << 19
"""The bytes decoded at once, which fit into a core's own cache: with 4 MiB, each byte takes half as long again."""

HEAD = 48
_FEW = 64
"""How many records are read before rows are tried again; four times as many each time no row begins."""


def batches(fs: FileSystem, uri: str, start: int, kinds: dict[bytes, bytes]) -> Iterator[Batch]:
    """Yield what the file has from byte `start` on, as far as its records are complete; update `kinds`.

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
        batch, used, needed = decode(data, uri, start, kinds, goes_on=True)
        start, parts, size = start + used, [data[used:]], len(data) - used
        wanted = max(WINDOW, needed)
        yield batch
    if parts:
        yield decode(b"".join(parts), uri, start, kinds)[0]


def decode(
    data: bytes, uri: str, start: int, kinds: dict[bytes, bytes], goes_on: bool = False
) -> tuple[Batch, int, int]:
    """Decode the complete records in `data`, which begins at byte `start` of a file.

    Return what they say, how many bytes they have, and how many bytes the next record needs. If the file `goes_on`, a
    few rows at the end are left for later.
    """
    batch = Batch(uri, start, head=data[:HEAD] if not start else b"")
    before = dict(kinds)
    pieces: dict[bytes, list[Points]] = {}

    def scalar(frame: bytes) -> bool:
        return events.is_scalar(frame[12:-4], kinds)

    def taken(tag: bytes, points: Points) -> None:
        pieces.setdefault(tag, []).append(_moved(points, start))

    at, most = 0, _FEW
    while True:
        end, row = scalar_rows.decode_rows(data, at, scalar, taken)
        most = _FEW if end > at else most * 4
        if goes_on and end > at and len(data) - end < row * scalar_rows.FEWEST:
            at, wanted = end, 0
            break
        found = scan(data, end, most)
        batch.flaws += found.flaws
        at, wanted = found.used, found.wanted
        if at == end:
            break
        for frame_at, frame in sorted(_columns(data, found, batch, scalar, taken)):
            if not events.read(frame[12:-4], start + frame_at, len(frame), batch, kinds):
                batch.flaws.append(DamagedRecord(frame_at, len(frame), "a record is no event"))
    batch.next = start + at
    for tag, points in pieces.items():
        slow = batch.scalars.get(tag)
        batch.scalars[tag] = _merged(points + ([slow] if slow else []), placed=bool(batch.restarts))
    batch.flaws = [
        replace(flaw, offset=start + flaw.offset) for flaw in sorted(batch.flaws, key=lambda flaw: flaw.offset)
    ]
    if not batch.restarts:
        for all_of_it in batch.scalars.values():
            all_of_it.ats = []
    batch.kinds = {tag: kind for tag, kind in kinds.items() if before.get(tag) != kind}
    return batch, at, wanted


def _columns(
    data: bytes, found: Scan, batch: Batch, scalar: Callable[[bytes], bool], taken: scalar_columns.Taken
) -> list[tuple[int, bytes]]:
    """Decode the scalars that lie in columns; return the places and frames of the rest."""
    rest: list[tuple[int, bytes]] = []
    # In the order of the file, for the first value of a tag tells its kind; small groups are read one by one first.
    for length, ats in sorted(found.groups.items(), key=lambda item: item[1][0]):
        frames, whole, flaws = good([data[at : at + length] for at in ats], ats)
        batch.flaws += flaws
        rest += scalar_columns.decode_columns(frames, whole, scalar, taken)
    return rest


def _moved(points: Points, start: int) -> Points:
    ats: Sequence[int] = points.ats
    if isinstance(ats, range):
        ats = range(start + ats.start, start + ats.stop, ats.step)
    elif start:
        ats = [start + at for at in ats]
    return Points(ats, points.steps, points.walls, points.values)


def _merged(pieces: list[Points], placed: bool) -> Points:
    """Return all points of one tag in the order of the file; with their places if `placed`."""
    pieces.sort(key=lambda points: points.ats[0])
    if len(pieces) == 1:
        return pieces[0]
    steps, walls, values = array("q"), array("d"), array("d")
    for points in pieces:
        steps += points.steps
        walls += points.walls
        values += points.values
    in_order = all(one.ats[-1] < other.ats[0] for one, other in pairwise(pieces))
    ats = list(chain.from_iterable(points.ats for points in pieces)) if placed or not in_order else []
    if in_order:
        return Points(ats, steps, walls, values)
    order = sorted(range(len(ats)), key=ats.__getitem__)
    return Points(
        [ats[number] for number in order],
        array("q", [steps[number] for number in order]),
        array("d", [walls[number] for number in order]),
        array("d", [values[number] for number in order]),
    )
