"""A warning that the container will be taken away, handed on to the program: a file, a signal, a line in its log."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from typing import Callable, Optional

from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.process import process_tree
from howdah.executor.process.program import Program
from howdah.spec.task import Exit
from howdah.wire.messages import PreemptionNotice

AFTER_S = 60.0
"""Who announces a loss may be late with it."""
UNKNOWN_S = 3600.0


class PreemptionNotices:
    """`tell` writes a line where people look."""

    def __init__(self, here: ProgramApiDir, tell: Callable[[str], None]) -> None:
        self.here, self.tell = here, tell
        self._number = 0
        self._last: Optional[PreemptionNotice] = None
        self._until = 0.0

    def want(self, notice: Optional[PreemptionNotice], program: Optional[Program]) -> None:
        """Hand it on, if it is new and a program runs."""
        if notice is None or notice.number <= self._number or program is None or not program.running:
            return
        self._number, self._last = notice.number, notice
        self._until = time.monotonic() + (notice.within_s or UNKNOWN_S) + AFTER_S
        sent = "" if notice.signal == "none" else f"; SIG{notice.signal} tells the program"
        self.tell(f"{notice.text}{sent}")
        try:
            self.here.write_notice(notice.kind, notice.within_s, notice.text)
        except OSError as error:
            self.tell(f"the program can't be told by a file: {error}")
        if sent:
            process_tree.kill_group(program.pid, getattr(signal, f"SIG{notice.signal}"))

    def explain(self, exit: Exit) -> Exit:
        """The end of a program that was told: one that does not end well then, ends for that reason."""
        if self._last is None or exit.ok or exit.cause not in ("exit", "signal") or time.monotonic() > self._until:
            return exit
        return replace(exit, cause="preempted", detail=f"it ended after it was told: {self._last.text}")
