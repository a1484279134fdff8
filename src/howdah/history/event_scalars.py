"""Reads the scalars of ended jobs' event files, so that the list of jobs has them as columns, as it has metrics.

The rule: nothing waits for it. Jobs are read one after the other, those that ended last first, with pauses that are ten
times as long as the reading, and each within limits of bytes, names and time; what exceeds one is left out for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import sqlite3
import sys
import time
import traceback
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from howdah.api.recorded_job import event_file_service
from howdah.api.recorded_log import RecordedLog
from howdah.errors import HowdahError
from howdah.eventfiles import locations
from howdah.eventfiles.client import EventFileService
from howdah.history.index import Index
from howdah.history.run_facts import MAX_NAME, MAX_NAMES
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import NOBODY, files_of

MAX_LOG, MAX_EVENT_FILES, MAX_FILES = 16 << 20, 64 << 20, 2000
"""The most bytes of a job's log and of its event files, and the most files that are looked at."""
MAX_RUNS = 8
ANSWER_S, PAUSE_FACTOR, MIN_PAUSE_S, IDLE_PAUSE_S, SERVICE_IDLE_S = 30.0, 10.0, 0.05, 5.0, 60.0
"""Seconds within which a job's event files must be read; the pauses after a job, and while there is none; and after
which the process that reads them ends."""
ASK_AGAIN_S = 0.5
"""Seconds between two requests while files are still being read."""
_NAME_PART = "tfevents"


@dataclass(frozen=True)
class UnreadJob:
    """An ended job whose event files have not been read."""

    number: int
    """The number of its row."""
    id: str
    directory: str
    """URI of its directory."""
    size: int
    """Size of its log."""


class EventScalars:
    """Reads scalars into the index. `conf_dir_of` returns the Hadoop configuration by which a URI is read, `user_on`
    this user's name on its file system."""

    def __init__(self, index: Index, conf_dir_of: Callable[[str], str], user_on: Callable[[str], str]) -> None:
        self._index, self._conf_dir_of, self._user_on = index, conf_dir_of, user_on
        self._services: dict[str, EventFileService] = {}

    async def run(self) -> None:
        """Read one job after the other, until cancelled."""
        try:
            while True:
                begun, found = time.monotonic(), False
                with contextlib.suppress(sqlite3.Error):  # a full disk, or an index that is made anew
                    found = await self.read_next()
                pause = PAUSE_FACTOR * (time.monotonic() - begun) if found else IDLE_PAUSE_S
                await asyncio.sleep(max(MIN_PAUSE_S, pause))
        finally:
            for service in self._services.values():
                await service.close()

    async def read_next(self) -> bool:
        """Read the scalars of one job; return whether there was one."""
        job = await asyncio.to_thread(self._next)
        if job is None:
            return False
        try:
            scalars = await asyncio.wait_for(self._scalars(job), ANSWER_S)
        except (HowdahError, ValueError, asyncio.TimeoutError, TimeoutError):
            scalars = {}
        except Exception:  # a bug, in spite of which the next job has its turn
            traceback.print_exc(file=sys.stderr)
            scalars = {}
        await asyncio.to_thread(self._store, job, scalars)
        return True

    def _next(self) -> UnreadJob | None:
        if not self._index.writes:
            return None
        with self._index.reading() as connection:
            row = connection.execute(
                "SELECT number, id, directory, size FROM job WHERE event_files ORDER BY finished DESC LIMIT 1"
            ).fetchone()
        return UnreadJob(*row) if row is not None else None

    def _store(self, job: UnreadJob, scalars: Mapping[str, Sequence[float]]) -> None:
        rows = [(job.number, name, *values) for name, values in scalars.items()]
        with self._index.reading(), self._index.change() as connection:
            # What programs reported themselves under the same name stays.
            connection.executemany("INSERT OR IGNORE INTO metric VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("UPDATE job SET event_files = 0 WHERE number = ?", (job.number,))

    async def _scalars(self, job: UnreadJob) -> dict[str, Sequence[float]]:
        """Return `[last, min, max]` of each scalar of the job's event files, by name.

        Raises:
            HowdahError, ValueError: they can't be read.
        """
        conf_dir = self._conf_dir_of(job.directory)
        places, owner = await asyncio.to_thread(self._places, job)
        if not places:
            return {}
        if conf_dir not in self._services:
            self._services[conf_dir] = event_file_service(conf_dir, SERVICE_IDLE_S)
        service = self._services[conf_dir]

        async def ask(call: str) -> Any:
            while True:
                answer = await service.get(call, places, owner=owner)
                found = json.loads(answer.body) if answer.status == 200 else {}
                if found.get("complete", True):
                    return found
                await asyncio.sleep(ASK_AGAIN_S)

        runs = (await ask("curves/runs")).get("runs", [])[:MAX_RUNS]
        names = sorted({tag for run in runs for tag in run["tags"]["scalar"]} - {""})
        tags = [tag for tag in names if "," not in tag][:MAX_NAMES]
        if not tags:
            return {}
        query = [*(("tag", tag) for tag in tags), *(("run", run["run"]) for run in runs), ("points", "4")]
        answer = await ask(f"curves/scalars?{urllib.parse.urlencode(query)}")
        return dict(itertools.islice(_summaries(answer.get("series", []), alone=len(runs) == 1), MAX_NAMES))

    def _places(self, job: UnreadJob) -> tuple[list[tuple[str, str]], str]:
        """Return where the job has event files, none if they are too large, and the user whose files alone are read."""
        if job.size > MAX_LOG:
            return [], ""
        log = RecordedLog(job.id, job.directory, filesystem(job.directory, self._conf_dir_of(job.directory)))
        log.apply(log.read())
        owner = "" if log.owner == self._user_on(job.directory) else log.owner or NOBODY
        places, size = locations.event_file_locations(log.view), 0
        for _, uri in places:
            try:
                for entry in itertools.islice(files_of(owner, uri).walk(uri), MAX_FILES):
                    size += entry.size if _NAME_PART in uris.name(entry.uri) else 0
            except HowdahError:  # it is not there, or not for this user
                continue
        return (places, owner) if 0 < size <= MAX_EVENT_FILES else ([], owner)


def _summaries(series: Sequence[Mapping[str, Any]], alone: bool) -> Iterator[tuple[str, list[float]]]:
    """Yield name and `[last, min, max]` of each line; the name has that of its run in front, unless there is one run
    alone."""
    for line in series:
        name = line["tag"] if alone or line["run"] == "." else f"{line['run']}/{line['tag']}"
        stretches = [point[2:5] for point in line["points"] if None not in point[2:5]]
        if not stretches or len(name) > MAX_NAME:
            continue
        last = line["last"][2] if line["last"] else None
        if not isinstance(last, (int, float)) or not math.isfinite(last):
            last = stretches[-1][1]
        yield name, [last, min(least for least, _, _ in stretches), max(most for _, _, most in stretches)]
