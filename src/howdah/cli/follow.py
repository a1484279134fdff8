"""Follows a job from the command line to its end, and handles Ctrl-C and SIGTERM meanwhile."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import click

from howdah.cli import streams
from howdah.cli.browser import tell_ssh_tunnel
from howdah.cli.i18n import _, translate_stored
from howdah.cli.interrupts import Interrupts, SignalReceived, start_in_context
from howdah.cli.terminal import Json, Live, Plain, verdict
from howdah.client.follow import PATIENCE_S, Follower, Update
from howdah.client.job_end import cancel_job, wait_for_end, watch_until_end
from howdah.client.page_links import page_url_if_known
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, JobCancelled, JobFailed
from howdah.spec import JobReport, Outcome, State
from howdah.spec.events import JobFinished
from howdah.spec.fold import fold
from howdah.spec.view import JobView
from howdah.storage.hdfs.call_timeout import Call, CallTimeout, start_call

Screen = Plain | Json
ENGINE_S = 10.0
"""Seconds within which an engine must know of a job's end after the master has recorded it."""
NEWS_S = 20.0
"""Seconds to wait for the last news of a job that was cancelled. News take longer when the file system with its event
log does not answer."""
SHOW_S = 1.0
"""Seconds for which showing an update may go on after a signal. It takes longer when nobody reads a pipe or a
terminal."""


def follow(
    engine: Engine,
    job_id: str,
    log_tasks: str,
    on_interrupt: str,
    as_json: bool,
    interrupts: Interrupts,
    screen: Callable[[], Screen] | None = None,
    *,
    await_engine: bool = False,
) -> None:
    """Follow the job to its end, with the output of `log_tasks` ("": none), on the screen that `screen` makes if it is
    given. With `await_engine` the command ends only after the engine has noted the job's end, because scripts of other
    systems ask YARN next.

    Raises:
        JobFailed, JobCancelled: by the job's outcome.
        KeyboardInterrupt: the user insists on leaving.
    """
    following = _Following(Follower(engine, job_id, log_tasks, PATIENCE_S), as_json, interrupts, screen)
    try:
        view = following.run(on_interrupt)
    finally:
        following.close()
    if view is None:
        click.echo(
            _("the job goes on; `howdah attach {id}` follows it, `howdah cancel {id}` ends it", id=job_id), err=True
        )
        raise SystemExit(interrupts.status)
    if await_engine:
        with contextlib.suppress(HowdahError):  # the job has ended, even if the engine does not answer
            interrupts.call(lambda: wait_for_end(engine, job_id, ENGINE_S))
        if not engine.one_machine:
            click.echo(_("its page is served by `howdah history` from now on"), err=True)
    interrupts.call(lambda: _print_outcome(view, as_json))


def _print_outcome(view: JobView, as_json: bool) -> None:
    if not as_json:
        for line in verdict(view):
            click.echo(line)
    state = view.outcome.state if view.outcome else view.state
    if state is not State.SUCCEEDED:
        raise SystemExit(JobCancelled.exit_code if state is State.CANCELLED else JobFailed.exit_code)


class _Following:
    """Shows a job to its end. Waiting for news and showing them are calls in another thread, one at a time: either may
    take long, and a signal must be handled meanwhile."""

    def __init__(
        self,
        follower: Follower,
        as_json: bool,
        interrupts: Interrupts,
        screen: Callable[[], Screen] | None,
    ) -> None:
        self._follower, self._interrupts = follower, interrupts
        self._screen: Screen = screen() if screen else Json() if as_json else Live() if sys.stdout.isatty() else Plain()
        self._told_page = as_json
        self._updates = follower.updates()
        self._fetching: Call[Update | None] | None = None
        self._display: Call[None] | None = None
        self._ended: JobReport | None = None

    def run(self, on_interrupt: str) -> JobView | None:
        """Return the job's last view, or None if the user left the job running."""
        while True:
            try:
                self._show_all()
                return self._last_view()
            except SignalReceived:
                if not self._handle_interrupt(on_interrupt):
                    return None

    def _last_view(self) -> JobView:
        view, ended = self._follower.view, self._ended
        if view.outcome is None and ended is not None:
            fold([JobFinished(ended.finished or time.time(), Outcome(ended.state, ended.diagnostics))], view)
        return view

    def close(self) -> None:
        """Stop showing the job."""
        if self._display is None or self._display.has_result:
            self._screen.close()
        else:
            streams.give_up_output()

    def _handle_interrupt(self, on_interrupt: str) -> bool:
        """Do what a signal asks for; return whether to go on following. SIGTERM also comes from a machine that shuts
        down, so it cancels the job only if the user asked for that."""
        choice, engine, job_id = on_interrupt, self._follower.engine, self._follower.job_id
        if choice != "cancel" and self._interrupts.last_signal == signal.SIGTERM:
            choice = "detach"
        if choice == "ask":
            choice = _ask(self._interrupts, engine, job_id) if sys.stdin.isatty() else "cancel"
        if choice == "cancel" and self._ended is not None:  # it may have printed more than anybody reads
            click.echo(_("{id} had ended already: {state}", id=job_id, state=self._ended.state.value), err=True)
            raise SystemExit(self._interrupts.status)
        if choice == "cancel":
            click.echo(_("cancelling {id}", id=job_id), err=True)
            self._ended = self._interrupts.call(
                lambda: cancel_job(engine, self._follower.latest_report(), _notice, self._follower.job_key)
            )
        self._interrupts.forget()
        return choice != "detach"

    def _show_all(self) -> None:
        """Show the job until it ends.

        Raises:
            SignalReceived: a signal is to be obeyed.
        """
        self._screen.__enter__()
        try:
            self._show_updates()
        except BaseException:
            with contextlib.suppress(CallTimeout):
                self._leave_screen(SHOW_S)
            raise
        self._leave_screen()

    def _show_updates(self) -> None:
        while True:
            if self._display is not None:  # it was not complete when a signal came
                self._interrupts.wait(self._display)
            self._fetching = self._fetching or start_in_context(self._fetch)
            try:
                update = self._interrupts.wait(self._fetching, math.inf if self._ended is None else NEWS_S)
            except CallTimeout:  # the engine has said how the job has ended
                return
            self._fetching = None
            if update is None:
                return
            self._display = start_in_context(partial(self._show, update))
            self._interrupts.wait(self._display)
            self._display = None

    def _leave_screen(self, limit_s: float = math.inf) -> None:
        """Leave the screen, after the present output is complete.

        Raises:
            CallTimeout: that takes longer than `limit_s`.
        """
        self._finish_display(limit_s)
        self._display = start_in_context(partial(self._screen.__exit__, None, None, None))
        self._finish_display(limit_s)

    def _finish_display(self, limit_s: float) -> None:
        if self._display is not None:
            self._interrupts.finish(self._display, limit_s)
            self._display = None

    def _fetch(self) -> Update | None:
        try:
            return next(self._updates, None)
        except EngineUnavailable as error:
            hint = f"the job may go on: `howdah status {self._follower.job_id}` tells, once the cluster answers"
            raise EngineUnavailable(f"{error}, for {PATIENCE_S:.0f} s now; {hint}") from error

    def _show(self, update: Update) -> None:
        if not self._told_page and update.report.master:
            self._told_page = True
            if url := page_url_if_known(self._follower.engine, update.report):
                click.echo(_("page: {url}", url=url))
                tell_ssh_tunnel(url)
        self._screen.show(update)


def _notice(text: str) -> None:
    """Print a line for people, beside the output."""
    click.echo(translate_stored(text), err=True)


def _ask(interrupts: Interrupts, engine: Engine, job_id: str) -> str:
    """Ask what to do with the job. If the job ends meanwhile, its end is followed. A user who interrupts the question,
    too, or gives no answer, leaves the job running."""
    over = threading.Event()

    def watch() -> None:
        try:
            watch_until_end(engine, job_id, stopped=over)
        finally:
            over.set()

    start_call(watch)
    try:
        return _read_choice(interrupts, over)
    finally:
        over.set()


def _read_choice(interrupts: Interrupts, over: threading.Event) -> str:
    question = _("Cancel the job, detach from it, or go on following?")
    choices = ("cancel", "detach", "follow")
    while True:
        click.echo(f"{question} ({', '.join(choices)}) [follow]: ", nl=False, err=True)
        try:
            answer = interrupts.read_line(over.is_set).lower() or "follow"
        except (EOFError, SignalReceived):
            click.echo(err=True)
            return "detach"
        if over.is_set():
            click.echo(err=True)
        for choice in choices:
            if answer in (choice, choice[0]):
                return choice
