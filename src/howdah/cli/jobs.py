"""`howdah list`, `status`, `cancel`: running and ended jobs."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TypeVar

import click

from howdah.api.cli_status import describe
from howdah.cli.browser import tell_ssh_tunnel
from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.sandbox import ended_daemons
from howdah.cli.save import snapshot_lines
from howdah.cli.terminal import (
    TASK_COLUMNS,
    columns,
    hint_lines,
    place_text,
    python_lines,
    report_json,
    row,
    stream_lines,
    styled_state,
    tracker_lines,
    verdict,
)
from howdah.client.annotated_jobs import is_left_out, with_annotations
from howdah.client.clusters import describe_clusters, find_clusters
from howdah.client.engine_registry import settings_for
from howdah.client.follow import fetch_update
from howdah.client.job_end import cancel_job, report_of
from howdah.client.job_filter import JobFilter
from howdah.client.job_list import ListedJob, jobs_of_answers, jobs_of_history, merge_jobs
from howdah.client.page_links import page_url, tensorboard_url
from howdah.client.waiting_jobs import with_waits
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, SpecError, StagingError
from howdah.spec import JobReport, State
from howdah.spec.codec import to_json
from howdah.spec.task import JOB_STATES
from howdah.spec.units import seconds
from howdah.spec.validation import nearest

T = TypeVar("T")
LIST_COLUMNS = ("Id", "Name", "State", "Engine", "User", "Queue", "Started", "Took")
WIDE_COLUMNS = (*LIST_COLUMNS, "Tags", "Note", "Diagnostics")
FORMS = ["table", "wide", "id", "json"]
MAX_LISTED, MAX_REMEMBERED = 30, 200
MAX_EXPLAINED = 5
"""The most waiting jobs, the newest, for which the table says why they wait."""
MAX_NAME = 40
"""A name of up to 200 characters would push the other columns off a terminal."""


@click.command(
    "list",
    epilog=examples(
        "howdah list --state FAILED --since 7d",
        "howdah list -q --name sweep --state PENDING,RUNNING | xargs -n1 howdah cancel",
    ),
)
@click.option("--on", "engine_name", default="", help="Only this engine's jobs.")
@click.option("--history", is_flag=True, help="Also jobs that only a history server knows, including other users'.")
@click.option("--user", default="", metavar="NAMES", help="Only the jobs of these users, separated by commas.")
@click.option("--state", default="", metavar="STATES", help="Only jobs in these states, such as FAILED,CANCELLED.")
@click.option("--name", default="", metavar="TEXT", help="Only jobs with this in their name.")
@click.option("--text", default="", metavar="WORDS", help="Only jobs with all these words in name, id or diagnostics.")
@click.option("--tag", default="", metavar="TAG", help="Only jobs with this tag.")
@click.option("--archived", is_flag=True, help="Also archived jobs.")
@click.option("--since", default="", metavar="TIME", help="Only jobs that began within this time, such as 12h or 7d.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="List at most N jobs; 30, or 200 with --history, without it."
)
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("-o", "--format", "form", type=click.Choice(FORMS), default="table", help="Output format.")
@click.option("-q", "--quiet", "form", flag_value="id", help="Only ids, as -o id.")
@click.option("--json", "form", flag_value="json", help="One JSON object a line, as -o json.")
def list_jobs(
    engine_name: str,
    history: bool,
    archived: bool,
    limit: int | None,
    profile: str,
    form: str,
    since: str,
    tag: str,
    **words: str,
) -> None:
    """List your jobs, the newest first: 30 of them, or all with --json or -q."""
    words["state"] = states(words["state"])
    wanted = JobFilter(words["user"], words["state"], words["name"], words["text"], _parse_since(since), tag=tag)
    listed = [job for job in _describe_jobs(engine_name, profile) if wanted.fits(job.report)]
    max_jobs = limit or (MAX_REMEMBERED if history else None if form in ("json", "id") else MAX_LISTED)
    old = (
        jobs_of_history(
            wanted, engine_name, profile, max_jobs or MAX_REMEMBERED, _show_silent_history, archived=archived
        )
        if history
        else []
    )
    annotated = with_annotations(merge_jobs(listed, old), _show_unread_annotations)
    tagged = (job for job in annotated if not tag or tag in job.report.tags)
    shown = (job for job in tagged if archived or not is_left_out(job.report))
    jobs = list(islice(shown, max_jobs and max_jobs + 1))
    if max_jobs is not None and max(len(jobs) - 1, len(old)) >= max_jobs:
        click.echo(_("the newest {count} jobs; --limit shows more", count=max_jobs), err=True)
    jobs = jobs[:max_jobs]
    if form in ("json", "id"):
        for job in jobs:
            line = to_json({**report_json(job.report), "profile": job.profile}) if form == "json" else job.report.id
            click.echo(line)
        return
    if not jobs:
        click.echo(_("no jobs"))
        return
    in_use = settings_for({"profile": profile}).profile
    with_profiles = any(job.profile not in ("", in_use) for job in jobs)
    wide, profiles = form == "wide", [job.profile for job in jobs] if with_profiles else []
    for line in table((job.report for job in jobs), profiles, wide):
        click.echo(line)
    if wide:
        return
    waiting = [
        report for report in (job.report for job in jobs) if report.state is State.PENDING and report.diagnostics
    ]
    for report in waiting[:MAX_EXPLAINED]:
        click.echo(f"{report.id}: {translate_stored(report.diagnostics)}")


def _show_silent_history(profile: str, error: HowdahError) -> None:
    where = _("the history server of profile {profile}", profile=profile) if profile else _("the history server")
    click.echo(f"howdah: {where}: {translate_stored(str(error))}", err=True)


def _show_unread_annotations(error: HowdahError) -> None:
    click.echo(f"howdah: {_('notes and tags are missing')}: {translate_stored(str(error))}", err=True)


def _describe_jobs(engine_name: str, profile: str) -> Iterator[ListedJob]:
    """Return the jobs of all clusters to which the profiles lead. A cluster that does not answer, and an engine to
    which a profile does not lead, get a line. It is an error if an engine was named and no cluster of it answers."""

    def show_failure(engine: str, profile: str, error: HowdahError) -> None:
        of_sandbox = ended_daemons(engine) if engine else ""
        for text in filter(None, (f"{place_text(engine, profile)}: {translate_stored(str(error))}", of_sandbox)):
            click.echo(f"howdah: {text}", err=True)

    clusters = find_clusters(engine_name, profile, show_failure)
    answers = list(describe_clusters(clusters))
    errors = [answer.error for answer in answers if answer.error is not None]
    if engine_name and len(errors) == len(answers):
        raise errors[0]
    for answer in answers:
        if answer.error is not None:
            show_failure(answer.engine, answer.profile, answer.error)
    return jobs_of_answers(with_waits(clusters, answers))


def states(text: str) -> str:
    """Read the names of states with commas between them.

    Raises:
        SpecError: one is none.
    """
    found = [word.strip().upper() for word in text.split(",") if word.strip()]
    for word in found:
        known = [state.value for state in JOB_STATES]
        if word not in known:
            raise SpecError.at("--state", f"{word!r} is none of {', '.join(known)}", nearest(word, known))
    return ",".join(found)


def _parse_since(since: str) -> float:
    try:
        return time.time() - seconds(since) if since else 0.0
    except ValueError as error:
        raise SpecError.at("--since", f"is {since!r}, {error}") from None


def table(reports: Iterable[JobReport], profiles: Sequence[str] = (), wide: bool = False) -> Iterator[str]:
    """Return one line for each job, with a heading; `profiles` are those of the jobs, to be shown with them. `wide`
    lines have the whole name, tags, note, and why a job waits or how it ended."""
    rows = [
        (
            each.id,
            each.name if wide else _shorten_name(each.name),
            styled_state(each.state),
            each.engine,
            each.user,
            each.queue,
            _start_text(each),
            duration_text(each),
            *([" ".join(each.tags), " ".join(each.note.split())] if wide else []),
            *([" ".join(translate_stored(each.diagnostics).split())] if wide else []),
        )
        for each in reports
    ]
    heading = tuple(map(_, WIDE_COLUMNS if wide else LIST_COLUMNS))
    if not profiles:
        return columns([heading, *rows])
    return columns([(*heading, _("Profile")), *((*row, profile) for row, profile in zip(rows, profiles, strict=True))])


def _shorten_name(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


@click.command(epilog=examples("howdah status", "howdah status resnet --json"))
@job_argument()
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
def status(job_id: str | None, profile: str, as_json: bool) -> None:
    """Show a job and its tasks."""
    engine, job_id = choose_job(job_id, profile)
    update = fetch_update(engine, job_id)
    report, view = update.report, update.view
    if view.outcome is not None:  # the end is in the log; an engine may lag behind, or have been restarted just then
        report = replace(report, state=view.outcome.state)
    elif view.tasks and not report.state.ended:  # for an engine, a job runs as soon as its master runs
        report = replace(report, state=view.state)
    if as_json:
        details = {name: value for name, value in describe(view).items() if value or not getattr(report, name, "")}
        click.echo(to_json({**report_json(report), **details, "state": report.state.value}))
        return
    click.echo(f"{report.id}  {report.name}  {styled_state(report.state)}  {duration_text(report)}")
    # A link through a tunnel of this process would be dead when it is read: another command makes one, and stays.
    if not report.state.ended and (url := _link(lambda: page_url(engine, report))):
        click.echo(_("page: {url}", url=f"`howdah page {job_id}`" if engine.has_tunnel else url))
        tell_ssh_tunnel(url)
    if not report.state.ended and (url := _link(lambda: tensorboard_url(engine, report, view))):
        click.echo(_("TensorBoard: {url}", url=f"`howdah tensorboard {job_id}`" if engine.has_tunnel else url))
    rows = [tuple(map(_, TASK_COLUMNS)), *((str(task.id), *row(task)) for task in view.tasks.values())]
    for line in columns(rows) if view.tasks else ():
        click.echo(line)
    for lines in (python_lines, stream_lines, tracker_lines, snapshot_lines, hint_lines):
        for line in lines(view):
            click.echo(line)
    for note in view.notes:
        click.echo(translate_stored(note))
    if view.outcome is None and report.diagnostics and (view.tasks or report.state is not State.PENDING):
        click.echo(translate_stored(report.diagnostics))
    if report.state is State.PENDING or view.waiting is not None:
        from howdah.cli.explain import describe_waits
        from howdah.client.explain import explain_update

        with contextlib.suppress(EngineUnavailable):
            for line in describe_waits(explain_update(engine, update)):
                click.echo(line)
    for line in verdict(view):
        click.echo(line)


def _link(make: Callable[[], str]) -> str:
    """Return a link. If the job's key can't be read here, print a line that says so, and return ""."""
    try:
        return make()
    except StagingError as error:
        click.echo(f"howdah: {translate_stored(str(error))}", err=True)
        return ""


@click.command(epilog=examples("howdah cancel @last", "howdah list -q --name sweep | xargs howdah cancel"))
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One report a line.")
def cancel(job_ids: tuple[str, ...], profile: str, as_json: bool) -> None:
    """End jobs: the master of each is asked first, then the engine."""
    # A name that nothing or too much is called is refused before any job ends.
    jobs = {job_id: engine for engine, job_id in (choose_job(wanted, profile, acts=True) for wanted in job_ids)}
    errors: list[HowdahError] = []
    for job_id, end in _at_once({job_id: partial(_cancel, engine, job_id) for job_id, engine in jobs.items()}):
        if isinstance(end, HowdahError) and len(jobs) > 1:
            errors.append(end)
            click.echo(f"howdah: {job_id}: {translate_stored(str(end))}", err=True)
        elif isinstance(end, BaseException):
            raise end
        else:
            report, words = end
            click.echo(to_json(report_json(report)) if as_json else words)
    if errors:
        raise SystemExit(errors[0].exit_code)


def _cancel(engine: Engine, job_id: str) -> tuple[JobReport, str]:
    """End a job; return its last report, and a line that says how it ended."""
    report = report_of(engine, job_id)
    if report.state.ended:
        return report, _("{id} had ended already: {state}", id=job_id, state=report.state.value)
    click.echo(_("cancelling {id}", id=job_id), err=True)
    report = cancel_job(engine, report, lambda text: click.echo(translate_stored(text), err=True))
    return report, f"{report.id} {report.state.value} {translate_stored(report.diagnostics)}"


def _at_once(calls: Mapping[str, Callable[[], T]]) -> Iterator[tuple[str, T | BaseException]]:
    """Make all calls at the same time, each in a thread that ends with this process; yield each one's name and result,
    or what it raised, when it is there."""
    ends: queue.SimpleQueue[tuple[str, T | BaseException]] = queue.SimpleQueue()

    def call(name: str) -> None:
        try:
            ends.put((name, calls[name]()))
        except BaseException as error:  # for the main thread
            ends.put((name, error))

    for name in calls:
        threading.Thread(target=call, args=(name,), daemon=True).start()
    for _call in calls:
        yield ends.get()


def _start_text(report: JobReport) -> str:
    moment = report.started or report.submitted
    return time.strftime("%m-%d %H:%M:%S", time.localtime(moment)) if moment else ""


def duration_text(report: JobReport) -> str:
    """Return how long a job has run; "" for one that has not begun."""
    if not report.started:
        return ""
    return f"{(report.finished or time.time()) - report.started:.1f} s"
