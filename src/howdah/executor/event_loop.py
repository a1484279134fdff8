"""`EventLoop` waits in one thread for descriptors, timers and signals.

An executor has no second thread: so it forks safely, and the kernel's parent-death signal, which follows the forking
*thread*, follows the process.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import signal
import time
from typing import Any, Callable, List, Protocol, Tuple

from howdah.executor.process.process_tree import Reaper

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Activity(Protocol):
    """Something that an executor waits for: localisation, checks, the program, or the storing of its outputs."""

    def stop(self, grace_s: float) -> None: ...


class Timer:
    """A call at a later time, unless it is cancelled."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class EventLoop:
    """Calls back when a descriptor is ready, when a timer is due, and when a signal has arrived.

    Its `reaper` starts child processes, and reports their end once the loop's user has bound it to SIGCHLD. `time`
    returns the seconds by which timers are due.
    """

    def __init__(self, time: Callable[[], float] = time.monotonic) -> None:
        self.reaper, self.time = Reaper(), time
        self._selector = selectors.DefaultSelector()
        self._timers: List[Tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def add_fd(self, file: int, events: int, call: Callable[[int], None]) -> None:
        """Call `call(events)` whenever `file` is ready; this replaces an earlier call for `file`."""
        try:
            self._selector.modify(file, events, call)
        except KeyError:
            self._selector.register(file, events, call)

    def remove_fd(self, file: int) -> None:
        """Make no more calls for `file`; this is called before `file` is closed."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(file)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call `call` once, after `seconds`."""
        timer = Timer(call)
        heapq.heappush(self._timers, (self.time() + seconds, next(self._order), timer))
        return timer

    def on_signal(self, number: int, call: Callable[[], object]) -> None:
        """Call `call` from the loop, never in the middle of other code, once signal `number` has arrived."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)

        def note(*_: Any) -> None:
            with contextlib.suppress(BlockingIOError):
                os.write(writer, b"!")

        def arrived(_: int) -> None:
            os.read(reader, 4096)
            call()

        self.add_fd(reader, READ, arrived)
        signal.signal(number, note)

    def close(self) -> None:
        """Close the loop's descriptor; nothing may be called any more."""
        self._selector.close()

    def run_once(self) -> None:
        """Wait for the next event, and make all calls that are due."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        timeout = max(0.0, self._timers[0][0] - self.time()) if self._timers else None
        for key, events in self._selector.select(timeout):
            if key.fd in self._selector.get_map():
                key.data(events)
        now = self.time()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if not timer.cancelled:
                timer.call()
