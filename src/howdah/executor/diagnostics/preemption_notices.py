"""Hands a preemption notice on to the program: by a file, a signal and a line in its log."""

from __future__ import annotations

import signal
import time
from dataclasses import replace
from typing import Callable, Optional

from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.process.program import Program
from howdah.spec.message import message
from howdah.spec.task import Exit
from howdah.wire.messages import PreemptionNotice

AFTER_S = 60.0
"""A container may be taken away later than announced, by at most this time."""
UNKNOWN_S = 3600.0
"""Seconds for which a notice without a time is valid."""


class PreemptionNotices:
    """Hands on the notices of one executor. `warn` writes a line to the task's log."""

    def __init__(self, program_api: ProgramApiDir, warn: Callable[[str], None]) -> None:
        self.program_api, self.warn = program_api, warn
        self._number = 0
        self._last: Optional[PreemptionNotice] = None
        self._until = 0.0
        self._told_to_end: Optional[Program] = None

    def obey(self, notice: Optional[PreemptionNotice], program: Optional[Program]) -> None:
        """Hand `notice` on, if it is new and a program runs."""
        if notice is None or notice.number <= self._number or program is None or not program.running:
            return
        self._number, self._last = notice.number, notice
        self._until = time.monotonic() + (notice.within_s or UNKNOWN_S) + AFTER_S
        sent = "" if notice.signal == "none" else f"; SIG{notice.signal} tells the program"
        self.warn(f"{notice.text}{sent}")
        try:
            self.program_api.write_notice(notice.kind, notice.within_s, notice.text)
        except OSError as error:
            self.warn(f"the program can't be told by a file: {error}")
        if notice.signal == "TERM":
            self._told_to_end = program
        if sent:
            program.send_signal(getattr(signal, f"SIG{notice.signal}"))

    def is_told_to_end(self, program: Program) -> bool:
        """Return whether this program got its last notice by TERM, and the announced preemption may still come."""
        return program is self._told_to_end and time.monotonic() <= self._until

    def explain(self, exit: Exit) -> Exit:
        """Give preemption as the reason of a program's failure after a notice."""
        if self._last is None or exit.ok or exit.cause not in ("exit", "signal") or time.monotonic() > self._until:
            return exit
        detail = message("it ended after this notice: {reason}", reason=self._last.text)
        return replace(exit, cause="preempted", detail=detail)
