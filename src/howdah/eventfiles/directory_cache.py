"""Keeps the values of event directories within one bound on memory: unused directories are dropped first, then every
second step of the largest directory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from howdah.eventfiles import oom_priority
from howdah.eventfiles.event_directory import EventDirectory
from howdah.eventfiles.queries import JobEventFiles
from howdah.eventfiles.run_store import POINTS

IDLE_S = 60.0
"""Seconds without a request after which a directory may be dropped to free memory."""
COLD_S, WARM_S = 12.0, 1.0
"""The longest wait for a directory that was never read, and for others; then the answer has the values that were read
so far."""
MAX_DIRECTORIES, MAX_HALVINGS = 256, 20


class EventDirectories:
    """Keeps the event directories that were requested, by owner and URI, and drops the least recently used."""

    def __init__(self) -> None:
        self._directories: dict[tuple[str, str], EventDirectory] = {}
        self._max_bytes, self._budget_lock = oom_priority.memory_budget(), threading.Lock()
        # A service that was started again must not give out a version that it gave before.
        self._first_version = int(time.time()) * 1000

    def read_job(self, locations: Sequence[tuple[str, str]], owner: str = "") -> JobEventFiles:
        """Return the event files of a job, as recent as they can be read at once. `locations` are pairs of a
        prefix for names of runs and a URI; `owner` is the user whose files are read, "": all."""
        pairs = [
            (prefix, self._directories.setdefault((owner, uri), EventDirectory(uri, self._enforce_budget, owner)))
            for prefix, uri in locations[:MAX_DIRECTORIES]
        ]
        for _, directory in pairs:
            directory.refresh(0)
        deadline = time.monotonic() + COLD_S
        for _, directory in pairs:
            directory.refresh(WARM_S if directory.version else max(0.0, deadline - time.monotonic()))
        self._drop_unused([directory for _, directory in pairs])
        return JobEventFiles(pairs, self._first_version)

    def _drop_unused(self, used: Sequence[EventDirectory]) -> None:
        for directory in sorted(self._directories.values(), key=lambda each: each.used_at):
            points = sum(each.points for each in self._directories.values())
            if len(self._directories) <= MAX_DIRECTORIES and points <= POINTS:
                return
            if directory not in used:
                self._directories.pop((directory.owner, directory.uri), None)

    def _enforce_budget(self) -> None:
        """Free memory until the bound holds; called after a directory has grown, without its lock."""
        with self._budget_lock:
            while sum(each.size for each in list(self._directories.values())) > self._max_bytes and self._free_some():
                pass

    def _free_some(self) -> bool:
        """Free some memory; return whether there was any to free."""
        directories = sorted(self._directories.values(), key=lambda each: each.used_at)
        if directories and time.monotonic() - directories[0].used_at > IDLE_S:
            self._directories.pop((directories[0].owner, directories[0].uri), directories[0]).close()
            return True
        reducible = [each for each in directories if not each.full and each.halvings < MAX_HALVINGS]
        if reducible:
            max(reducible, key=lambda each: each.size).halve()
        return bool(reducible)
