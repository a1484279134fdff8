"""`howdah wait`: wait for the end of jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.job_choice import choose_job
from howdah.cli.terminal import report_json, styled_state
from howdah.client.follow import PATIENCE_S, Follower
from howdah.client.job_end import wait_for_end
from howdah.engines import Engine
from howdah.errors import JobCancelled, JobFailed, SpecError
from howdah.spec import JobReport, State
from howdah.spec.codec import to_json
from howdah.spec.units import seconds

NOT_ENDED = 75
"""The exit status of `wait --timeout` when a job has not ended: the system's "try again"."""


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
    wait_for_jobs([choose_job(said, profile) for said in job_ids or ("",)], as_json, limit_s)


def wait_for_jobs(jobs: Sequence[tuple[Engine, str]], as_json: bool, limit_s: float = math.inf) -> None:
    """Wait for the ends of jobs, one after the other, and print how each has ended.

    Raises:
        SystemExit: with the result of the jobs, unless all succeeded; with NOT_ENDED after `limit_s` seconds.
    """
    deadline = time.monotonic() + limit_s
    states = set()
    for engine, job_id in jobs:
        report = _wait(engine, job_id, deadline)
        if report is None:
            _tell(_("{id} has not ended within {seconds} s; it goes on", id=job_id, seconds=f"{limit_s:g}"))
            raise SystemExit(NOT_ENDED)
        states.add(report.state)
        words = f"{report.id} {styled_state(report.state)} {translate_stored(report.diagnostics)}".rstrip()
        click.echo(to_json(report_json(report)) if as_json else words)
    if State.FAILED in states:
        raise SystemExit(JobFailed.exit_code)
    if State.CANCELLED in states:
        raise SystemExit(JobCancelled.exit_code)


def _wait(engine: Engine, job_id: str, deadline: float) -> JobReport | None:
    """Return the last report of a job; None at `deadline` on the monotonic clock."""
    told = None
    for update in Follower(engine, job_id, retry_s=PATIENCE_S).updates():
        outcome, report = update.view.outcome, update.report
        if outcome is not None:  # which the engine learns a little later
            return wait_for_end(engine, job_id) or replace(report, state=outcome.state, diagnostics=outcome.diagnostics)
        state = update.view.state if update.view.tasks else report.state
        if state is not told:
            _tell(_("waiting for the end of {id}: {state}", id=job_id, state=state.value))
            told = state
        if time.monotonic() >= deadline:
            return None
    return None


def _tell(text: str) -> None:
    click.echo(text, err=True)
