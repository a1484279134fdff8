"""Pre-flight in this container: checks that it makes alone before it joins, then an exchange of data in pairs.

Checks that have passed are reported while the gang forms, and are not repeated in this container.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.environment import build, python_of
from howdah.executor.event_loop import EventLoop
from howdah.executor.gpu import claims
from howdah.executor.helper_process import HelperProcess, OnEnd
from howdah.executor.identity import Identity
from howdah.executor.ports import PortReservation
from howdah.executor.preflight.requests import LocalChecksRequest, PairExchangeRequest
from howdah.spec import port_range
from howdah.wire.messages import Assignment, CheckReport, PairOrder

PASSED = "HOWDAH_PREFLIGHT_PASSED"
"""Is set for an executor that becomes another task's executor in a container that has passed."""
_PAIR = "pair"
_GRACE_S = 5.0


class _Findings:
    """Collects the lines of a helper that makes checks."""

    def __init__(self) -> None:
        self.found: List[str] = []
        self.left_out: List[str] = []
        self.passed: List[str] = []
        self.failed: Dict[str, str] = {}
        self._check = ""
        self._began = time.monotonic()

    def update(self, message: Mapping[str, Any]) -> None:
        self._check = str(message.get("begun", self._check))
        for name, known in (("found", self.found), ("left_out", self.left_out), ("passed", self.passed)):
            if name in message:
                known.append(str(message[name]))
        if "failed" in message:
            self.failed[str(message["failed"])] = str(message.get("why", ""))

    def locate(self, problem: str) -> str:
        """Put the name of the check before its problem."""
        prefix = f"{self._check}: " if self._check else ""
        return f"{prefix}{problem}" if problem and not problem.startswith(prefix) else problem

    def report(self, epoch: int) -> CheckReport:
        return CheckReport(
            epoch=epoch,
            seconds=round(time.monotonic() - self._began, 3),
            found=tuple(self.found),
            left_out=tuple(dict.fromkeys(self.left_out)),
            passed=tuple(self.passed),
            failed=dict(self.failed),
        )


class PreflightRunner:
    """Runs the checks of one container, one check program at a time."""

    def __init__(
        self, loop: EventLoop, identity: Identity, container: Mapping[str, str], gpus: claims.GpuAssignment
    ) -> None:
        self.loop, self.identity, self.container, self.gpus = loop, identity, container, gpus
        self.directory = os.getcwd()
        self._alone = CheckReport(found=("passed before",)) if container.get(PASSED) else None
        self._pairs: Optional[CheckReport] = None
        self._listener: Optional[PortReservation] = None
        self._helper: Optional[HelperProcess] = None

    @property
    def reports(self) -> Tuple[CheckReport, ...]:
        """Return the reports for the master."""
        return tuple(report for report in (self._alone, self._pairs) if report is not None)

    @property
    def passed(self) -> bool:
        """Return whether the container has passed the checks that it makes alone."""
        return self._alone is not None

    @property
    def port(self) -> int:
        """Return the port at which other tasks exchange data with this one; 0 when there is none."""
        return self._listener.ports.get(_PAIR, 0) if self._listener is not None else 0

    def begin(self, assignment: Assignment, pairs: Optional[PairOrder], on_end: OnEnd) -> bool:
        """Check this container, or exchange data with `pairs`; False when nothing is to be checked.

        Raises:
            OSError: GPUs can't be claimed on this node.
            NotEnoughGpus: other tasks hold the GPUs.
        """
        if pairs is not None:
            self._exchange(assignment, pairs, on_end)
        elif assignment.checks.checks and self._alone is None:
            self._check_alone(assignment, on_end)
        else:
            return False
        return True

    def stop(self, grace_s: float) -> None:
        """Kill the check program: it is not worth waiting for."""
        if self._helper is not None:
            self._helper.stop(0.0, "stopped")

    def listen(self, assignment: Assignment) -> None:
        """Reserve a port for the exchange with other tasks, if there will be one.

        Raises:
            OSError: no port is free.
        """
        self.close()
        if assignment.checks.pairs:
            among = port_range.ports(assignment.port_range)
            self._listener = PortReservation("", [_PAIR], among)  # our name among others may mean the loopback here

    def close(self) -> None:
        """Release the port."""
        if self._listener is not None:
            self._listener.release()
            self._listener = None

    def due(self, order: Optional[PairOrder], epoch: int) -> bool:
        """Return whether data is still to be exchanged in this epoch."""
        reported = self._pairs.epoch if self._pairs is not None else 0
        return order is not None and order.epoch == epoch != reported and self._listener is not None

    def _check_alone(self, assignment: Assignment, on_end: OnEnd) -> None:
        order, findings = assignment.checks, _Findings()
        request = LocalChecksRequest(
            order=order, directory=self.directory, memory_mib=assignment.memory_mib, **self._program(assignment)
        )

        def ended(problem: str) -> None:
            if not problem:
                self._alone = findings.report(0)
            on_end(f"pre-flight: {findings.locate(problem)}" if problem else "")

        self._run("local_checks", request, order.limit_s, findings, ended)

    def _exchange(self, assignment: Assignment, order: PairOrder, on_end: OnEnd) -> None:
        """Exchange data with all partners. `on_end` gets "" whatever the result is, because the master judges it."""
        findings = _Findings()
        assert self._listener is not None
        listener = self._listener.file(_PAIR)
        request = PairExchangeRequest(
            order=order, task=self.identity.task, listener=listener, **self._program(assignment)
        )

        def ended(problem: str) -> None:
            for partner in order.rounds:
                if partner is not None and partner.task not in findings.passed:
                    findings.failed.setdefault(partner.task, findings.locate(problem) or "it was not tried")
            self._pairs = findings.report(order.epoch)
            self.close()
            on_end("")

        # The helper keeps the limit itself, and says more about it.
        self._run("pair_exchange", request, order.limit_s, findings, ended, grace_s=_GRACE_S, inherited=[listener])

    def _program(self, assignment: Assignment) -> Dict[str, Any]:
        """Return the fields of a request that describe the program."""
        variables = build(self.container, assignment, {}, self.identity.secrets, self.directory)
        self.gpus.add_to(variables, assignment.gpus)
        return {"gpus": assignment.gpus, "python": python_of(variables), "variables": variables}

    def _run(
        self,
        name: str,
        request: object,
        limit_s: float,
        findings: _Findings,
        on_end: OnEnd,
        grace_s: float = 0.0,
        inherited: Sequence[int] = (),
    ) -> None:
        self._helper = HelperProcess(
            self.loop,
            (f"howdah.executor.preflight.{name}",),
            request,
            on_end,
            findings.update,
            limit_s=limit_s + grace_s,
            late=lambda: f"not done within {limit_s:.0f} s (preflight.limit)",
            inherited=inherited,
        )
