"""One bound for the memory of all directories together: those that nobody looks at go first, then every second step."""

from __future__ import annotations

import threading
import time

from howdah.eventfiles.event_directory import EventDirectory

IDLE_S = 60.0
MOST_HALVED = 20


class Budget:
    """`most` bytes for what is in `roots`, by URI."""

    def __init__(self, roots: dict[str, EventDirectory], most: int) -> None:
        self._roots, self._most = roots, most
        self._lock = threading.Lock()

    def keep(self) -> None:
        """Called when there is more, by whoever holds no root's lock."""
        with self._lock:
            while sum(root.size for root in list(self._roots.values())) > self._most and self._give_way():
                pass

    def _give_way(self) -> bool:
        """Whether there was something to let go of."""
        roots = sorted(self._roots.values(), key=lambda root: root.used_at)
        if roots and time.monotonic() - roots[0].used_at > IDLE_S:
            self._roots.pop(roots[0].uri, roots[0]).close()
            return True
        coarser = [root for root in roots if not root.full and root.halved < MOST_HALVED]
        if coarser:
            max(coarser, key=lambda root: root.size).halve()
        return bool(coarser)
