"""Reads the scalars of ended jobs' event files, so that the list of jobs has them as columns, like metrics.

The rule: nothing waits for it. Jobs are read one after the other, the last ended first, with pauses that are ten times
as long as the reading. Each job is read within limits of bytes, files and names; whatever exceeds a limit is left out
for good. Files that can't be read now, because a server does not answer, are tried again.
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
from typing import Any, TypeVar

from howdah.api.recorded_job import event_file_service
from howdah.api.recorded_log import RecordedLog
from howdah.errors import EngineUnavailable, HowdahError
from howdah.eventfiles import locations
from howdah.eventfiles.client import EventFileService
from howdah.history.index import Index
from howdah.history.run_facts import MAX_NAME, MAX_NAMES
from howdah.spec import uris
from howdah.spec.values import dataclass
from howdah.storage.factory import filesystem
from howdah.storage.files_of_owner import NOBODY, files_of
from howdah.storage.filesystem import ConnectionBroken

MAX_LOG, MAX_EVENT_FILES, MAX_FILES = 16 << 20, 64 << 20, 2000
"""The most bytes of a job's log and of its event files, and the most files that are examined."""
MAX_RUNS = 8
ANSWER_S, PAUSE_FACTOR, MIN_PAUSE_S, IDLE_PAUSE_S, SERVICE_IDLE_S = 30.0, 10.0, 0.05, 5.0, 60.0
"""Seconds within which a job's event files must be read; seconds of the pauses after a job, and while there is none;
and seconds after which the process that reads them ends."""
MAX_TRIES, RETRY_S = 12, 60.0
"""The number of tries after which a job is left out because it can't be read in time, or because a server does not
answer; and the seconds after the first try, which double with each: together a day and a half."""
OUTAGES = (502, 503, 504)
"""The statuses by which the service reports that it, or the file system, has not answered."""
ASK_AGAIN_S = 0.5
"""Seconds between two requests while files are still being read."""
_NAME_PART = "tfevents"
T = TypeVar("T")


@dataclass(frozen=True)
class UnreadJob:
    """An ended job whose event files have not been read."""

    number: int
    """The number of the job's row in the index."""
    id: str
    directory: str
    """The URI of the job's directory."""
    size: int
    """The size of the job's event log in bytes."""


class EventScalars:
    """Reads scalars into the index. `conf_dir_of` returns the Hadoop configuration by which a URI is read, `user_on`
    this user's name on its file system."""

    def __init__(self, index: Index, conf_dir_of: Callable[[str], str], user_on: Callable[[str], str]) -> None:
        self._index, self._conf_dir_of, self._user_on = index, conf_dir_of, user_on
        self._services: dict[str, EventFileService] = {}
        self._failed: dict[str, tuple[int, float]] = {}
        self._in_index: asyncio.Future[Any] | None = None

    async def run(self) -> None:
        """Read one job after the other, until cancelled; then no thread of it uses the index."""
        try:
            while True:
                begun, found = time.monotonic(), False
                with contextlib.suppress(sqlite3.Error):  # a full disk, or an index that is made anew
                    found = await self.read_next()
                used = time.monotonic() - begun
                await asyncio.sleep(max(MIN_PAUSE_S if found else IDLE_PAUSE_S, PAUSE_FACTOR * used))
        finally:
            if self._in_index is not None:
                await asyncio.wait([self._in_index])
            for service in self._services.values():
                await service.close()

    async def read_next(self) -> bool:
        """Read the scalars of one job; return whether there was one."""
        job = await self._with_index(self._next)
        if job is None:
            return False
        try:
            scalars = await asyncio.wait_for(self._scalars(job), ANSWER_S)
        except (asyncio.TimeoutError, TimeoutError, EngineUnavailable, ConnectionBroken) as error:
            if not isinstance(error, HowdahError):
                await self._end_service(job)
            if self._is_to_be_tried_again(job):
                return True
            scalars = {}
        except (HowdahError, ValueError):
            scalars = {}
        except Exception:  # a bug: the next job has its turn all the same
            traceback.print_exc(file=sys.stderr)
            scalars = {}
        await self._with_index(lambda: self._store(job, scalars))
        self._failed.pop(job.directory, None)
        return True

    async def _with_index(self, use: Callable[[], T]) -> T:
        """Run `use` in a thread, for which `run` waits before it ends."""
        self._in_index = asyncio.ensure_future(asyncio.to_thread(use))
        return await asyncio.shield(self._in_index)

    async def _end_service(self, job: UnreadJob) -> None:
        """End the process that still reads the files of a job."""
        service = self._services.get(self._conf_dir_of(job.directory))
        if service is not None:
            await service.close()

    def _is_to_be_tried_again(self, job: UnreadJob) -> bool:
        tries, _ = self._failed.get(job.directory, (0, 0.0))
        self._failed[job.directory] = tries + 1, time.monotonic() + RETRY_S * 2**tries
        return tries + 1 < MAX_TRIES

    def _next(self) -> UnreadJob | None:
        if not self._index.writes:
            return None
        with self._index.reading() as connection:
            newest = "SELECT number, id, directory, size FROM job WHERE event_files ORDER BY finished DESC LIMIT ?"
            found = [UnreadJob(*row) for row in connection.execute(newest, (len(self._failed) + 1,))]
        now = time.monotonic()
        return next((job for job in found if self._failed.get(job.directory, (0, now))[1] <= now), None)

    def _store(self, job: UnreadJob, scalars: Mapping[str, Sequence[float]]) -> None:
        rows = [(job.number, name, *values) for name, values in scalars.items()]
        with self._index.reading(), self._index.change() as connection:
            # What programs reported themselves under the same name stays.
            connection.executemany("INSERT OR IGNORE INTO metric VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("UPDATE job SET event_files = 0 WHERE number = ?", (job.number,))

    async def _scalars(self, job: UnreadJob) -> dict[str, Sequence[float]]:
        """Return `[last, min, max]` of each scalar of the job's event files, by name.

        Raises:
            EngineUnavailable, ConnectionBroken: they can't be read now. HowdahError, ValueError: they can't be read.
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
                if answer.status in OUTAGES:
                    raise EngineUnavailable(answer.body.decode(errors="replace"))
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
        """Return the places of the job's event files, none if they are too large or among too many files, and the only
        user whose files are read.

        Raises:
            EngineUnavailable, ConnectionBroken: a file system does not answer. HowdahError: the log can't be read.
        """
        if job.size > MAX_LOG:
            return [], ""
        conf_dir = self._conf_dir_of(job.directory)
        log = RecordedLog(job.id, job.directory, filesystem(job.directory, conf_dir))
        log.apply(log.read())
        owner = "" if log.owner == self._user_on(job.directory) else log.owner or NOBODY
        places, size, count = locations.event_file_locations(log.view), 0, 0
        for _, uri in places:
            try:
                for entry in files_of(owner, uri, conf_dir).walk(uri):
                    size += entry.size if _NAME_PART in uris.name(entry.uri) else 0
                    count += 1
                    if count > MAX_FILES or size > MAX_EVENT_FILES:
                        return [], owner
            except (EngineUnavailable, ConnectionBroken):
                raise
            except HowdahError:  # it is not there, or not for this user
                continue
        return (places, owner) if size else ([], owner)


def _summaries(series: Sequence[Mapping[str, Any]], alone: bool) -> Iterator[tuple[str, list[float]]]:
    """Yield name and `[last, min, max]` of each line. The name begins with that of its run, unless there is only one
    run."""
    for line in series:
        name = line["tag"] if alone or line["run"] == "." else f"{line['run']}/{line['tag']}"
        stretches = [point[2:5] for point in line["points"] if None not in point[2:5]]
        if not stretches or len(name) > MAX_NAME:
            continue
        last = line["last"][2] if line["last"] else None
        if not isinstance(last, (int, float)) or not math.isfinite(last):
            last = stretches[-1][1]
        yield name, [last, min(least for least, _, _ in stretches), max(most for _, _, most in stretches)]
