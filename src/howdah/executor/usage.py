"""Memory and CPU of a process tree, from /proc.

Memory is the sum of resident sizes, as YARN's own monitor counts it: pages that processes share are counted in each.
"""

from __future__ import annotations

import os
import time
from typing import Optional, Tuple

from howdah.executor import processes
from howdah.wire.messages import Usage

PERIOD_S = 2.0
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20


class Meter:
    """Samples one tree. `usage` is the last sample; its peak is the highest sample, or what `note_end` was told."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.usage = Usage()
        self._seconds, self._time = 0.0, time.monotonic()

    def sample(self, progress: Optional[float] = None) -> None:
        """Take a sample now. CPU is the mean since the one before; ended children count once they are waited for."""
        resident, seconds = 0, 0.0
        for pid in processes.tree(self.pid):
            pages, used = _read(pid)
            resident += pages * _PAGE
            seconds += used
        now = time.monotonic()
        cpu = max(0.0, seconds - self._seconds) / max(1e-3, now - self._time)
        self._seconds, self._time = max(seconds, self._seconds), now
        memory = resident / _MIB
        self.usage = Usage(round(memory, 1), round(max(memory, self.usage.peak_mib), 1), round(cpu, 2), progress)

    def note_end(self, kib: int, progress: Optional[float]) -> None:
        """The program has ended; its largest resident size was `kib` (ru_maxrss)."""
        self.usage = Usage(0.0, round(max(kib / 1024, self.usage.peak_mib), 1), 0.0, progress)


def _read(pid: int) -> Tuple[int, float]:
    """(resident pages, CPU seconds with those of children it waited for): fields 24 and 14 to 17 of proc(5) stat."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, 0.0
    return int(fields[21]), sum(int(fields[n]) for n in (11, 12, 13, 14)) / _TICKS
