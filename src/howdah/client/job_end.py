"""Cancels a job, or waits for its end."""

from __future__ import annotations

import contextlib
import getpass
import math
import threading
import time
from collections.abc import Callable

from howdah.client.master_client import MasterClient, connect
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobNotFound, StagingError
from howdah.spec import JobReport
from howdah.spec.events import JobStarted
from howdah.spec.message import message
from howdah.storage.hdfs.call_timeout import CallTimeout, call_with_timeout
from howdah.storage.progress import no_notice
from howdah.wire.connection import WireError

CANCEL_S = 30.0
"""Limit in seconds for a job to end after its programs have stopped, since its outputs are removed. A master that is
silent for so long no longer stops anything."""
TELL_AFTER_S, ASK_S = 3.0, 1.0
"""Seconds after which a user is told what the command waits for; and seconds between two requests to a master that
stops its job."""
KEY_S = 5.0
"""Limit in seconds for reading the job's key before the engine is asked instead of the master."""
WATCH_S = 2.0
"""Seconds between two requests while a tunnel of this process stays open until the job ends."""
_STOPPING = (
    "{id} is stopping: its programs save, and what they leave is stored. This takes {seconds} s at most; after that,"
    " {engine} is asked to end the job"
)
POLL_S = 0.1
"""Seconds between two requests for the job's state while a user waits."""


def report_of(engine: Engine, job_id: str) -> JobReport:
    """Return the engine's report on a job. If the job runs, the report has an address of its master that this machine
    can reach.

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
    clock: Callable[[], float] = time.monotonic,
) -> JobReport:
    """Cancel the job and wait until it has ended. First its master is asked: the wait lasts as long as the master
    answers and its programs may take to stop, and `CANCEL_S` more. Then the engine is asked: the wait lasts as long as
    the engine lets programs stop, and `CANCEL_S` more.

    The job's `key` is read if it is not given. The engine is asked if reading the key takes more than `key_limit_s`
    seconds, because the file system may not answer."""
    with contextlib.suppress(JobNotFound):
        master = _ask_master(engine, report, notice, key, key_limit_s)
        if master is not None:
            ended = _wait_while_it_stops(engine, report.id, master, notice, clock)
            if ended is not None:
                return ended
    engine.cancel(report.id)
    limit_s = CANCEL_S + engine.stop_limit_s(report.id)
    ended = wait_for_end(engine, report.id, limit_s)
    if ended is None:
        raise EngineUnavailable(f"{report.id} still runs {limit_s:.0f} s after {engine.name} was asked to end it")
    return ended


def _ask_master(
    engine: Engine, report: JobReport, notice: Callable[[str], None], key: bytes | None, key_limit_s: float
) -> MasterClient | None:
    """Ask the master to end the job; return it, or None if it could not be asked."""
    try:
        if key is not None and report.master:
            master: MasterClient | None = MasterClient(report.master, key)
        else:
            master = call_with_timeout(lambda: connect(engine, report), key_limit_s)
        if master is None:
            return None
        with master:
            master.cancel(getpass.getuser())
        return master
    except (WireError, StagingError):
        return None
    except CallTimeout:
        reason: str = message("{uri} was not read within {seconds} s", uri=report.directory, seconds=f"{key_limit_s:g}")
    except EngineUnavailable as error:
        reason = str(error)
    notice(message("{reason}: the job's master can't be asked, {engine} is", reason=reason, engine=engine.name))
    return None


def _wait_while_it_stops(
    engine: Engine, job_id: str, master: MasterClient, notice: Callable[[str], None], clock: Callable[[], float]
) -> JobReport | None:
    """Wait for the end of a job whose master has taken the cancel. Return None when the master has been silent for
    `CANCEL_S`, or when the job goes on after its programs have had all their time to stop."""
    asked = heard = now = clock()
    url, key, since, limit_s, is_told = master.url, master.job_key, 0, CANCEL_S, False
    while now < min(asked + limit_s, heard + CANCEL_S):
        report = report_of(engine, job_id)
        if report.state.ended:
            return report
        url = report.master or url  # a new master may have taken over
        try:
            with MasterClient(url, key) as master:
                batch = master.events(since, ASK_S if since else 0.0)
            heard = clock()
            since = batch.next
            jobs = (event.job for event in batch.events if isinstance(event, JobStarted))
            limit_s = max([limit_s, *(job.stop_limit_s + CANCEL_S for job in jobs)])
        except WireError:
            time.sleep(POLL_S)
        now = clock()
        if not is_told and now >= asked + TELL_AFTER_S and limit_s > CANCEL_S:
            is_told = True
            notice(message(_STOPPING, id=job_id, seconds=f"{limit_s:.0f}", engine=engine.name))
    return None


def watch_until_end(
    engine: Engine, job_id: str, limit_s: float = math.inf, stopped: threading.Event | None = None
) -> None:
    """Return when the job has ended, after `limit_s` seconds, or when `stopped` is set. An engine that does not answer
    is asked again."""
    until, stopped = time.monotonic() + limit_s, stopped or threading.Event()
    while time.monotonic() < until:
        with contextlib.suppress(EngineUnavailable):
            found = engine.describe(job_id)
            if not found or found[0].state.ended:
                return
        if stopped.wait(WATCH_S):
            return


def wait_for_end(engine: Engine, job_id: str, limit_s: float = CANCEL_S) -> JobReport | None:
    """Wait for the end of a job and return its report; None when it has not ended after `limit_s` seconds."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        report = report_of(engine, job_id)
        if report.state.ended:
            return report
        time.sleep(POLL_S)
    return None
