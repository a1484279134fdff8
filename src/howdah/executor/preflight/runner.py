"""Pre-flight in this container: checks that it makes alone before it joins, then an exchange of data in pairs.

The rule: what has passed is told as long as the gang forms, and is not checked again as long as this container lives.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from howdah.executor.environment import build, python_of
from howdah.executor.event_loop import EventLoop
from howdah.executor.gpu import claims
from howdah.executor.helper_process import HelperProcess
from howdah.executor.identity import Identity
from howdah.executor.ports import PortReservation
from howdah.executor.process import process_tree
from howdah.spec import port_range
from howdah.wire.messages import Assignment, CheckReport, PairOrder

PASSED = "HOWDAH_PREFLIGHT_PASSED"
"""Set for an executor that becomes another task's in a container that has passed."""
_PAIR = "pair"
_MARGIN_S = 5.0

Done = Callable[[str], None]


class CheckProcess:
    """One of the check programs, beside the executor; `done(problem)` is called once, "" when nothing was wrong.

    Raises:
        OSError: it can't be started.
    """

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        module: str,
        request: Mapping[str, Any],
        limit_s: float,
        done: Done,
        passed: Sequence[int] = (),
        margin_s: float = 0.0,
    ) -> None:
        self.found: List[str] = []
        self.left_out: List[str] = []
        self.passed: List[str] = []
        self.failed: Dict[str, str] = {}
        self._done, self._doing, self._late = done, "", ""
        self._began = time.monotonic()
        self._sidecar = HelperProcess(loop, reaper, (module,), request, self._told, self._ended, passed)
        late = f"not done within {limit_s:.0f} s (preflight.limit)"
        self._timer = loop.call_later(limit_s + margin_s, lambda: self._give_up(late))

    def stop(self, grace: float) -> None:
        """It is not worth waiting for."""
        self._give_up("stopped")

    def report(self, epoch: int) -> CheckReport:
        """What is known so far."""
        seconds = round(time.monotonic() - self._began, 3)
        words = (tuple(self.found), tuple(dict.fromkeys(self.left_out)), tuple(self.passed))
        return CheckReport(epoch, seconds, *words, dict(self.failed))

    def _give_up(self, why: str) -> None:
        self._late = self._late or why
        self._sidecar.kill()

    def _told(self, message: Mapping[str, Any]) -> None:
        self._doing = str(message.get("begun", self._doing))
        for name, known in (("found", self.found), ("left_out", self.left_out), ("passed", self.passed)):
            if name in message:
                known.append(str(message[name]))
        if "failed" in message:
            self.failed[str(message["failed"])] = str(message.get("why", ""))

    def _ended(self, problem: str) -> None:
        self._timer.cancel()
        doing = f"{self._doing}: " if self._doing else ""
        if self._late:
            problem = f"{doing}{self._late}"
        elif problem and doing and not problem.startswith(doing):
            problem = f"{doing}{problem}"
        self._done(problem)


class PreflightRunner:
    """Of one container. `reports` is what the master is told, `port` (0: none) where others try it."""

    def __init__(
        self,
        loop: EventLoop,
        reaper: process_tree.Reaper,
        identity: Identity,
        container: Mapping[str, str],
        deal: claims.GpuAssignment,
    ) -> None:
        self.loop, self.reaper, self.identity, self.container, self.deal = loop, reaper, identity, container, deal
        self.directory = os.getcwd()
        self._alone = CheckReport(found=("passed before",)) if container.get(PASSED) else None
        self._pairs: Optional[CheckReport] = None
        self._listener: Optional[PortReservation] = None

    @property
    def reports(self) -> Tuple[CheckReport, ...]:
        return tuple(one for one in (self._alone, self._pairs) if one is not None)

    @property
    def passed(self) -> bool:
        """The container has passed what it checks alone."""
        return self._alone is not None

    @property
    def port(self) -> int:
        return self._listener.ports.get(_PAIR, 0) if self._listener is not None else 0

    def begin(self, assignment: Assignment, pairs: Optional[PairOrder], done: Done) -> Optional[CheckProcess]:
        """Check this container, or try the `pairs`; None when nothing is to be checked.

        Raises:
            OSError: the checks can't be made.
            gpus.TooFew: others hold the GPUs.
        """
        return self._alone_check(assignment, done) if pairs is None else self._try(assignment, pairs, done)

    def _alone_check(self, assignment: Assignment, done: Done) -> Optional[CheckProcess]:
        order = assignment.checks
        if not order.checks or self._alone is not None:
            return None
        variables = self._variables(assignment)
        request = {
            "checks": list(order.checks),
            "directory": self.directory,
            "disk_mib": order.disk_mib,
            "memory_mib": assignment.memory_mib,
            "gpus": assignment.gpus,
            "python": python_of(variables),
            "variables": variables,
        }

        def ended(problem: str) -> None:
            if not problem:
                self._alone = checkup.report(0)
            done(f"pre-flight: {problem}" if problem else "")

        checkup = CheckProcess(
            self.loop, self.reaper, "howdah.executor.preflight.local_checks", request, order.limit_s, ended
        )
        return checkup

    def listen(self, assignment: Assignment) -> None:
        """Have a port for the others, if they will want one.

        Raises:
            OSError: there is none.
        """
        self.close()
        if assignment.checks.pairs:
            among = port_range.ports(assignment.port_range)
            self._listener = PortReservation("", [_PAIR], among)  # what others call us may be the loopback to ourselves

    def close(self) -> None:
        """No more of it."""
        if self._listener is not None:
            self._listener.release()
            self._listener = None

    def due(self, order: Optional[PairOrder], epoch: int) -> bool:
        """Whether there is something to try in this epoch."""
        told = self._pairs.epoch if self._pairs is not None else 0
        return order is not None and order.epoch == epoch != told and self._listener is not None

    def _try(self, assignment: Assignment, order: PairOrder, done: Done) -> CheckProcess:
        """`done` comes with "" however the exchange went, for it is the master who judges."""
        variables = self._variables(assignment)
        assert self._listener is not None
        listener = self._listener.file(_PAIR)
        request = {
            "task": self.identity.task,
            "epoch": order.epoch,
            "rounds": [
                {"task": one.task, "host": one.host, "port": one.port, "listens": one.listens} if one else None
                for one in order.rounds
            ],
            "listener": listener,
            "limit_s": order.limit_s,
            "gpus": assignment.gpus,
            "python": python_of(variables),
            "variables": variables,
        }

        def ended(problem: str) -> None:
            others = [one.task for one in order.rounds if one is not None]
            for other in others:
                if other not in checkup.passed:
                    checkup.failed.setdefault(other, problem or "it was not tried")
            self._pairs = checkup.report(order.epoch)
            self.close()
            done("")

        module = "howdah.executor.preflight.pair_exchange"  # keeps the limit itself, and says more
        checkup = CheckProcess(self.loop, self.reaper, module, request, order.limit_s, ended, [listener], _MARGIN_S)
        return checkup

    def _variables(self, assignment: Assignment) -> Dict[str, str]:
        variables = build(self.container, assignment, {}, self.identity.secrets, self.directory)
        self.deal.add_to(variables, assignment.gpus)
        return variables
