"""Slows copying beside a program: while the program wants the cores, copying uses only a small share of them.

A low priority is not enough. Every thread at nice 19 still gets 1.5 % of a core that another thread wants. A DataNode
of this machine spends twice as much CPU time on the data written to it, at the priority of a daemon, and more on slow
writers.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from howdah.spec import uris
from howdah.storage.filesystem import CHUNK

SHARE, LOCAL_SHARE = 0.003, 0.009
"""The share of this machine's cores that copying may use while a program wants them: over the network, and to this
machine's own disk, for which no DataNode has to work."""
LOOK_S = 0.005
"""The CPU time of this process between two checks."""
WANTED = 0.2
"""If this process has waited for a core for more than this part of its CPU time, others want the cores."""
MAX_PAUSE_S = 2.0


class Writable(Protocol):
    """A file of this machine or of another file system that is being written."""

    def write(self, data: bytes, /) -> object: ...


class CpuThrottle:
    """Throttles this process, whose new threads never take a core from a running thread (SCHED_BATCH, sched(7))."""

    def __init__(self, share: float) -> None:
        with contextlib.suppress(OSError):  # some containers may not choose it; throttling works all the same
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        self._allowed = share * len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._since, self._ran, self._waited = 0.0, float("-inf"), 0.0

    def throttle(self) -> None:
        """Sleep if the work since the last call used cores that others want. Call it after each piece of work; the time
        before the first call does not count."""
        with self._lock:
            ran = time.process_time() - self._ran
            if ran < LOOK_S:
                return
            if _cpu_wait_s() - self._waited > ran * WANTED:
                owed = ran / self._allowed - (time.monotonic() - self._since)
                time.sleep(min(max(0.0, owed), MAX_PAUSE_S))
            self._since, self._ran, self._waited = time.monotonic(), time.process_time(), _cpu_wait_s()


_throttle: CpuThrottle | None = None


def enable(uri: str) -> None:
    """Give the program precedence over `copy_throttled` from now on. This process writes to `uri` and below."""
    global _throttle
    _throttle = _throttle or CpuThrottle(LOCAL_SHARE if uris.split(uri)[0] == "file" else SHARE)


def copy_throttled(
    source: BinaryIO, sink: Writable, size: int, moved: Callable[[int], object] = lambda _: None
) -> None:
    """Copy up to `size` bytes, at the pace that `enable` has set; `moved` is called with the bytes of each piece."""
    while size and (data := source.read(min(size, CHUNK))):
        sink.write(data)
        size -= len(data)
        moved(len(data))
        if _throttle is not None:
            _throttle.throttle()


def _cpu_wait_s() -> float:
    """Return the seconds for which threads of this process were ready and did not run (the second number of schedstat);
    0 if the kernel does not count them."""
    waited = 0
    for thread in Path("/proc/self/task").iterdir():
        try:
            waited += int((thread / "schedstat").read_bytes().split()[1])
        except (OSError, IndexError, ValueError):  # it has ended
            continue
    return waited / 1e9
