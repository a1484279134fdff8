"""An engine's archive of the output of ended jobs: pairs of a heading (`worker:1 attempt 1 stdout`) and some bytes.

The rule: the pieces of a stream come in order, and only this module knows how a heading is written.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from howdah.spec import TaskId

_HEADING = re.compile(r"(\S+) attempt (\d+) (stdout|stderr|times)")


class LogArchive(Protocol):
    """Keeps the logs of ended jobs: the two methods of `howdah.engines.Engine` that read them."""

    def logs(self, job_id: str, task: TaskId | None, stream: str = "") -> Iterator[tuple[str, bytes]]: ...

    def logs_complete(self, job_id: str) -> bool: ...


class StreamKey(NamedTuple):
    """Names one stream of one attempt."""

    task: str
    attempt: int
    stream: str


def parse_heading(heading: str) -> StreamKey | None:
    """Return the stream that a heading names; None for a log of the master or of an executor."""
    found = _HEADING.fullmatch(heading)
    return StreamKey(found[1], int(found[2]), found[3]) if found else None


def archived_streams(pieces: Iterable[tuple[str, bytes]]) -> Iterator[tuple[StreamKey, Iterator[bytes]]]:
    """Yield each stream of an archive with its bytes, which must be read before the next stream."""
    for heading, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
        key = parse_heading(heading)
        if key is not None:
            yield key, (data for _, data in group)


def copy_streams(
    pieces: Iterable[tuple[str, bytes]], target: Callable[[StreamKey], Path | None], most_bytes: int = 1 << 62
) -> None:
    """Append each stream to the file that `target` returns (None skips the stream), up to about `most_bytes`."""
    for key, data in archived_streams(pieces):
        path = target(key)
        if path is not None:
            with path.open("ab") as file:
                for piece in data:
                    if file.tell() < most_bytes:
                        file.write(piece)
