"""Ctrl-C, and other signals that end a command.

A handler that raises an exception raises it at whatever place the main thread is. Python drops what is raised in a
finalizer or a callback of its own, and what is raised in the middle of bookkeeping leaves it half done. So:

- A command that submits or follows a job uses `Interrupts`. The handler only notes the signal. The work is done in
  other threads, for which the main thread waits, and while it waits it acts on what was noted.
- All other commands only have to end. Ctrl-C raises KeyboardInterrupt, as ever, and `RaisedInterrupts` raises it again
  until it has come through.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from howdah.cli.i18n import _

if TYPE_CHECKING:
    from types import FrameType

    from howdah.storage.hdfs.call_timeout import Call

T = TypeVar("T")
SIGNALS_TO_LEAVE = 3
"""The number of signals by which a user leaves something that is under way. A second SIGTERM leaves at once."""
TOGETHER_S = 0.1
"""Seconds within which signals count as one: `timeout` and the terminal, or a closed terminal and its shell, send the
same signal twice."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command: from a user, from a scheduler, from a closed terminal."""
STOPPING = (signal.SIGINT, signal.SIGTERM)
"""The signals that stop a command which submits or follows a job: from a user, from a scheduler or a pipeline. A closed
terminal ends it as it ends any program."""
_LOOK_S = 0.05  # between two looks of the main thread: a signal that another thread got does not wake it
_AGAIN_S = 0.5
_LINE_BYTES = 1 << 12


class SignalReceived(Exception):
    """A signal has come; the code that catches this must obey it."""


class Interrupts:
    """Notes signals, and calls functions in other threads until they return or a signal is to be obeyed. The main
    thread uses it, and functions that it calls use `check`.

    Signals that are ignored (nohup, a script's background), and those of which the process has a handler of its own,
    stay as they are.
    """

    def __init__(
        self,
        signals: Sequence[int] = (signal.SIGINT,),
        clock: Callable[[], float] = time.monotonic,
        ends_process: bool = True,
    ) -> None:
        """Set whether the process ends soon after a signal (`ends_process`): that of a command does, that of a program
        does not."""
        self._signals, self._clock, self._ends_process = signals, clock, ends_process
        self._before: dict[int, Any] = {}
        self._held: list[int] = []
        self._last = -TOGETHER_S
        self.last_signal: int = signal.SIGINT
        """The number of the last signal."""
        self.has_left = False
        """Whether the user has insisted on leaving; then what was under way goes on in the background."""
        self._obeyed = self._taken = self._told = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                before = signal.getsignal(number)
                if before in (signal.SIG_DFL, signal.default_int_handler) or _is_raising(before):
                    self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *error: object) -> None:
        # If a signal was handled and the command ends now, ignore signals that come later.
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._taken and self._ends_process else before)

    @property
    def status(self) -> int:
        """Return the exit status of a command that the last signal ends, as shells count it: 130 or 143."""
        return 128 + self.last_signal

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come that was not obeyed yet. Any thread may call this."""
        if self._held:
            raise KeyboardInterrupt

    def call(self, function: Callable[[], T]) -> T:
        """Call `function` and return its result, or raise its error; signals are held back meanwhile.

        Raises:
            KeyboardInterrupt: the user insists on leaving; the function goes on in the background.
        """
        return self.finish(start_in_context(function))

    def finish(self, call: Call[T], limit_s: float = math.inf) -> T:
        """Wait for the call, and return its result or raise its error; signals are held back meanwhile.

        Raises:
            KeyboardInterrupt: the user insists on leaving; the call goes on in the background.
            CallTimeout: it needs longer than `limit_s`.
        """
        return self._wait(call, self._raise_if_insisted, limit_s)

    def wait(self, call: Call[T], limit_s: float = math.inf) -> T:
        """Wait for the call, and return its result or raise its error.

        Raises:
            SignalReceived: a signal is to be obeyed; the call goes on in the background, and may be waited for again.
            KeyboardInterrupt: the user insists on leaving.
            CallTimeout: it needs longer than `limit_s`.
        """
        return self._wait(call, self._raise_if_received, limit_s)

    def _wait(self, call: Call[T], act: Callable[[], None], limit_s: float) -> T:
        from howdah.storage.hdfs.call_timeout import CallTimeout

        until = self._clock() + limit_s
        while True:
            act()
            try:
                return call.result(_LOOK_S)
            except CallTimeout:
                if self._clock() >= until:
                    raise

    def read_line(self, is_over: Callable[[], bool] = lambda: False) -> str:
        """Return a line of the terminal that is the standard input; "" when `is_over()` is true before a line has come.

        Raises:
            EOFError: there is none. SignalReceived: a signal is to be obeyed.
            KeyboardInterrupt: the user insists on leaving.
        """
        while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            self._raise_if_received()
            if is_over():
                return ""
        line = os.read(sys.stdin.fileno(), _LINE_BYTES)  # a terminal gives one line at a time
        if not line:
            raise EOFError
        return line.decode(errors="replace").strip()

    def forget(self) -> None:
        """Forget the signals that were held back."""
        del self._held[:]
        self._told = False

    def _raise_if_received(self) -> None:
        if self._held:
            insisted = self._obeyed and signal.SIGTERM in self._held
            self.forget()
            self._obeyed = True
            raise KeyboardInterrupt if insisted else SignalReceived

    def _raise_if_insisted(self) -> None:
        again = self._held if self._obeyed else self._held[1:]
        if len(self._held) >= SIGNALS_TO_LEAVE or signal.SIGTERM in again:
            self.forget()
            self.has_left = True
            raise KeyboardInterrupt
        if self._held and not self._told:
            self._told = True
            text = _("interrupted: finishing what has begun; press Ctrl-C twice more to leave at once")
            if self.last_signal == signal.SIGTERM:
                text = _("interrupted by SIGTERM: finishing what has begun; a second one leaves at once")
            with contextlib.suppress(OSError):
                os.write(2, f"howdah: {text}\n".encode("utf-8", "replace"))  # a buffered stream may be in use just now

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._taken = True
        now = self._clock()
        if now - self._last >= TOGETHER_S:
            self._last, self.last_signal = now, number
            self._held.append(number)
        if number == signal.SIGHUP:
            _detach_from_terminal()


def _detach_from_terminal() -> None:
    """Replace the closed terminal by /dev/null, because printing to it would raise an error."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            with contextlib.suppress(OSError):  # the stream may be closed
                if stat.S_ISCHR(os.fstat(stream).st_mode):
                    os.dup2(null, stream)
        os.close(null)


def start_in_context(function: Callable[[], T]) -> Call[T]:
    """Call the function in another thread, with this thread's click context: its output has colours if this thread's
    has."""
    import click

    from howdah.storage.hdfs.call_timeout import start_call

    context = click.get_current_context(silent=True)
    if context is None:
        return start_call(function)

    def run() -> T:
        with context.scope(cleanup=False):
            return function()

    return start_call(run)


def finish_unless_interrupted(function: Callable[[], object]) -> bool:
    """Return True when `function()` has returned, False if Ctrl-C came before: then the function goes on in the
    background, and the command should end."""
    with Interrupts() as interrupts:
        try:
            interrupts.wait(start_in_context(function))
        except SignalReceived:
            return False
        return True


class RaisedInterrupts:
    """Turns SIGINT into a KeyboardInterrupt, as Python does, and raises it again until it is being handled."""

    def __init__(self, again_s: float = _AGAIN_S) -> None:
        self._again_s = again_s
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> RaisedInterrupts:
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_default and threading.current_thread() is threading.main_thread():
            self._before = [
                (signal.SIGALRM, signal.signal(signal.SIGALRM, self._on_alarm)),
                (signal.SIGINT, signal.signal(signal.SIGINT, self.on_signal)),
            ]
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in self._before:
                if signal.getsignal(number) in (self._on_alarm, self.on_signal):
                    signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, again and again until it is being handled."""
        signal.setitimer(signal.ITIMER_REAL, self._again_s, self._again_s)
        raise KeyboardInterrupt

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if not _is_interrupted():
            signal.setitimer(signal.ITIMER_REAL, 0)
            handler = signal.getsignal(signal.SIGINT)  # another one, where signals may not raise anything just now
            if callable(handler):
                handler(signal.SIGINT, frame)


def _is_raising(handler: Any) -> bool:
    return isinstance(getattr(handler, "__self__", None), RaisedInterrupts)


def _is_interrupted() -> bool:
    """Return whether the running code handles a KeyboardInterrupt, or an error that was caused by one."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
