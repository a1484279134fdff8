"""Sends a program's metrics to the master in batches, by a thread: the program neither waits nor fails for them.

The master keeps fewer points the older a metric grows. Points that can't be sent are dropped; stderr says so once.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
import time
from typing import List, Optional, Tuple

from howdah.program import master_client, trackers
from howdah.program.task_identity import HereError, current
from howdah.wire import program_protocol as wire

SEND_S = 1.0
"""Seconds between two batches."""

Point = Tuple[str, Optional[int], Optional[float], float]


class MetricsBuffer:
    """Holds points until its thread has sent them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._points: List[Point] = []
        self._lock = threading.Lock()
        self._has_points = threading.Event()
        self._ending = False
        self._warned = False
        self._thread = threading.Thread(target=self._send_forever, name="howdah.program metrics", daemon=True)
        self._thread.start()

    def add(self, point: Point) -> None:
        """Add a point to the next batch; the oldest points are dropped when there are too many."""
        with self._lock:
            self._points.append(point)
            if len(self._points) > 10 * wire.MAX_POINTS:
                del self._points[: wire.MAX_POINTS]
        self._has_points.set()

    def end(self) -> None:
        """Send the points that are left, when the program ends."""
        if self.pid == os.getpid():
            self._ending = True
            self._has_points.set()
            self._thread.join(master_client.REPLY_S)

    def _send_forever(self) -> None:
        while not (self._ending and not self._points):
            self._has_points.wait()
            self._has_points.clear()
            self._send()
            if not self._ending:
                time.sleep(SEND_S)

    def _send(self) -> None:
        while True:
            with self._lock:
                batch, self._points = self._points[: wire.MAX_POINTS], self._points[wire.MAX_POINTS :]
            if not batch:
                return
            try:
                problem = str(master_client.call("metrics", {"points": batch}).get("problem", ""))
            except HereError as error:
                problem = str(error)
            if problem and not self._warned:
                self._warned = True
                sys.stderr.write(f"[howdah.program: metrics are lost: {problem}]\n")


_buffer: Optional[MetricsBuffer] = None


def add(name: str, value: float, step: Optional[int]) -> None:
    """Add a point to metric `name`; raises HereError outside a job, TypeError or ValueError for what is no number."""
    global _buffer
    current()
    number = float(value)
    if _buffer is None or _buffer.pid != os.getpid():
        _buffer = MetricsBuffer()
        atexit.register(_buffer.end)
    whole_step = None if step is None else int(step)
    _buffer.add((name, whole_step, number if math.isfinite(number) else None, time.time()))
    trackers.add(name, number, whole_step)
