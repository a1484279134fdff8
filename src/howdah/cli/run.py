"""`howdah run`, `submit`, `plan`: from a job file to a job."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howdah.cli.language import say
from howdah.client.expiry import outlives
from howdah.client.prepare import Prepared, prepare
from howdah.errors import HowdahError, SpecError
from howdah.spec import masking
from howdah.spec.codec import encode, to_json

if TYPE_CHECKING:
    from howdah.cli.following import Screen

INTERRUPT = ["ask", "cancel", "detach"]


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options every command has that takes a job file."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="JSON, for programs."),
        click.option("--overwrite", is_flag=True, help="Replace outputs that exist."),
        click.option("--queue", default="", help="Queue, over the job's."),
        click.option("--name", default="", help="Name, over the job's."),
        click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="A variable or field of the job."),
        click.option("--profile", default="", help="A profile of your configuration."),
        click.option("--on", "engine", default="", metavar="ENGINE", help="local, yarn, or another installed engine."),
    ):
        command = option(command)
    return click.argument("job_file", type=click.Path(path_type=Path))(command)


@click.command()
@job_options
@click.option("--logs", "log_tasks", default="chief", help="Whose output to show: chief, all, none, a role, a task.")
@click.option("--on-interrupt", type=click.Choice(INTERRUPT), default="ask", help="What Ctrl-C does to the job.")
def run(log_tasks: str, on_interrupt: str, as_json: bool, **options: Any) -> None:
    """Run the job in JOB_FILE and follow it; exits with its result."""
    prepared = from_file(**options)
    run_prepared(prepared, log_tasks, on_interrupt, as_json)


@click.command()
@job_options
def submit(as_json: bool, **options: Any) -> None:
    """Submit the job in JOB_FILE and print its id."""
    prepared = from_file(**options)
    job_id = upload_and_submit(prepared, quiet=as_json)
    if as_json and (report := prepared.engine.describe(job_id)):
        from howdah.cli.show import report_json

        click.echo(to_json(report_json(report[0])))
    else:
        click.echo(job_id)


@click.command()
@job_options
def plan(as_json: bool, **options: Any) -> None:
    """Show what submit would do with JOB_FILE, and change nothing."""
    prepared = from_file(**options)
    shown = masking.record(encode(prepared.plan))
    if as_json:
        click.echo(to_json(shown))
        return
    import yaml

    click.echo(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True), nl=False)


@click.command()
def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    from howdah.client.jobfile import schema as published

    click.echo(to_json(published()))


def from_file(
    job_file: Path,
    engine: str,
    profile: str,
    sets: tuple[str, ...],
    name: str,
    queue: str,
    overwrite: bool,
) -> Prepared:
    """Load the job file with the command line's changes, and plan it."""
    from howdah.client.jobfile import load

    changes = {key: value for key, value in (("name", name), ("queue", queue)) if value}
    loaded = load(job_file, {**_pairs(sets), **changes})
    flags = {"engine": engine, "profile": profile}
    spec, base, origins = loaded.spec, loaded.base_dir, loaded.sources
    return prepare(spec, base, flags, notice, overwrite=overwrite, origins=origins, file=job_file)


def _pairs(sets: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in sets:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise SpecError.at("--set", f"is {text!r}, must be NAME=VALUE")
        pairs[name] = value
    return pairs


def notice(text: str) -> None:
    """A line for people, beside the output."""
    click.echo(text, err=True)


def upload_and_submit(prepared: Prepared, quiet: bool = False, check: Callable[[], None] = lambda: None) -> str:
    """Submit with a progress bar where somebody watches; the job's id. `check`, called while files are on their way,
    ends it by an error."""
    if prepared.plan.job.job.checkpoint.path:
        from howdah.client.checkpoints import free

        free(prepared.plan)
    if prepared.plan.job.job.board.show:
        _bring_tensorboard(prepared)
    job_id = _submitted(prepared, quiet, check)
    _warn_of_end(prepared)
    return job_id


def _warn_of_end(prepared: Prepared) -> None:
    """When the job may run longer than its tokens live."""
    end = prepared.engine.credentials_end
    if outlives(prepared.plan.job.job.timeouts, end, time.time()):
        date = time.strftime("%Y-%m-%d %H:%M", time.localtime(end))
        told = say(
            "the job's tokens for HDFS end on {date}, and it may run longer; then it loses HDFS: set timeouts.run",
            date=date,
        )
        notice(f"howdah: {told}")


def _submitted(prepared: Prepared, quiet: bool, check: Callable[[], None]) -> str:
    if quiet or not sys.stderr.isatty():
        return prepared.engine.submit(prepared.plan, prepared.secrets, lambda *_: check())
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            check()
            if what not in tasks:
                tasks[what] = bars.add_task(say("uploading {what}", what=what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        return prepared.engine.submit(prepared.plan, prepared.secrets, progress)


def _bring_tensorboard(prepared: Prepared) -> None:
    """Nothing to fail for: the job's own environment may have it."""
    from howdah.client.engines import settings_for
    from howdah.client.tensorboard import install

    try:
        install(prepared.engine, settings_for({"engine": prepared.engine.name}), notice)
    except HowdahError as error:
        notice(f"howdah: {error}")


def run_prepared(
    prepared: Prepared, log_tasks: str, on_interrupt: str, as_json: bool, screen: Callable[[], Screen] | None = None
) -> None:
    """Submit and follow, on what `screen` makes where it is given.

    Raises:
        JobFailed, JobCancelled: by the job's outcome.
    """
    job_id = upload_and_submit(prepared, quiet=as_json)
    if not as_json:
        click.echo(say("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
    from howdah.cli.following import follow  # while the master starts

    follow(prepared.engine, job_id, "" if log_tasks == "none" else log_tasks, on_interrupt, as_json, screen)
