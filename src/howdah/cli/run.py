"""`howdah run` and `plan`: from a job file, or a command, to a job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.interrupts import STOPPING, Interrupts
from howdah.cli.job_arguments import (
    CommandWithProgram,
    chosen_job,
    dry_run_option,
    fresh_option,
    job_options,
    pairs,
    refuse_beside_like,
)
from howdah.cli.streams import has_unread_input
from howdah.client import submission
from howdah.client.command_job import CommandOptions
from howdah.client.submit import PreparedJob, prepare
from howdah.config.settings import SANDBOX
from howdah.engines import Engine
from howdah.spec import JobSpec, redaction
from howdah.spec.codec import encode, to_json
from howdah.spec.values import dataclass
from howdah.storage.progress import Notice

if TYPE_CHECKING:
    from howdah.cli.follow import Screen
    from howdah.client.job_names import NamedJob
    from howdah.config.job_file import LoadedJob

INTERRUPT = ["ask", "cancel", "detach"]
ON_INTERRUPT = "What Ctrl-C does to the job; SIGTERM cancels it by `cancel` alone."
RUN_EXAMPLES = examples(
    "howdah run job.yaml",
    "howdah run --on yarn --set steps=1000 job.yaml",
    "howdah run --replicas 4 --gpus 1 --input hdfs:///data/train#data -- python train.py --data data",
)
PLAN_EXAMPLES = examples(
    "howdah plan job.yaml",
    "howdah plan --on yarn --set steps=1000 job.yaml",
    "howdah plan --replicas 4 --gpus 1 -- python train.py",
)


@click.command(cls=CommandWithProgram, epilog=RUN_EXAMPLES)
@job_options
@fresh_option
@click.option("--logs", "log_tasks", default="chief", help="Whose output to show: chief, all, none, a role, a task.")
@click.option("--on-interrupt", type=click.Choice(INTERRUPT), default="ask", help=ON_INTERRUPT)
@dry_run_option
def run(log_tasks: str, on_interrupt: str, as_json: bool, dry_run: bool, **options: Any) -> None:
    """Run the job in JOB_FILE, or COMMAND as a job, and follow it; exits with its result."""
    if dry_run:
        show_plan(as_json, **options)
        return
    run_prepared(prepared_job(**options), log_tasks, on_interrupt, as_json)


def tell_id(engine: Engine, job_id: str, as_json: bool) -> None:
    """Print the id of a job that has been submitted, or with `as_json` its report."""
    if as_json and (report := engine.describe(job_id)):
        from howdah.cli.terminal import report_json

        click.echo(to_json(report_json(report[0])))
    else:
        click.echo(job_id)


@click.command(cls=CommandWithProgram, epilog=PLAN_EXAMPLES)
@job_options
def plan(as_json: bool, **options: Any) -> None:
    """Show what submit would do with JOB_FILE or COMMAND, and change nothing."""
    show_plan(as_json, **options)


def show_plan(as_json: bool, **options: Any) -> None:
    """Print what a submission would do."""
    show_prepared(prepared_job(**options, install=False), as_json)


def show_prepared(prepared: PreparedJob, as_json: bool) -> None:
    """Print what the submission of a prepared job would do."""
    if as_json:
        click.echo(to_json(redaction.record(encode(prepared.plan))))
        return
    from howdah.cli.plan_view import plan_lines

    for line in plan_lines(prepared.plan, prepared.plan.job.settings.get("hadoop_conf_dir", "")):
        click.echo(line)


@click.command(epilog=examples("howdah schema > job.schema.json"))
def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    from howdah.config import job_schema

    click.echo(to_json(job_schema.schema()))


def notice(text: str) -> None:
    """Print a line for people, beside the output."""
    click.echo(translate_stored(text), err=True)


@dataclass(frozen=True)
class ChosenJob:
    """The job that a command line names, before it is prepared."""

    loaded: LoadedJob
    """The job, with the command line's changes."""
    file: Path | None
    """Its job file."""
    flags: Mapping[str, str]
    """The settings of the command line: engine and profile."""


def prepared_job(
    overwrite: bool,
    change: Callable[[JobSpec], JobSpec] = lambda job: job,
    install: bool = True,
    fresh: bool = False,
    **options: Any,
) -> PreparedJob:
    """Plan the job of a file, of a command, or of the earlier job `like`, with the command line's changes, and then as
    `change` returns it."""
    return prepare_chosen(load_chosen(**options), overwrite, change, install, fresh)


def load_chosen(
    job_files: tuple[Path, ...],
    engine: str,
    profile: str,
    sets: tuple[str, ...],
    name: str,
    queue: str,
    stdin: bool = False,
    like: str = "",
    varied: Sequence[str] = (),
    tell: Notice = notice,
    **of_command: Any,
) -> ChosenJob:
    """Load the job of a file, of a command, or of the earlier job `like`; `tell` is called with what the user should
    know. `varied` are names in `sets` that are variables of a command, if they are no fields of a job."""
    fields = {key: value for key, value in (("name", name), ("queue", queue)) if value}
    given = str(_keep_input()) if stdin and not job_files and not like else ""
    options = CommandOptions(**of_command, stdin=given)
    if like:
        from howdah.cli.job_choice import choose_named_job

        refuse_beside_like(job_files, options, stdin)
        earlier = choose_named_job(like, "" if engine else profile)  # with --on it says where the new one runs
        if not engine:
            engine, profile = earlier.engine.name, earlier.profile
        loaded, file = _job_like(earlier, sets, fields, tell)
    else:
        loaded, file = chosen_job(job_files, options, sets, fields, tell, varied)
    if not given and has_unread_input():
        hint = _("standard input is not sent to the job: --stdin sends it to a command after --")
        tell(f"howdah: {hint}")
    for option in fields:
        if f"vars.{option}" in loaded.sources:
            hint = _(
                "--{option} is the job's own; its variable `{option}` is set by --set {option}=VALUE", option=option
            )
            tell(f"howdah: {hint}")
    return ChosenJob(loaded, file, {"engine": engine, "profile": profile})


def prepare_chosen(
    chosen: ChosenJob,
    overwrite: bool,
    change: Callable[[JobSpec], JobSpec],
    install: bool,
    fresh: bool,
    tell: Notice = notice,
) -> PreparedJob:
    """Plan a job that has been loaded, as `change` returns it; `tell` is called with what the user should know."""
    loaded = chosen.loaded
    return prepare(
        change(loaded.spec),
        loaded.base_directory,
        chosen.flags,
        tell,
        overwrite=overwrite,
        fresh=fresh,
        origins=loaded.sources,
        file=chosen.file,
        text=loaded.text,
        overrides=loaded.overrides,
        install=install,
    )


def _job_like(
    earlier: NamedJob, sets: tuple[str, ...], fields: dict[str, str], tell: Notice
) -> tuple[LoadedJob, Path | None]:
    """Return a job like an earlier one, and the path that its file had."""
    from howdah.client.follow import fetch_update
    from howdah.client.kept_job import load_kept_job

    submission = fetch_update(earlier.engine, earlier.id).view.submission
    loaded = load_kept_job(earlier.id, submission, pairs(sets), fields, tell)
    return loaded, Path(submission.file) if submission.file else None


def _keep_input() -> Path:
    from howdah.client.standard_input import keep_input

    if sys.stdin.isatty():
        notice(_("reading standard input, to its end (Ctrl-D)"))
    return keep_input(sys.stdin.buffer)


def submit_prepared(prepared: PreparedJob, quiet: bool = False) -> str:
    """Submit, with a progress bar on a terminal, and return the job's id. An interrupt ends the upload, or is held back
    until the job is submitted."""
    with Interrupts() as interrupts:
        return interrupts.call(lambda: upload_and_submit(prepared, quiet, interrupts.check))


def submit_or_exit(prepared: PreparedJob, quiet: bool, interrupts: Interrupts) -> str:
    """Submit as `submit_prepared` does; the signals are held back until the job is submitted.

    Raises:
        SystemExit: a signal has ended the upload, or the user insists on leaving; a line says so.
    """
    try:
        return interrupts.call(lambda: upload_and_submit(prepared, quiet, interrupts.check))
    except KeyboardInterrupt:
        text = _("interrupted: the job is not submitted")
        if interrupts.has_left:
            text = _("left during the submission: `howdah list` shows whether the job is submitted")
        notice(f"howdah: {text}")
        raise SystemExit(interrupts.status) from None


def upload_and_submit(prepared: PreparedJob, quiet: bool, check: Callable[[], None]) -> str:
    """Submit the job; `check` is called during the upload, and may end it by an error."""
    if prepared.plan.job.sources.get("hadoop_conf_dir") == SANDBOX:
        from howdah.cli.sandbox import ended_daemons

        if text := ended_daemons(prepared.engine.name):
            notice(f"howdah: {text}")
    return _submit(prepared, quiet, check)


def _submit(prepared: PreparedJob, quiet: bool, check: Callable[[], None]) -> str:
    if quiet or not sys.stderr.isatty():
        return submission.submit(prepared, notice, lambda *_: check())
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            check()
            if what not in tasks:
                tasks[what] = bars.add_task(_("uploading {what}", what=what), total=total)
            bars.update(tasks[what], completed=done, total=total)

        return submission.submit(prepared, notice, progress)


def run_prepared(
    prepared: PreparedJob,
    log_tasks: str,
    on_interrupt: str,
    as_json: bool,
    screen: Callable[[], Screen] | None = None,
    *,
    await_engine: bool = False,
    signals: Sequence[int] = STOPPING,
) -> None:
    """Submit and follow the job, on the screen that `screen` makes if it is given; with `await_engine` until the engine
    has noted the end, too. `on_interrupt` says what each of `signals` does to the job; SIGTERM leaves the job running
    unless `on_interrupt` is `cancel`.

    Raises:
        JobFailed, JobCancelled: by the job's outcome.
    """
    with Interrupts(signals) as interrupts:
        job_id = submit_or_exit(prepared, as_json, interrupts)
        follow_submitted(
            prepared.engine,
            job_id,
            log_tasks,
            on_interrupt,
            as_json,
            interrupts,
            screen,
            await_engine=await_engine,
            is_new=True,
        )


def follow_submitted(
    engine: Engine,
    job_id: str,
    log_tasks: str,
    on_interrupt: str,
    as_json: bool,
    interrupts: Interrupts,
    screen: Callable[[], Screen] | None = None,
    *,
    await_engine: bool = False,
    is_new: bool = False,
) -> None:
    """Follow a job as `run_prepared` does, after its submission. If it `is_new`, say that it was submitted."""
    try:
        if is_new and not as_json:
            click.echo(_("submitted {id} to {engine}", id=job_id, engine=engine.name))
        from howdah.cli.follow import follow  # while the master starts

        wanted = "" if log_tasks == "none" else log_tasks
        follow(engine, job_id, wanted, on_interrupt, as_json, interrupts, screen, await_engine=await_engine)
    except KeyboardInterrupt:
        notice(_("the job may go on; `howdah status {id}` and `howdah cancel {id}` reach it", id=job_id))
        raise SystemExit(interrupts.status) from None
    except BrokenPipeError:  # the reader of our output has exited (`| head`); the job goes on
        notice(_("the job goes on; `howdah attach {id}` follows it, `howdah cancel {id}` ends it", id=job_id))
        raise
