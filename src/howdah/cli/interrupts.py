"""Ctrl-C while a job is submitted and followed.

Two signals at once (from an impatient user, or from `timeout` and the terminal) count as one interrupt: the second must
not break off what the first has begun, and leave a job running of which the user has not been told.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType

from howdah.cli.i18n import _

MIN_SIGNALS_TO_LEAVE = 3
"""So many signals while interrupts are held leave whatever is under way."""


class Interrupts:
    """Replaces Python's handler of SIGINT. Interrupts are held back (counted) until `allow` is called."""

    def __init__(self) -> None:
        self._allowed = self._installed = self._taken = False
        self._count = 0

    def __enter__(self) -> Interrupts:
        # A process whose SIGINT is ignored (nohup, a script's background) keeps it so.
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_default and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._on_signal)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:  # one that comes late is of those that were taken, and the command ends now
            signal.signal(signal.SIGINT, signal.SIG_IGN if self._taken else signal.default_int_handler)

    def check(self) -> None:
        """Raise KeyboardInterrupt if an interrupt is held."""
        if self._count:
            raise KeyboardInterrupt

    def allow(self) -> None:
        """Let the next interrupt raise KeyboardInterrupt, at once if one is held back; those after it are held back
        again."""
        self._allowed = True
        if self._count:
            self._allowed, self._count = False, 0
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Hold interrupts back, and forget those that were held back before."""
        self._allowed, self._count = False, 0

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        self._taken = True
        if self._allowed:
            self._allowed = False
            raise KeyboardInterrupt
        self._count += 1
        if self._count == 1:
            text = _("interrupted: what is under way is finished first; Ctrl-C twice more leaves it at once")
            with contextlib.suppress(OSError):
                os.write(2, f"howdah: {text}\n".encode("utf-8", "replace"))  # a buffered stream may be in use just now
        if self._count >= MIN_SIGNALS_TO_LEAVE:
            self._count = 0
            raise KeyboardInterrupt
