"""One job as its page needs it: the fold of its whole log, kept while people look, a few jobs at a time.

The rule: what is kept is bounded by bytes of log, and a log of any size is read in pieces. Samples of use between two
other events count as the last of each task: they say how it is, not how it came.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from howdah.history.directory_scan import LOG
from howdah.history.log_reader import LineReader
from howdah.spec import Outcome, State, uris
from howdah.spec.event_lines import parse_line, read_lines, to_line
from howdah.spec.events import JobFinished, Noted
from howdah.spec.fold import fold, fold_recorded
from howdah.spec.view import JobView
from howdah.storage.filesystem import CHUNK, FileSystem

MOST_BYTES = 64 << 20
"""Of events kept for all jobs together, and of one job's log that is folded but for its end."""
LAST_BYTES = 1 << 20
FRESH_S = 1.0
_USED, _MEASURED = b'{"kind":"Used"', b'{"kind":"Measured"'
_TASK = re.compile(rb'"task":\{[^}]{0,300}\}')


class Replaced(Exception):
    """Another log is where the one was that a job was read from."""


@dataclass(frozen=True)
class JobChanges:
    """Lines that were not read before, with where the reading ended, and the log's size and time when it began."""

    lines: list[list[bytes]]
    tail: LineReader
    seen: tuple[int, int]


class HeldJob:
    """A job's view and events as far as its log was read, which is as far as news of it were taken."""

    def __init__(self, id_: str, directory: str, files: FileSystem) -> None:
        self.id, self.directory, self.view = id_, directory, JobView(id=id_)
        self.lines: list[bytes] = []
        self.version, self.bytes = 1, 0
        self.looked_at = float("-inf")
        self._files, self._tail, self._seen = files, LineReader(), (-1, 0)
        self._ended = False

    def read(self) -> JobChanges | None:
        """What is new; None when nothing is. It changes nothing here: what can't be read to its end is read again.

        Raises:
            Replaced: the log is not the one that was read before.
            StagingError, EngineUnavailable: it can't be read.
        """
        uri = uris.join(self.directory, LOG)
        entry = self._files.stat(uri)
        seen = (entry.size, entry.modified_ms) if entry else (0, 0)
        if seen == self._seen:
            return None
        if seen[0] < self._tail.offset or self._ended:
            raise Replaced
        return self._news(uri, seen) if entry else JobChanges([], self._tail, seen)

    def _news(self, uri: str, seen: tuple[int, int]) -> JobChanges:
        size, tail = seen[0], replace(self._tail)
        with self._files.open_read(uri) as log:
            log.seek(tail.offset)
            pieces = iter(lambda: log.read(min(CHUNK, max(size, 1))), b"")
            lines = list(tail.lines(itertools.takewhile(lambda _: tail.offset < MOST_BYTES, pieces)))
            if MOST_BYTES <= tail.offset < size:
                if tail.offset < size - LAST_BYTES:
                    left_out = Noted(0.0, "the log is too large to be shown whole: what is between is left out")
                    lines.append([to_line(left_out).encode()])
                    tail = LineReader(size - LAST_BYTES, skipping=True)
                log.seek(tail.offset)
                lines += tail.lines([log.read(LAST_BYTES)])
        return JobChanges(lines, tail, seen)

    def take(self, news: JobChanges | None) -> None:
        """Add what is new to the view and to the events."""
        if news is None:
            return
        self._tail, self._seen = news.tail, news.seen
        for lines in news.lines:
            kept = [line for line in lines if line and not line.startswith((_USED, _MEASURED))]
            self.lines += kept
            self.bytes += sum(map(len, kept))
            self.version += 1
            fold_recorded(read_lines(line.decode("utf-8", "replace") for line in latest_use(lines)), self.view)
        self.view.id = self.id

    def end(self, row: Mapping[str, Any]) -> None:
        """The end that the index knows, of a job whose log does not tell it."""
        state = State(row["state"])
        if state.ended and self.view.outcome is None:
            fold([JobFinished(row["finished"], Outcome(state, row["diagnostics"]))], self.view)
            self._ended, self.version = True, self.version + 1

    def records(self, since: int, limit: int) -> tuple[int, list[Mapping[str, Any]]]:
        """Up to `limit` events as JSON from number `since` on, and the number to ask from next."""
        lines = self.lines[since : since + limit]
        return since + len(lines), [record for record in map(parse_line, lines) if record is not None]


def latest_use(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Without the samples that another of the same task follows before anything else happens."""
    pending: dict[bytes, bytes] = {}
    for line in lines:
        if line.startswith(_USED):
            found = _TASK.search(line)
            pending[found[0] if found else b""] = line
            continue
        if pending and not line.startswith(_MEASURED):
            yield from pending.values()
            pending = {}
        if line:
            yield line
    yield from pending.values()


class HeldJobs:
    """The jobs that people looked at last; `make` is called for another one."""

    def __init__(self, make: Callable[[str, str], HeldJob]) -> None:
        self._make = make
        self._held: OrderedDict[str, HeldJob] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, row: Mapping[str, Any], directory: str) -> HeldJob:
        """The job of this row of the index, as its log is now.

        Raises:
            StagingError, EngineUnavailable: the log can't be read.
        """
        id_ = row["id"]
        async with self._locks.setdefault(id_, asyncio.Lock()):
            held = self._held.get(id_)
            if held is None or held.directory != directory:
                held = self._make(id_, directory)
            if time.monotonic() - held.looked_at >= FRESH_S:
                held = await self._refreshed(held)
                held.looked_at = time.monotonic()
            held.end(row)
            self._held[id_] = held
            self._held.move_to_end(id_)
        self._shed()
        return held

    async def _refreshed(self, held: HeldJob) -> HeldJob:
        try:
            news = await asyncio.to_thread(held.read)
        except Replaced:
            held = self._make(held.id, held.directory)
            news = await asyncio.to_thread(held.read)
        if self._held.get(held.id) is held:
            held.take(news)  # here, for answers are being made of its view
        else:
            await asyncio.to_thread(held.take, news)
        return held

    def _shed(self) -> None:
        while len(self._held) > 1 and sum(job.bytes for job in self._held.values()) > MOST_BYTES:
            id_, _ = self._held.popitem(last=False)
            self._locks.pop(id_, None)
