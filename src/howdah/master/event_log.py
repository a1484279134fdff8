"""The event log holds every event in order: in memory for clients that follow the job, and in a file for later."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from howdah.master.broadcast import Broadcast
from howdah.master.journal import Journal
from howdah.spec.codec import encode
from howdah.spec.event_lines import read_lines, to_line
from howdah.spec.events import (
    Ended,
    Event,
    GangRestarted,
    JobStarted,
    Measured,
    Noted,
    Stopping,
    TookOver,
    Used,
    WorldFormed,
)
from howdah.spec.fold import fold
from howdah.spec.message import message
from howdah.spec.view import JobView
from howdah.storage.begun_files import BEGUN_LOG

FLUSH_S, URGENT_S = 2.0, 0.2
"""How long an event stays in memory alone. An event that decides something stays shorter, so that the next master knows
of it; so does the first of all: a master that finds no log begins the job anew, and the file must be there when the
start of the programs is written."""
AGAIN_S = 1.0
"""The pause between two attempts to write."""
LAST_S = 60.0
"""How long the end of a job waits for a file system that is full or does not answer."""
_URGENT = (JobStarted, WorldFormed, GangRestarted, Ended, Stopping)


class EventLog:
    """Holds the events of a job and writes them to its directory, whose URI is `directory`. `records` are all events as
    JSON, without samples and points of metrics; `usage` holds the latest of those; `version` counts all events."""

    def __init__(self, directory: str) -> None:
        self.records: list[dict[str, Any]] = []
        self.usage: dict[str, dict[str, Any]] = {}
        self.view, self.version = JobView(), 0
        self.changed = Broadcast()
        directory = directory.rstrip("/")
        self._journal = Journal(f"{directory}/events.jsonl", "event log", f"{directory}/{BEGUN_LOG}")
        self._urgent = asyncio.Event()
        self._behind = False

    async def take_over(self, event: Callable[[], TookOver]) -> list[Event]:
        """Return the events that an earlier master wrote, and append `event()`: from now on the log is this master's
        alone. Return none, and begin no log, when there is none.

        Raises:
            StagingError, EngineUnavailable: the log is there and cannot be read.
        """
        appended: list[TookOver] = []

        def line() -> str:
            appended.append(event())
            return to_line(appended[-1])

        lines = await self._journal.take_over(line)
        events = [*read_lines(lines), *appended[-1:]]
        for each in events:
            self._remember(each)
        self.changed.notify_all()
        return events

    async def confirm(self, limit_s: float = 0.0) -> bool:
        """Try for `limit_s` to write everything; return True if all is in the file and the file is this master's alone.

        Raises:
            LogOwnerChanged: another master writes it.
        """
        return await _repeat_until_success(self._journal.confirm, limit_s)

    def append(self, event: Event) -> None:
        """Add one event and wake those who wait for `changed`."""
        self._remember(event)
        self._journal.write(to_line(event))
        if isinstance(event, _URGENT):
            self._urgent.set()
        self.changed.notify_all()

    def _remember(self, event: Event) -> None:
        record = {"kind": type(event).__name__, **encode(event)}
        if isinstance(event, Used):
            self.usage[str(event.task)] = record
        elif isinstance(event, Measured):
            self.usage[f"{event.task} {event.name}"] = record
        else:
            self.records.append(record)
        fold([event], self.view)
        self.version += 1

    async def flush_forever(self) -> None:
        """Write batches to the file every `FLUSH_S` seconds, or soon after a decision, until cancelled."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), FLUSH_S)
            self._urgent.clear()
            await self._flush()
            await asyncio.sleep(URGENT_S)

    async def flush(self, limit_s: float = LAST_S) -> bool:
        """Try for `limit_s` to write the pending lines; return True once they are in the file."""
        return await _repeat_until_success(self._flush, limit_s)

    @property
    def is_local(self) -> bool:
        """Return whether the file is on this machine, where no other master lives beside this one."""
        return self._journal.is_local

    @property
    def problem(self) -> str:
        """Return why the log could not be written the last time."""
        return self._journal.problem

    async def _flush(self) -> bool:
        """Write pending lines; keep those that cannot be written for the next time, and record that they wait."""
        written = await self._journal.flush()
        if written == self._behind:
            self._behind = not written
            text = message("the event log is whole again")
            if not written:
                template = "the event log cannot be written for now, and is kept by the master: {reason}"
                text = message(template, reason=self._journal.problem)
            if not self.view.state.ended:
                self.append(Noted(time.time(), text))
        return written

    async def finish(self) -> None:
        """Merge the file's parts, because the job is over: readers then need the fewest requests."""
        await self._journal.finish()

    def close(self) -> None:
        """Take no more events."""
        self._journal.close()


async def _repeat_until_success(attempt: Callable[[], Awaitable[bool]], limit_s: float) -> bool:
    """Repeat an attempt until it succeeds or the limit has passed; return True if it succeeded."""
    deadline = time.monotonic() + limit_s
    while not (done := await attempt()) and time.monotonic() < deadline:
        await asyncio.sleep(AGAIN_S)
    return done
