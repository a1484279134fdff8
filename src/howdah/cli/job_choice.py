"""The argument by which commands take a job: an id, a name, a part of an id, `@last`, `@-2`, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.terminal import place_text
from howdah.client.job_names import LAST, find_job
from howdah.engines import Engine
from howdah.errors import HowdahError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def job_argument(required: bool = False) -> Decorator:
    """Return a decorator that gives a command the argument `job_id`; "" stands for the last job unless `required`."""
    return click.argument("job_id") if required else click.argument("job_id", default="")


def choose_job(said: str, profile: str = "") -> tuple[Engine, str]:
    """Return the job that `said` means, by its engine and its id; "" means the job that was submitted last. Which job
    it is, is said where the user has not given the id.

    Raises:
        HowdahError: as `find_job` does.
    """
    found = find_job(said or LAST, profile, _tell_silent)
    if found.report is not None and found.id != said:
        click.echo(_("{id}  {name}", id=found.id, name=found.report.name), err=True)
    return found.engine, found.id


def _tell_silent(engine: str, profile: str, error: HowdahError) -> None:
    click.echo(f"howdah: {place_text(engine, profile)}: {translate_stored(str(error))}", err=True)
