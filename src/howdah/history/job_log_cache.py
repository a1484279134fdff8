"""A cache of the event logs of the jobs that were viewed last, folded into views.

The rule: the cached logs of all jobs together are bounded by bytes of log.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from howdah.api.recorded_log import LogReplaced, RecordedLog
from howdah.spec import Outcome, State

MAX_BYTES = 64 << 20
"""The most bytes of events that are kept for all jobs together."""
FRESH_S = 1.0
"""Seconds within which a log is not read again."""


class JobLogCache:
    """Keeps the logs that were used last; `open_log(job_id, directory)` makes the log of another job."""

    def __init__(self, open_log: Callable[[str, str], RecordedLog]) -> None:
        self._open_log = open_log
        self._logs: OrderedDict[str, RecordedLog] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, row: Mapping[str, Any], directory: str) -> RecordedLog:
        """Return the present log of the job with this row of the index.

        Raises:
            StagingError, EngineUnavailable: the log can't be read.
        """
        job_id = row["id"]
        async with self._locks.setdefault(job_id, asyncio.Lock()):
            log = self._logs.get(job_id)
            if log is None or log.directory != directory:
                log = self._open_log(job_id, directory)
            if time.monotonic() - log.checked_at >= FRESH_S:
                log = await self._refresh(log)
                log.checked_at = time.monotonic()
            log.add_outcome(Outcome(State(row["state"]), row["diagnostics"]), row["finished"])
            self._logs[job_id] = log
            self._logs.move_to_end(job_id)
        while len(self._logs) > 1 and sum(each.bytes for each in self._logs.values()) > MAX_BYTES:
            oldest, _ = self._logs.popitem(last=False)
            self._locks.pop(oldest, None)
        return log

    async def _refresh(self, log: RecordedLog) -> RecordedLog:
        try:
            new = await asyncio.to_thread(log.read)
        except LogReplaced:
            log = self._open_log(log.id, log.directory)
            new = await asyncio.to_thread(log.read)
        if self._logs.get(log.id) is log:
            log.apply(new)  # on the event loop, because answers are being made from this view
        else:
            await asyncio.to_thread(log.apply, new)
        return log
