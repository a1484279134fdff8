"""Holds Ctrl-C back while a lock is held.

Python's own handler of SIGINT raises KeyboardInterrupt in the main thread at any place, also where an `__exit__` begins
and its `try` does not yet. A lock of a file would then stay, for as long as the exception's traceback is kept, and
every other process that waits for the lock would stand still.
"""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class HeldInterrupts:
    """Holds SIGINT back from `begin` to `end`. Where Python runs no handler, in other threads, both do nothing."""

    def __init__(self) -> None:
        self.waiting = False
        """Whether the process waits for others, and an interrupt may break that off."""
        self._handler: Any = None
        self._noted = False

    def begin(self) -> None:
        """Take the place of the process's handler, if it has one."""
        if callable(signal.getsignal(signal.SIGINT)):
            with contextlib.suppress(ValueError):  # not the main thread
                self._handler = signal.signal(signal.SIGINT, self._on_signal)

    def end(self) -> None:
        """Give the place back, and let the process's handler have the interrupt that was held back."""
        self.waiting = False
        handler, self._handler = self._handler, None
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
            if self._noted:
                handler(signal.SIGINT, None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.waiting and self._handler is not None:
            self.waiting = False
            self._handler(number, frame)
        else:
            self._noted = True
