"""Values that change with time, sent in batches beside the program: it never waits for them, nor fails by them.

The master keeps fewer points the older a curve grows. What can't be sent is dropped, and said once on stderr.
"""

from __future__ import annotations

import atexit
import math
import os
import sys
import threading
import time
from typing import List, Optional, Tuple

from howdah.program import master_client
from howdah.program.task_identity import HereError, current
from howdah.wire import program_protocol as wire

SEND_S = 1.0
"""At most this often."""

Point = Tuple[str, Optional[int], Optional[float], float]


class Buffer:
    """Points on their way, and the thread that sends them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._points: List[Point] = []
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._ending = False
        self._told = False
        self._thread = threading.Thread(target=self._send_forever, name="howdah.program metrics", daemon=True)
        self._thread.start()

    def add(self, point: Point) -> None:
        """Keep it for the next batch; of too many the oldest are dropped."""
        with self._lock:
            self._points.append(point)
            if len(self._points) > 10 * wire.MAX_POINTS:
                del self._points[: wire.MAX_POINTS]
        self._wanted.set()

    def end(self) -> None:
        """Send what is left, when the program ends."""
        if self.pid == os.getpid():
            self._ending = True
            self._wanted.set()
            self._thread.join(master_client.REPLY_S)

    def _send_forever(self) -> None:
        while not (self._ending and not self._points):
            self._wanted.wait()
            self._wanted.clear()
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
            if problem and not self._told:
                self._told = True
                sys.stderr.write(f"[howdah.program: metrics are lost: {problem}]\n")


_buffer: Optional[Buffer] = None


def add(name: str, value: float, step: Optional[int]) -> None:
    """Raises HereError outside a job, TypeError or ValueError when it is no number."""
    global _buffer
    current()
    number = float(value)
    kept = number if math.isfinite(number) else None
    if _buffer is None or _buffer.pid != os.getpid():
        _buffer = Buffer()
        atexit.register(_buffer.end)
    _buffer.add((name, None if step is None else int(step), kept, time.time()))
