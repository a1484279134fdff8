"""Holds Ctrl-C back while a lock is held.

Python's own handler of SIGINT raises KeyboardInterrupt in the main thread at any place, even where an `__exit__` has
begun and its `try` has not. A lock of a file would then stay as long as the exception's traceback is kept, and every
other process that waits for the lock would stand still.
"""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


class HeldInterrupts:
    """Holds SIGINT back from `begin` to `end`. In other threads, where Python runs no handler, both do nothing."""

    def __init__(self) -> None:
        self.waiting = False
        """Whether the process waits for others; an interrupt may end that wait."""
        self._handler: Any = None
        self._noted = False

    def begin(self) -> None:
        """Replace the process's handler, if it has one."""
        if callable(signal.getsignal(signal.SIGINT)):
            with contextlib.suppress(ValueError):  # not the main thread
                self._handler = signal.signal(signal.SIGINT, self._on_signal)

    def end(self) -> None:
        """Restore the process's handler, and pass on the interrupt that was held back."""
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
