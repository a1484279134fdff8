"""`Meter` measures memory, CPU and disk of a process tree from /proc, and the network of its namespace.

Memory is the sum of resident sizes, as clusters' own monitors count it: shared pages are counted in each process.
Disk is what storage really read and wrote for it (`read_bytes`, `write_bytes` of proc(5) io), not what came from the
page cache. A tree of thousands of threads is sampled less often, so that sampling takes at most a 200th of a core.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Callable, List, Optional, Tuple

from howdah.executor.process import process_tree
from howdah.executor.process.network_usage import NetworkUsage
from howdah.spec.usage import Usage

PERIOD_S = 2.0
SHARE = 0.005
"""Share of a core that sampling may take."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20


class Meter:
    """Samples the process tree of `pid`, or the processes that `pids()` lists.

    `usage` is the last sample; its peak is the highest sample, or what `note_end` got. `period` is how many
    seconds to wait until the next sample.
    """

    def __init__(self, pid: int, pids: Optional[Callable[[], List[int]]] = None, own_network: bool = False) -> None:
        self.pid = pid
        self.usage = Usage()
        self.period = PERIOD_S
        self._pids = pids or (lambda: process_tree.tree(pid))
        self._network = NetworkUsage(pid, own_network)
        self._time = time.monotonic()
        self._totals: Tuple[float, ...] = (0.0, 0.0, 0.0, *self._network.totals())
        self._initial = self._totals
        self._samples = self._samples_waiting = 0

    def sample(self, progress: Optional[float] = None) -> None:
        """Take a sample now. Rates are means since the last sample; ended children count once they are waited for."""
        began = time.thread_time()
        resident, seconds, waiting, read, written = 0, 0.0, False, 0, 0
        for pid in self._pids():
            pages, used, waits = _stat(pid)
            resident += pages * _PAGE
            seconds += used
            waiting = waiting or waits
            disk = _disk(pid)
            read, written = read + disk[0], written + disk[1]
        self._samples, self._samples_waiting = self._samples + 1, self._samples_waiting + waiting
        rates, sums = self._advance((seconds, read / _MIB, written / _MIB, *self._network.totals()))
        memory = resident / _MIB
        self.usage = Usage(
            memory_mib=round(memory, 1),
            peak_mib=round(max(memory, self.usage.peak_mib), 1),
            cpu=round(rates[0], 2),
            progress=progress,
            cpu_s=round(sums[0], 1),
            waits=round(self._samples_waiting / self._samples, 2),
            read_mib=round(sums[1], 1),
            written_mib=round(sums[2], 1),
            received_mib=round(sums[3], 1),
            sent_mib=round(sums[4], 1),
            read_mib_s=round(rates[1], 2),
            written_mib_s=round(rates[2], 2),
            received_mib_s=round(rates[3], 2),
            sent_mib_s=round(rates[4], 2),
            network=self._network.whose,
        )
        self.period = max(PERIOD_S, (time.thread_time() - began) / SHARE)

    def _advance(self, totals: Tuple[float, ...]) -> Tuple[List[float], List[float]]:
        """Return the growth per second since the last sample, and the growth since the program began.

        A total that shrinks, because a process ended whose parent did not wait for it, keeps its value.
        """
        now = time.monotonic()
        passed = max(1e-3, now - self._time)
        grown = tuple(map(max, totals, self._totals))
        rates = [(new - self._totals[number]) / passed for number, new in enumerate(grown)]
        self._totals, self._time = grown, now
        return rates, [new - self._initial[number] for number, new in enumerate(grown)]

    def note_end(self, kib: int, progress: Optional[float], seconds: float = 0.0) -> None:
        """Make the last sample: the largest resident size was `kib` (ru_maxrss), the program used `seconds` of CPU."""
        last = self.usage
        self.usage = replace(
            last,
            memory_mib=0.0,
            peak_mib=round(max(kib / 1024, last.peak_mib), 1),
            cpu=0.0,
            progress=progress,
            cpu_s=round(max(seconds, last.cpu_s), 1),
            read_mib_s=0.0,
            written_mib_s=0.0,
            received_mib_s=0.0,
            sent_mib_s=0.0,
        )


def _stat(pid: int) -> Tuple[int, float, bool]:
    """Return the resident pages, the CPU seconds including those of children it waited for, and whether it waits for a
    disk.

    These are the fields 24, 14 to 17 and 3 of proc(5) stat.
    """
    fields = process_tree.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 22:
        return 0, 0.0, False
    return int(fields[21]), sum(int(fields[n]) for n in (11, 12, 13, 14)) / _TICKS, fields[0] == b"D"


def _disk(pid: int) -> Tuple[int, int]:
    """Return the bytes read and written, including those of children it waited for; 0 for a process of another user."""
    text = process_tree.read(f"/proc/{pid}/io")
    start = text.find(b"\nread_bytes: ")
    words = text[start:].split() if start >= 0 else []
    return (int(words[1]), int(words[3])) if len(words) >= 4 else (0, 0)
