"""`ProgramMonitor` watches a running program: progress, reports of training libraries, stack dumps and log search on
request, preemption notices."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Mapping, Optional, Set

from howdah.executor.diagnostics.log_search import LogSearches
from howdah.executor.diagnostics.preemption_notices import PreemptionNotices
from howdah.executor.diagnostics.stacks import STREAMS, StackDumps
from howdah.executor.diagnostics.trainer_reports import TrainerReports
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.io.task_output import TaskOutput
from howdah.executor.master_link.heartbeat import Heartbeat
from howdah.executor.process.program import Program
from howdah.executor.process.progress_signs import ProgressDetector
from howdah.spec.message import join_messages
from howdah.spec.task import Exit
from howdah.spec.usage import Usage
from howdah.wire.messages import SEARCH, Orders


class ProgramMonitor:
    """Watches the programs of one executor, one after another. `environ` is the container's environment."""

    def __init__(
        self,
        link: Heartbeat,
        program_api: ProgramApiDir,
        output: TaskOutput,
        directory: str,
        environ: Mapping[str, str],
    ) -> None:
        self.program_api, self.loop = program_api, link.loop
        self._known: Set[int] = set()
        self._program: Optional[Program] = None
        self._signs = ProgressDetector()
        self._notices = PreemptionNotices(program_api, output.tell)
        self.trainer_reports = TrainerReports(link, program_api, output.tell)
        secrets = tuple(link.identity.secrets.values())
        self._stacks = StackDumps(link.loop, directory, environ.get("PATH", ""), self._pids, link.answer, secrets)
        self._searches = LogSearches(link.loop, link.identity, output, link.answer)

    def began(self, program: Program) -> None:
        """Watch `program` from now on."""
        self._program, self._signs = program, ProgressDetector()

    def obey(self, orders: Orders) -> None:
        """Obey the orders that concern the running program: answer requests that are new, and hand a notice on.

        A request that is not repeated is forgotten: another master counts from the beginning.
        """
        new = [request for request in orders.log_requests if request.request not in self._known]
        self._known = {request.request for request in orders.log_requests}
        for request in new:
            if request.stream in STREAMS:
                self._stacks.dump(request)
            elif request.stream == SEARCH:
                self._searches.search(request)
        self._notices.obey(orders.notice, self._running_program())

    @property
    def is_told_to_end(self) -> bool:
        """Return whether the running program was given a preemption notice by TERM: a second TERM could come while it
        saves."""
        program = self._running_program()
        return program is not None and self._notices.is_told_to_end(program)

    def idle_s(self, usage: Usage) -> float:
        """Return for how long the program has shown no sign of progress; 0 when none runs."""
        if self._running_program() is None:
            return 0.0
        is_automatic = self.trainer_reports.has_reported
        self._signs.update(usage, usage.log_bytes, self.program_api.last_sign_at, is_automatic)
        return round(self._signs.idle_s, 1)

    def explain(self, exit: Exit) -> Exit:
        """Explain the end of a program by the preemption notice that it got, or by a failure of its GPUs."""
        exit, watch = self._notices.explain(exit), self._program.gpus if self._program is not None else None
        if exit.ok or exit.cause not in ("exit", "signal") or watch is None or not watch.fault:
            return exit
        return replace(exit, cause="gpu", detail=join_messages([watch.fault, str(exit)]))

    def _running_program(self) -> Optional[Program]:
        return self._program if self._program is not None and self._program.running else None

    def _pids(self) -> List[int]:
        program = self._running_program()
        return [] if program is None else program.processes()
