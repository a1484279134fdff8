"""Whether the Python of a shipped environment runs on this node: found out before the gang starts, not by its program.

An environment leads to the Python it was made with, or brings one made for another system; both look right until used.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Callable, Sequence

from howdah.executor.event_loop import EventLoop
from howdah.executor.process import process_tree

_LIMIT_S = 60.0


class InterpreterProbe:
    """One start of the interpreter in `directories` (the environment's own); `done` is called with "" or what is wrong.

    Raises:
        OSError: it can't even be started.
    """

    def __init__(self, loop: EventLoop, reaper: process_tree.Reaper, python: str, done: Callable[[str], None]) -> None:
        self.python, self._done, self._reason = python, done, ""
        self._said = os.memfd_create("trial")
        nothing = os.open(os.devnull, os.O_RDWR)
        argv = (python, "-c", "import encodings, zlib")
        try:
            self.pid = reaper.spawn(argv, dict(os.environ), (nothing, nothing, self._said), self._ended, "/", True)
        except OSError:
            os.close(self._said)
            raise
        finally:
            os.close(nothing)
        self._timer = loop.call_later(
            _LIMIT_S, lambda: self._give_up(f"{python} did not start within {_LIMIT_S:.0f} s")
        )

    def stop(self, grace: float) -> None:
        """It is not worth waiting for."""
        self._give_up("the trial of the environment was stopped")

    def _give_up(self, reason: str) -> None:
        self._reason = self._reason or reason
        process_tree.kill_group(self.pid, signal.SIGKILL)

    def _ended(self, status: int, _: Any) -> None:
        self._timer.cancel()
        os.lseek(self._said, 0, os.SEEK_SET)
        lines = os.read(self._said, 1 << 16).decode("utf-8", "replace").strip().splitlines()
        os.close(self._said)
        why = lines[-1] if lines else f"wait status {status}"
        self._done(self._reason or (f"{self.python} does not run on this node: {why}" if status else ""))


def interpreter(directories: Sequence[str]) -> str:
    """The Python of an environment whose programs are in `directories`; "" when it has none.

    Raises:
        OSError: it leads to one that is not there.
    """
    names = [os.path.join(one, name) for one in directories for name in ("python3", "python")]
    python = next((name for name in names if os.path.lexists(name)), "")
    if python and not os.path.exists(python):
        raise OSError(f"{python} leads to {os.path.realpath(python)}, which this node does not have")
    return python
