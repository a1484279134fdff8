"""Copying beside a program, which comes first: of cores that it wants only a small share is used.

Priority does not do it. Every thread at nice 19 still gets 1.5 % of a core that another wants; and what is written to a
DataNode of this machine costs twice as much there, at the priority of a daemon, the more so the slower it trickles in.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import BinaryIO, Protocol

from howdah.spec import uris
from howdah.storage.filesystem import CHUNK

SHARE, LOCAL_SHARE = 0.003, 0.009
"""Of this machine's cores, while others wait for them, or we for them; when nobody else has work with what we write."""
LOOK_S = 0.005
"""Of our CPU time, between two looks."""
WANTED = 0.2
"""Of the time that we ran we have waited to run: then others want these cores."""
LONGEST_S = 2.0


class Writable(Protocol):
    """A file, or a place on another filesystem that is being written."""

    def write(self, data: bytes, /) -> object: ...


class CpuThrottle:
    """The priority of this process: its new threads never take a core from a running one (sched(7), SCHED_BATCH)."""

    def __init__(self, share: float) -> None:
        with contextlib.suppress(OSError):  # some containers may not choose; the pace is kept all the same
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        self._allowed = share * len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._since, self._ran, self._waited = 0.0, float("-inf"), 0.0

    def throttle(self) -> None:
        """To be called after each piece of work: sleeps if it was done on cores that are wanted elsewhere. What led to
        the first piece is not counted."""
        with self._lock:
            ran = time.process_time() - self._ran
            if ran < LOOK_S:
                return
            if _waited() - self._waited > ran * WANTED:
                owed = ran / self._allowed - (time.monotonic() - self._since)
                time.sleep(min(max(0.0, owed), LONGEST_S))
            self._since, self._ran, self._waited = time.monotonic(), time.process_time(), _waited()


_ours: CpuThrottle | None = None


def enable(uri: str) -> None:
    """The program comes first from now on, whatever this process writes by `pour`, to `uri` and below."""
    global _ours
    _ours = _ours or CpuThrottle(LOCAL_SHARE if uris.split(uri)[0] == "file" else SHARE)


def copy_throttled(source: BinaryIO, sink: Writable, size: int) -> None:
    """Copy up to `size` bytes, at the pace that `enable` has set."""
    while size and (data := source.read(min(size, CHUNK))):
        sink.write(data)
        size -= len(data)
        if _ours is not None:
            _ours.throttle()


def _waited() -> float:
    """Seconds that threads of this process could have run and did not: the second number of schedstat; 0 where the
    kernel does not count them."""
    waited = 0
    for thread in Path("/proc/self/task").iterdir():
        try:
            waited += int((thread / "schedstat").read_bytes().split()[1])
        except (OSError, IndexError, ValueError):  # it has ended
            continue
    return waited / 1e9
