"""`howdah wait`: wait for the end of jobs."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.interrupts import STOPPING, Interrupts, SignalReceived
from howdah.cli.job_choice import choose_job
from howdah.cli.terminal import report_json, styled_state
from howdah.client.follow import PATIENCE_S, Follower
from howdah.client.job_end import report_of, wait_for_end
from howdah.engines import Engine
from howdah.errors import HowdahError, JobCancelled, JobFailed, SpecError
from howdah.spec import JobReport, State
from howdah.spec.codec import to_json
from howdah.spec.events import Noted
from howdah.spec.units import seconds
from howdah.storage.hdfs.call_timeout import CallTimeout, start_call

NOT_ENDED = 75
"""The exit status of `wait --timeout` when a job has not ended: the system's "try again"."""
ENGINE_S = 10.0
"""Seconds within which an engine must know of an end that the master has recorded."""

Ended = tuple[int, JobReport | BaseException]
"""The number of a job, and its last report or the reason why its end is not known."""


@click.command(epilog=examples("howdah wait prepare train", "howdah wait --timeout 2h @last || howdah explain"))
@click.argument("job_ids", nargs=-1, metavar="[JOB_ID]...")
@click.option("--timeout", default="", metavar="TIME", help="Wait at most this long, such as 2h; the jobs go on.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One report a line.")
def wait(job_ids: tuple[str, ...], timeout: str, profile: str, as_json: bool) -> None:
    """Wait until jobs have ended, and exit with their result: 1 if one failed, else 2 if one was cancelled."""
    try:
        limit_s = seconds(timeout) if timeout else math.inf
    except ValueError as error:
        raise SpecError.at("--timeout", f"is {timeout!r}, {error}") from None
    if limit_s < 0:
        raise SpecError.at("--timeout", f"is {timeout!r}, must be at least 0")
    jobs = [choose_job(job, profile) for job in job_ids or (None,)]
    with Interrupts(STOPPING) as interrupts:
        wait_for_jobs(jobs, as_json, interrupts, limit_s)


def wait_for_jobs(
    jobs: Sequence[tuple[Engine, str]],
    as_json: bool,
    interrupts: Interrupts,
    limit_s: float = math.inf,
    *,
    only_ends: bool = False,
) -> None:
    """Wait for the ends of jobs, and print how each has ended when it has; what they wait for meanwhile, too, unless
    `only_ends`.

    Raises:
        SystemExit: with the result of the jobs, unless all succeeded; with NOT_ENDED after `limit_s` seconds; with 130
            after Ctrl-C and 143 after SIGTERM.
        HowdahError: how one has ended is not known.
    """
    ends: queue.SimpleQueue[Ended] = queue.SimpleQueue()
    for number, (engine, job_id) in enumerate(jobs):
        arguments = (number, engine, job_id, ends, only_ends)
        threading.Thread(target=_follow, args=arguments, name="wait", daemon=True).start()
    deadline, left, states, errors = time.monotonic() + limit_s, dict(enumerate(jobs)), set(), []
    try:
        while left:
            number, report = interrupts.wait(start_call(ends.get), deadline - time.monotonic())
            _engine, job_id = left.pop(number)
            if isinstance(report, JobReport):
                states.add(report.state)
                _print(report, as_json)
            elif isinstance(report, HowdahError):
                errors.append(report)
                _tell(f"howdah: {job_id}: {translate_stored(str(report))}")
            else:
                raise report
    except CallTimeout:
        reports = _last_look(list(left.values()), interrupts)
        for (_engine, job_id), last in zip(left.values(), reports, strict=True):
            if last is not None and last.state.ended:  # it ended just now, or the news came late
                states.add(last.state)
                _print(last, as_json)
                continue
            _tell(_("{id} has not ended within {seconds} s; it goes on", id=job_id, seconds=f"{limit_s:g}"))
            if as_json and last is not None:
                _print(last, as_json)
        if not all(report is not None and report.state.ended for report in reports):
            raise SystemExit(NOT_ENDED) from None
    except (SignalReceived, KeyboardInterrupt):
        for _engine, job_id in left.values():
            _tell(_("the job goes on; `howdah attach {id}` follows it, `howdah cancel {id}` ends it", id=job_id))
        raise SystemExit(interrupts.status) from None
    if State.FAILED in states:
        raise SystemExit(JobFailed.exit_code)
    if errors:
        raise SystemExit(errors[0].exit_code)
    if State.CANCELLED in states:
        raise SystemExit(JobCancelled.exit_code)


def _last_look(jobs: Sequence[tuple[Engine, str]], interrupts: Interrupts) -> list[JobReport | None]:
    """Return the engines' present reports of the jobs; None if an engine does not answer within ENGINE_S."""
    calls = [start_call(partial(report_of, engine, job_id)) for engine, job_id in jobs]
    until, found = time.monotonic() + ENGINE_S, list[JobReport | None]()
    for call in calls:
        try:
            found.append(interrupts.finish(call, until - time.monotonic()))
        except (HowdahError, CallTimeout):
            found.append(None)
    return found


def _follow(number: int, engine: Engine, job_id: str, ends: queue.SimpleQueue[Ended], only_end: bool) -> None:
    try:
        ends.put((number, _wait(engine, job_id, only_end)))
    except BaseException as error:  # for the main thread to raise
        ends.put((number, error))


def _wait(engine: Engine, job_id: str, only_end: bool) -> JobReport:
    """Return the last report of a job; what it waits for is printed meanwhile, unless `only_end`."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told and not only_end:
            told.add(text)
            _tell(text)

    report = report_of(engine, job_id)
    for update in Follower(engine, job_id, retry_s=PATIENCE_S).updates():
        outcome, report = update.view.outcome, update.report
        if outcome is not None:  # the engine learns of it a little later
            report = replace(report, state=outcome.state, diagnostics=outcome.diagnostics)
            with contextlib.suppress(HowdahError):
                return wait_for_end(engine, job_id, ENGINE_S) or report
            return report
        state = update.view.state if update.view.tasks else report.state
        tell(_("waiting for the end of {id}: {state}", id=job_id, state=state.value))
        for event in update.events:
            if isinstance(event, Noted):
                tell(f"{job_id}: {translate_stored(event.text)}")
        for reason in (*update.reasons, *([report.diagnostics] if state is State.PENDING else [])):
            if reason:
                tell(f"{job_id}: {translate_stored(reason)}")
    return report


def _print(report: JobReport, as_json: bool) -> None:
    words = f"{report.id} {styled_state(report.state)} {translate_stored(report.diagnostics)}".rstrip()
    click.echo(to_json(report_json(report)) if as_json else words)


def _tell(text: str) -> None:
    click.echo(text, err=True)
