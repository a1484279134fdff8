"""Cancels a job, or waits for its end."""

from __future__ import annotations

import contextlib
import getpass
import math
import time
from collections.abc import Callable

from howdah.client.master_client import MasterClient, connect
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobNotFound, StagingError
from howdah.spec import JobReport
from howdah.spec.message import message
from howdah.storage.hdfs.call_timeout import CallTimeout, call_with_timeout
from howdah.storage.progress import no_notice
from howdah.wire.connection import WireError

CANCEL_S = 30.0
"""Limit in seconds for a job to end by itself: programs get ten seconds to stop (`timeouts.stop`), outputs are
removed."""
KEY_S = 5.0
"""Limit in seconds for reading the job's key before the engine is asked instead of the master."""
WATCH_S = 2.0
"""Seconds between two requests while something leads through this process until the job ends."""
POLL_S = 0.1
"""Seconds between two requests for the job's state while a user waits."""


def report_of(engine: Engine, job_id: str) -> JobReport:
    """Return the engine's report on a job, with an address of a running job's master that this machine reaches.

    Raises:
        JobNotFound: the engine knows no job of this id.
    """
    found = engine.describe(job_id)
    if not found:
        raise JobNotFound(f"no job {job_id} on engine {engine.name}; `howdah list` shows yours")
    report = found[0]
    return engine.reach(report) if report.master and not report.state.ended else report


def cancel_job(
    engine: Engine,
    report: JobReport,
    notice: Callable[[str], None] = no_notice,
    key: bytes | None = None,
    key_limit_s: float = KEY_S,
) -> JobReport:
    """Cancel and wait until the job has ended, at most `CANCEL_S` by its master and as long again by the engine. The
    job's `key` is read, if it is not given: a file system that does not answer within `key_limit_s` seconds must not
    keep the engine from being asked."""
    with contextlib.suppress(JobNotFound):
        if _ask_master(engine, report, notice, key, key_limit_s):
            ended = wait_for_end(engine, report.id)
            if ended is not None:
                return ended
    engine.cancel(report.id)
    ended = wait_for_end(engine, report.id)
    if ended is None:
        raise EngineUnavailable(f"{report.id} still runs {CANCEL_S:.0f} s after {engine.name} was asked to end it")
    return ended


def _ask_master(
    engine: Engine, report: JobReport, notice: Callable[[str], None], key: bytes | None, key_limit_s: float
) -> bool:
    """Ask the master to end the job; return whether it could be asked."""
    try:
        if key is not None and report.master:
            master: MasterClient | None = MasterClient(report.master, key)
        else:
            master = call_with_timeout(lambda: connect(engine, report), key_limit_s)
        if master is None:
            return False
        with master:
            master.cancel(getpass.getuser())
        return True
    except (WireError, StagingError):
        return False
    except CallTimeout:
        reason: str = message("{uri} was not read within {seconds} s", uri=report.directory, seconds=f"{key_limit_s:g}")
    except EngineUnavailable as error:
        reason = str(error)
    notice(message("{reason}: the job's master can't be asked, {engine} is", reason=reason, engine=engine.name))
    return False


def watch_until_end(engine: Engine, job_id: str, limit_s: float = math.inf) -> None:
    """Return when the job has ended, or after `limit_s` seconds; an engine that does not answer may answer again."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        with contextlib.suppress(EngineUnavailable):
            found = engine.describe(job_id)
            if not found or found[0].state.ended:
                return
        time.sleep(WATCH_S)


def wait_for_end(engine: Engine, job_id: str, limit_s: float = CANCEL_S) -> JobReport | None:
    """Wait for the end of a job and return its report; None when it has not ended after `limit_s` seconds."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        report = report_of(engine, job_id)
        if report.state.ended:
            return report
        time.sleep(POLL_S)
    return None
