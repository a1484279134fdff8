"""`howdah run`, `submit`, `plan`: from a job file to a job."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from howdah.cli.language import say
from howdah.cli.show import Json, Live, Plain, report_json, verdict
from howdah.client.follow import Follower
from howdah.client.link import page_url, to_json
from howdah.client.prepare import Prepared, prepare
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobCancelled, JobFailed, SpecError
from howdah.spec import State
from howdah.spec.codec import encode
from howdah.spec.view import JobView

INTERRUPT = ["ask", "cancel", "detach"]
PATIENCE_S = 300.0
"""A job that runs is not given up because its ResourceManager restarts."""


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
    report = prepared.engine.describe(job_id)
    click.echo(to_json(report_json(report[0])) if as_json and report else job_id)


@click.command()
@job_options
def plan(as_json: bool, **options: Any) -> None:
    """Show what submit would do with JOB_FILE, and change nothing."""
    prepared = from_file(**options)
    if as_json:
        click.echo(to_json(encode(prepared.plan)))
        return
    import yaml

    click.echo(yaml.safe_dump(encode(prepared.plan), sort_keys=False, allow_unicode=True), nl=False)


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
    return prepare(loaded.spec, loaded.base_dir, flags, notice, overwrite=overwrite, origins=loaded.sources)


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


def upload_and_submit(prepared: Prepared, quiet: bool = False) -> str:
    """Submit with a progress bar where somebody watches; the job's id."""
    if quiet or not sys.stderr.isatty():
        return prepared.engine.submit(prepared.plan, prepared.secrets)
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(say("uploading {what}", what=what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        return prepared.engine.submit(prepared.plan, prepared.secrets, progress)


def run_prepared(prepared: Prepared, log_tasks: str, on_interrupt: str, as_json: bool) -> None:
    """Submit and follow.

    Raises:
        JobFailed, JobCancelled: by the job's outcome.
    """
    job_id = upload_and_submit(prepared, quiet=as_json)
    if not as_json:
        click.echo(say("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
    follower = Follower(prepared.engine, job_id, "" if log_tasks == "none" else log_tasks, PATIENCE_S)
    try:
        view = _follow(follower, on_interrupt, as_json)
    except EngineUnavailable as error:
        hint = f"the job may go on: `howdah status {job_id}` tells, once the cluster answers"
        raise EngineUnavailable(f"{error}, for {PATIENCE_S:.0f} s now; {hint}") from error
    if view is None:
        click.echo(say("the job goes on; `howdah status {id}` and `howdah cancel {id}` reach it", id=job_id), err=True)
        raise SystemExit(130)
    _conclude(view, as_json)


def _conclude(view: JobView, as_json: bool) -> None:
    if not as_json:
        for line in verdict(view):
            click.echo(line)
    state = view.outcome.state if view.outcome else view.state
    if state is not State.SUCCEEDED:
        raise SystemExit(JobCancelled.exit_code if state is State.CANCELLED else JobFailed.exit_code)


def _follow(follower: Follower, on_interrupt: str, as_json: bool) -> JobView | None:
    """The job's last view, or None when the user let go of it."""
    screen = Json() if as_json else Live() if sys.stdout.isatty() else Plain()
    told_page = as_json
    while True:
        try:
            with screen:
                for update in follower.updates():
                    if not told_page and update.report.master:
                        told_page = True
                        click.echo(say("page: {url}", url=page_url(update.report)))
                    screen.show(update)
            return follower.view
        except KeyboardInterrupt:
            if not _interrupted(follower.engine, follower.job_id, on_interrupt):
                return None


def _interrupted(engine: Engine, job_id: str, on_interrupt: str) -> bool:
    """Do what Ctrl-C is to do; whether to go on following."""
    choice = on_interrupt
    if choice == "ask":
        choice = _ask() if sys.stdin.isatty() else "cancel"
    if choice == "cancel":
        from howdah.cli.jobs import end

        click.echo(say("cancelling {id}", id=job_id), err=True)
        end(engine, engine.describe(job_id)[0])
    return choice != "detach"


def _ask() -> str:
    question = say("Cancel the job, detach from it, or go on following?")
    answer: str = click.prompt(question, type=click.Choice(["cancel", "detach", "follow"]), default="follow", err=True)
    return answer
