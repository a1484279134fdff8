"""Who looks after a running program: whether it goes on, what it is doing when somebody asks, what it must be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, List, Optional

from howdah.executor.diagnostics.log_search import Searches
from howdah.executor.diagnostics.preemption_notices import Notices
from howdah.executor.diagnostics.stacks import Stacks
from howdah.executor.io.program_api_files import Here
from howdah.executor.io.task_output import Printed
from howdah.executor.master_link.heartbeat import Link
from howdah.executor.process.program import Program
from howdah.executor.process.progress_signs import Signs
from howdah.spec.task import Exit
from howdah.wire.messages import Orders, Usage


class Attention:
    """For one executor, which is told of each program by `began`. `tell` writes a line where people look."""

    def __init__(
        self, link: Link, here: Here, printed: Printed, directory: str, path: str, tell: Callable[[str], None]
    ) -> None:
        self.here, self.path = here, path
        self._program: Optional[Program] = None
        self._signs = Signs()
        self._notices = Notices(here, tell)
        secrets = tuple(link.identity.secrets.values())
        self._stacks = Stacks(link.loop, link.reaper, directory, self._pids, link.answer, secrets)
        self._searches = Searches(link.loop, link.reaper, link.identity, printed, link.answer)

    def began(self, program: Program) -> None:
        """It runs from now on."""
        self._program, self._signs = program, Signs()

    def obey(self, orders: Orders) -> None:
        """What of the orders is for the program that runs."""
        self._stacks.want(orders.log_requests, self.path)
        self._searches.want(orders.log_requests)
        self._notices.want(orders.notice, self._running())

    def quiet_s(self, usage: Usage) -> float:
        """For how long the program has shown no sign of progress; 0 when none runs."""
        if self._running() is None:
            return 0.0
        self._signs.look(usage, usage.log_bytes, self.here.spoke_at)
        return round(self._signs.quiet_s, 1)

    def explain(self, exit: Exit) -> Exit:
        """The end of a program, for the reason that it was told, if it was told one, or that its GPUs give."""
        exit, watch = self._notices.explain(exit), self._program.gpus if self._program is not None else None
        if exit.ok or exit.cause not in ("exit", "signal") or watch is None or not watch.fault:
            return exit
        return replace(exit, cause="gpu", detail=f"{watch.fault}; {exit}")

    def _running(self) -> Optional[Program]:
        return self._program if self._program is not None and self._program.running else None

    def _pids(self) -> List[int]:
        return [] if self._running() is None else self._stacks.reaper.strays()
