"""The argument by which commands take a job: an id, a name, a part of an id, `@last`, `@-2`, or nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.terminal import place_text
from howdah.client.job_names import LAST, NamedJob, find_job
from howdah.engines import Engine
from howdah.errors import HowdahError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
TELL_S = 1.0
"""Seconds without an answer after which the user is told what the command waits for."""


def job_argument(required: bool = False) -> Decorator:
    """Return a decorator that gives a command the argument `job_id`; it is None if it is not given, unless it is
    `required`."""
    return click.argument("job_id", required=required)


def choose_job(wanted: str | None, profile: str = "", *, acts: bool = False) -> tuple[Engine, str]:
    """Return the engine and the id of the job that `wanted` means, as `choose_named_job` does."""
    found = choose_named_job(wanted, profile, acts=acts)
    return found.engine, found.id


def choose_named_job(wanted: str | None, profile: str = "", *, acts: bool = False) -> NamedJob:
    """Return the job that `wanted` means; None means the job that was submitted last. If the user has not given the id,
    a line says which job it is. A command that `acts` on the job needs an answer from each cluster that may have it.

    Raises:
        HowdahError: as `find_job` does.
    """
    waits = threading.Timer(TELL_S, _tell_wait)
    waits.daemon = True
    waits.start()
    try:
        found = find_job(LAST if wanted is None else wanted, profile, _tell_silent, must_hear_all=acts)
    finally:
        waits.cancel()
    if found.report is not None and found.id != wanted:
        click.echo(_("{id}  {name}", id=found.id, name=found.report.name), err=True)
    return found


def _tell_wait() -> None:
    click.echo(_("asking your clusters for their jobs, 10 s at most"), err=True)


def _tell_silent(engine: str, profile: str, error: HowdahError) -> None:
    click.echo(f"howdah: {place_text(engine, profile)}: {translate_stored(str(error))}", err=True)
