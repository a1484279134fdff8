"""Follows a job from the command line to its end, and decides what Ctrl-C does meanwhile."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.interrupts import Interrupts
from howdah.cli.terminal import Json, Live, Plain, verdict
from howdah.client.follow import Follower
from howdah.client.job_end import cancel_job, wait_for_end
from howdah.client.page_links import page_url
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, JobCancelled, JobFailed
from howdah.spec import State
from howdah.spec.view import JobView

Screen = Plain | Json
ENGINE_S = 10.0
"""How long an engine may take to know of a job's end after the master has written it down."""
PATIENCE_S = 300.0
"""A job that runs is not given up because its ResourceManager restarts."""


def follow(
    engine: Engine,
    job_id: str,
    log_tasks: str,
    on_interrupt: str,
    as_json: bool,
    screen: Callable[[], Screen] | None = None,
    interrupts: Interrupts | None = None,
    *,
    await_engine: bool = False,
) -> None:
    """Follow the job to its end, with the output of `log_tasks` ("": none), on what `screen` makes if it is given.
    Without `interrupts` the caller has a signal handler of its own. With `await_engine` the command ends after the
    engine has noted the job's end, because scripts of other systems ask YARN next.

    Raises:
        JobFailed, JobCancelled: by the job's outcome.
    """
    follower = Follower(engine, job_id, log_tasks, PATIENCE_S)
    shown = screen() if screen else Json() if as_json else Live() if sys.stdout.isatty() else Plain()
    try:
        view = _follow(follower, on_interrupt, as_json, shown, interrupts or Interrupts())
    except EngineUnavailable as error:
        hint = f"the job may go on: `howdah status {job_id}` tells, once the cluster answers"
        raise EngineUnavailable(f"{error}, for {PATIENCE_S:.0f} s now; {hint}") from error
    finally:
        shown.close()
    if view is None:
        click.echo(_("the job goes on; `howdah status {id}` and `howdah cancel {id}` reach it", id=job_id), err=True)
        raise SystemExit(130)
    if await_engine:
        with contextlib.suppress(HowdahError):  # the job has ended, whoever does not answer
            wait_for_end(engine, job_id, ENGINE_S)
        if engine.name != "local":
            click.echo(_("its page is served by `howdah history` from now on"), err=True)
    _print_outcome(view, as_json)


def _print_outcome(view: JobView, as_json: bool) -> None:
    if not as_json:
        for line in verdict(view):
            click.echo(line)
    state = view.outcome.state if view.outcome else view.state
    if state is not State.SUCCEEDED:
        raise SystemExit(JobCancelled.exit_code if state is State.CANCELLED else JobFailed.exit_code)


def _follow(
    follower: Follower, on_interrupt: str, as_json: bool, screen: Screen, interrupts: Interrupts
) -> JobView | None:
    """Return the job's last view, or None if the user left the job running."""
    told_page = as_json
    while True:
        try:
            interrupts.allow()
            with screen:
                for update in follower.updates():
                    if not told_page and update.report.master:
                        told_page = True
                        if url := page_url(update.report):
                            click.echo(_("page: {url}", url=url))
                    screen.show(update)
            return follower.view
        except KeyboardInterrupt:
            if not _handle_interrupt(follower, on_interrupt, interrupts):
                return None
            interrupts.hold()


def _handle_interrupt(follower: Follower, on_interrupt: str, interrupts: Interrupts) -> bool:
    """Do what Ctrl-C asks for; return whether to go on following."""
    choice = on_interrupt
    if choice == "ask":
        choice = _ask(interrupts) if sys.stdin.isatty() else "cancel"
    interrupts.hold()
    if choice == "cancel":
        click.echo(_("cancelling {id}", id=follower.job_id), err=True)
        cancel_job(follower.engine, follower.latest_report(), _notice, follower.job_key)
    return choice != "detach"


def _notice(text: str) -> None:
    """Print a line for people, beside the output."""
    click.echo(translate_stored(text), err=True)


def _ask(interrupts: Interrupts) -> str:
    """Ask what to do with the job. Whoever interrupts the question, too, or has no answer leaves the job running."""
    question = _("Cancel the job, detach from it, or go on following?")
    choices = click.Choice(["cancel", "detach", "follow"])
    interrupts.hold()
    try:
        interrupts.allow()
        answer: str = click.prompt(question, type=choices, default="follow", err=True)
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        return "detach"
    return answer
