"""Forwards what a training library reports of its run: progress and metrics appear without a line of code."""

from __future__ import annotations

import math
import time
from typing import Callable, Dict, List, Mapping, Optional

from howdah.executor.diagnostics.metric_sender import MetricSender, Point
from howdah.executor.diagnostics.trainer_status import TrainerStatus
from howdah.executor.diagnostics.trainer_status_server import TrainerStatusServer
from howdah.executor.io.program_api_files import ProgramApiDir
from howdah.executor.master_link.heartbeat import Heartbeat
from howdah.executor.own_log import log

_NAMES = ("KUBEFLOW_TRAINER_SERVER", "KUBEFLOW_TRAINER_STATUS")
"""The prefixes of the names of the variables; the second is that of Kubeflow's first version with such reports."""


class TrainerReports:
    """Receives the reports of one executor's programs, one after another. `warn` writes a line to the task's log."""

    def __init__(self, link: Heartbeat, program_api: ProgramApiDir, warn: Callable[[str], None]) -> None:
        self.program_api = program_api
        self._server, self._sender = TrainerStatusServer(link.loop, self._received), MetricSender(link, warn)
        self._last: Dict[str, float] = {}
        self._steps: Optional[int] = None
        self.has_reported = False
        """Whether the present program's training library has reported by itself."""

    def variables(self, environment: Mapping[str, str], epoch: int) -> Dict[str, str]:
        """Add to `environment` the variables that a program needs to report; it is about to start in `epoch`.

        Nothing changes if the user has set a server.

        Raises:
            OSError: a file can't be written.
        """
        self._sender.program_starts(epoch)
        self._last, self._steps, self.has_reported = {}, None, False
        if any(f"{name}_URL" in environment for name in _NAMES):
            return dict(environment)
        try:
            url = self._server.begin()
        except OSError as error:
            log(f"training libraries can't report here: {error}")
            return dict(environment)
        file = self.program_api.write_token(self._server.token)
        ours = {f"{name}_{part}": value for name in _NAMES for part, value in (("URL", url), ("TOKEN", file))}
        return {**environment, **_proxy_exceptions(environment), **ours}

    def close(self) -> None:
        """Take no more reports."""
        self._server.close()
        self._sender.close()

    def _received(self, status: TrainerStatus, done: Callable[[], None]) -> None:
        self.has_reported = True
        if status.progress is not None:
            try:
                self.program_api.write_progress(status.progress)
            except OSError as error:
                log(f"the program's progress can't be noted: {error}")
        points = self._new_points(status)
        if points:
            self._sender.send(points, done)
        else:
            done()

    def _new_points(self, status: TrainerStatus) -> List[Point]:
        """Return the metrics that have changed, because a report repeats the values that were logged last. At the end
        of the run return all, so that the curve of a metric that never changes has an end."""
        self._steps = status.steps or self._steps
        is_last = status.progress == 1.0
        step = self._steps if status.step is None and is_last else status.step
        changed = {name: value for name, value in status.metrics.items() if is_last or value != self._last.get(name)}
        self._last.update(changed)
        now = time.time()
        return [(name, step, value if math.isfinite(value) else None, now) for name, value in changed.items()]


def _proxy_exceptions(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that keep requests to the loopback from going through a proxy, if the program has a
    proxy."""
    if not any(name.lower() in ("http_proxy", "all_proxy") for name in environment):
        return {}
    present = {name: hosts for name, hosts in environment.items() if name.lower() == "no_proxy"} or {"no_proxy": ""}
    return {name: ",".join(filter(None, [hosts, "127.0.0.1"])) for name, hosts in present.items() if hosts != "*"}
