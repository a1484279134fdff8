"""Sends a program's metrics in batches, by threads: the program neither waits nor fails because of them.

The older a metric grows, the fewer of its points the master keeps. Points that can't be sent are dropped; stderr says
so once.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
import time
from typing import Any, Callable, List, Optional, Tuple

from howdah.program import master_client, trackers
from howdah.program.task_identity import HereError, current
from howdah.wire import program_protocol as wire

SEND_S = 1.0
"""Seconds between two batches."""

Point = Tuple[str, Optional[int], Optional[float], float]


class MetricsBuffer:
    """Holds points until its thread has sent them by `send`, in batches of `MAX_POINTS`."""

    def __init__(self, send: Callable[[List[Any]], None]) -> None:
        self._send = send
        self._points: List[Any] = []
        self._lock = threading.Lock()
        self._has_points = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._send_forever, name="howdah.program metrics", daemon=True)
        self._thread.start()

    def add(self, point: Any) -> None:
        """Add a point to the next batch; the oldest points are dropped when there are too many."""
        with self._lock:
            self._points.append(point)
            if len(self._points) > 10 * wire.MAX_POINTS:
                del self._points[: wire.MAX_POINTS]
        self._has_points.set()

    def end(self) -> None:
        """Send the remaining points when the program ends."""
        self._ending = True
        self._has_points.set()
        self._thread.join(master_client.REPLY_S)

    def _send_forever(self) -> None:
        while not (self._ending and not self._points):
            self._has_points.wait()
            self._has_points.clear()
            self._send_all()
            if not self._ending:
                time.sleep(SEND_S)

    def _send_all(self) -> None:
        while True:
            with self._lock:
                batch, self._points = self._points[: wire.MAX_POINTS], self._points[wire.MAX_POINTS :]
            if not batch:
                return
            self._send(batch)


class _Buffers:
    """The buffers of one process: a forked process has none of its parent's threads."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._warned = False
        self.of_master = MetricsBuffer(self._send_to_master)
        self.of_mlflow: Optional[MetricsBuffer] = None
        atexit.register(self.end)

    def end(self) -> None:
        if self.pid == os.getpid():
            for buffer in filter(None, (self.of_master, self.of_mlflow)):
                buffer.end()

    def add_for_mlflow(self, point: trackers.MlflowPoint) -> None:
        if self.of_mlflow is None:
            self.of_mlflow = MetricsBuffer(trackers.send)
        self.of_mlflow.add(point)

    def _send_to_master(self, batch: List[Point]) -> None:
        try:
            problem = str(master_client.call("metrics", {"points": batch}).get("problem", ""))
        except HereError as error:
            problem = str(error)
        if problem and not self._warned:
            self._warned = True
            sys.stderr.write(f"[howdah.program: metrics are lost: {problem}]\n")


_buffers: Optional[_Buffers] = None


def add(name: str, value: float, step: Optional[int]) -> None:
    """Add a point to metric `name`. Raises HereError outside a job, TypeError or ValueError for a value that is not a
    number."""
    global _buffers
    current()
    number, now, whole_step = float(value), time.time(), None if step is None else int(step)
    if _buffers is None or _buffers.pid != os.getpid():
        _buffers = _Buffers()
    _buffers.of_master.add((name, whole_step, number if math.isfinite(number) else None, now))
    of_mlflow = trackers.add(name, number, whole_step, now)
    if of_mlflow is not None:
        _buffers.add_for_mlflow(of_mlflow)
