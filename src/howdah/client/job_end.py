"""Cancels a job, or waits for its end."""

from __future__ import annotations

import getpass
import time

from howdah.client.master_client import connect
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobNotFound, StagingError
from howdah.spec import JobReport
from howdah.wire.connection import WireError

CANCEL_S = 30.0
"""Limit in seconds for a job to end by itself: programs get ten seconds to stop (`timeouts.stop`), outputs are
removed."""
POLL_S = 0.1
"""Seconds between two requests for the job's state while a user waits."""


def report_of(engine: Engine, job_id: str) -> JobReport:
    """Return the engine's report on a job.

    Raises:
        JobNotFound: the engine knows no job of this id.
    """
    found = engine.describe(job_id)
    if not found:
        raise JobNotFound(f"no job {job_id} on engine {engine.name}; `howdah list` shows yours")
    return found[0]


def cancel_job(engine: Engine, report: JobReport) -> JobReport:
    """Cancel and wait until the job has ended, at most `CANCEL_S` by its master and as long again by the engine."""
    try:
        master = connect(report)
        if master is not None:
            with master:
                master.cancel(getpass.getuser())
            ended = wait_for_end(engine, report.id)
            if ended is not None:
                return ended
    except (WireError, StagingError, JobNotFound):
        pass  # the master can't be asked: the engine ends the job
    engine.cancel(report.id)
    ended = wait_for_end(engine, report.id)
    if ended is None:
        raise EngineUnavailable(f"{report.id} still runs {CANCEL_S:.0f} s after {engine.name} was asked to end it")
    return ended


def wait_for_end(engine: Engine, job_id: str, limit_s: float = CANCEL_S) -> JobReport | None:
    """Wait for the end of a job and return its report; None when it has not ended after `limit_s` seconds."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        report = report_of(engine, job_id)
        if report.state.ended:
            return report
        time.sleep(POLL_S)
    return None
