"""What a process tree uses, from /proc: memory, CPU, disk; and the network of where it runs.

Memory is the sum of resident sizes, as YARN's own monitor counts it: pages that processes share are counted in each.
Disk is what storage really read and wrote for it (`read_bytes`, `write_bytes` of proc(5) io), not what came from the
page cache. A tree of thousands of threads is looked at less often, so that looking takes at most a 200th of a core.
"""

from __future__ import annotations

import os
import time
from typing import Callable, List, Optional, Tuple

from howdah.executor.process import process_tree
from howdah.executor.process.network_usage import NetworkUsage
from howdah.wire.messages import Usage

PERIOD_S = 2.0
SHARE = 0.005
"""Of a core, that sampling may take."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20


class Meter:
    """Samples the tree of `pid`, or the processes that `pids` names. `usage` is the last sample; its peak is the
    highest sample, or what `note_end` was told. `period` is how long to wait until the next."""

    def __init__(self, pid: int, pids: Optional[Callable[[], List[int]]] = None, own_network: bool = False) -> None:
        self.pid = pid
        self.usage = Usage()
        self.period = PERIOD_S
        self._pids = pids or (lambda: process_tree.tree(pid))
        self._network = NetworkUsage(pid, own_network)
        self._time = time.monotonic()
        self._totals: Tuple[float, ...] = (0.0, 0.0, 0.0, *self._network.totals())
        self._begun = self._totals
        self._samples = self._waiting = 0

    def sample(self, progress: Optional[float] = None) -> None:
        """Take a sample now. Rates are means since the one before; ended children count once they are waited for."""
        began = time.thread_time()
        resident, seconds, waiting, read, written = 0, 0.0, False, 0, 0
        for pid in self._pids():
            pages, used, waits = _stat(pid)
            resident += pages * _PAGE
            seconds += used
            waiting = waiting or waits
            disk = _disk(pid)
            read, written = read + disk[0], written + disk[1]
        self._samples, self._waiting = self._samples + 1, self._waiting + waiting
        rates, sums = self._advance((seconds, read / _MIB, written / _MIB, *self._network.totals()))
        memory = resident / _MIB
        self.usage = Usage(
            round(memory, 1),
            round(max(memory, self.usage.peak_mib), 1),
            round(rates[0], 2),
            progress,
            cpu_s=round(sums[0], 1),
            waits=round(self._waiting / self._samples, 2),
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
        """(a second since the last sample, since the program began); a total that shrinks, since a process ended that
        nobody waited for, stands still."""
        now = time.monotonic()
        passed = max(1e-3, now - self._time)
        grown = tuple(map(max, totals, self._totals))
        rates = [(new - self._totals[number]) / passed for number, new in enumerate(grown)]
        self._totals, self._time = grown, now
        return rates, [new - self._begun[number] for number, new in enumerate(grown)]

    def note_end(self, kib: int, progress: Optional[float], seconds: float = 0.0) -> None:
        """The program has ended; its largest resident size was `kib` (ru_maxrss), it used `seconds` of CPU."""
        last = self.usage
        self.usage = Usage(
            0.0,
            round(max(kib / 1024, last.peak_mib), 1),
            0.0,
            progress,
            cpu_s=round(max(seconds, last.cpu_s), 1),
            waits=last.waits,
            read_mib=last.read_mib,
            written_mib=last.written_mib,
            received_mib=last.received_mib,
            sent_mib=last.sent_mib,
            network=last.network,
        )


def _stat(pid: int) -> Tuple[int, float, bool]:
    """(resident pages, CPU seconds with those of children it waited for, whether it waits for a disk): fields 24, 14 to
    17 and 3 of proc(5) stat."""
    fields = process_tree.read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 22:
        return 0, 0.0, False
    return int(fields[21]), sum(int(fields[n]) for n in (11, 12, 13, 14)) / _TICKS, fields[0] == b"D"


def _disk(pid: int) -> Tuple[int, int]:
    """Bytes read and written, with those of children it waited for; none for a process of another user."""
    text = process_tree.read(f"/proc/{pid}/io")
    start = text.find(b"\nread_bytes: ")
    words = text[start:].split() if start >= 0 else []
    return (int(words[1]), int(words[3])) if len(words) >= 4 else (0, 0)
