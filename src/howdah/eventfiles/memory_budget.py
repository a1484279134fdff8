"""Keep the memory of all event directories below one bound: drop unused directories, then every second step."""

from __future__ import annotations

import threading
import time

from howdah.eventfiles.event_directory import EventDirectory

IDLE_S = 60.0
MAX_HALVINGS = 20


class Budget:
    """Keep `directories`, which are keyed by URI, below `max_bytes`."""

    def __init__(self, directories: dict[str, EventDirectory], max_bytes: int) -> None:
        self._directories, self._max_bytes = directories, max_bytes
        self._lock = threading.Lock()

    def enforce(self) -> None:
        """Free memory until the bound holds. Call this after growth, without holding a directory's lock."""
        with self._lock:
            while self._size() > self._max_bytes and self._free_some():
                pass

    def _size(self) -> int:
        return sum(directory.size for directory in list(self._directories.values()))

    def _free_some(self) -> bool:
        """Free some memory; return whether there was any to free."""
        directories = sorted(self._directories.values(), key=lambda directory: directory.used_at)
        if directories and time.monotonic() - directories[0].used_at > IDLE_S:
            self._directories.pop(directories[0].uri, directories[0]).close()
            return True
        reducible = [each for each in directories if not each.full and each.halvings < MAX_HALVINGS]
        if reducible:
            max(reducible, key=lambda directory: directory.size).halve()
        return bool(reducible)
