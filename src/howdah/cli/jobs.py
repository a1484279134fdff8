"""`howdah list`, `status`, `logs`, `cancel`: jobs that are, and jobs that were."""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Iterator

import click

from howdah.cli.language import say
from howdah.cli.show import TASK_COLUMNS, columns, pythons, readable, report_json, row, verdict
from howdah.client.engines import engine_of, engines
from howdah.client.follow import Follower, Update
from howdah.client.link import link_to, page_url, to_json
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, SpecError, StagingError
from howdah.spec import JobReport, TaskId
from howdah.web.page import describe
from howdah.wire.connection import WireError

LIST_COLUMNS = ("Id", "Name", "State", "Engine", "User", "Queue", "Started", "Took")
TAIL_BYTES = 64 << 10
CANCEL_S = 30.0


@click.command("list")
@click.option("--on", "engine_name", default="", help="Only this engine's jobs.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_jobs(engine_name: str, profile: str, as_json: bool) -> None:
    """List your jobs, the newest first."""
    reports: list[JobReport] = []
    for engine in engines(engine_name, profile):
        try:
            reports += engine.describe()
        except EngineUnavailable as error:
            if engine_name:
                raise
            click.echo(f"howdah: {engine.name}: {error}", err=True)
    reports.sort(key=lambda report: report.submitted, reverse=True)
    if as_json:
        for report in reports:
            click.echo(to_json(report_json(report)))
        return
    if not reports:
        click.echo(say("no jobs"))
        return
    rows = [
        tuple(map(say, LIST_COLUMNS)),
        *((r.id, r.name, r.state.value, r.engine, r.user, r.queue, _when(r), _took(r)) for r in reports),
    ]
    for line in columns(rows):
        click.echo(line)


@click.command()
@click.argument("job_id")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as one JSON object.")
def status(job_id: str, profile: str, as_json: bool) -> None:
    """Show a job and its tasks."""
    engine = engine_of(job_id, profile)
    update = _look(engine, job_id)
    report, view = update.report, update.view
    if as_json:
        click.echo(to_json({**report_json(report), **describe(view), "state": report.state.value}))
        return
    click.echo(f"{report.id}  {report.name}  {report.state.value}  {_took(report)}")
    if not report.state.ended and (report.master or report.tracking_url):
        click.echo(say("page: {url}", url=page_url(report)))
    rows = [tuple(map(say, TASK_COLUMNS)), *((str(task.id), *row(task)) for task in view.tasks.values())]
    for line in columns(rows) if view.tasks else ():
        click.echo(line)
    for line in pythons(view):
        click.echo(line)
    for note in view.notes:
        click.echo(note)
    if view.outcome is None and report.diagnostics:
        click.echo(report.diagnostics)
    for line in verdict(view):
        click.echo(line)


def _look(engine: Engine, job_id: str) -> Update:
    """The job as it is now."""
    updates = Follower(engine, job_id).updates(wait_s=0.0)
    return next(updates)


@click.command()
@click.argument("job_id")
@click.argument("task", default="")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends.")
@click.option("--stream", type=click.Choice(["stdout", "stderr", ""]), default="", help="Only this stream.")
@click.option("--all", "whole", is_flag=True, help="From the beginning, not the last 64 KiB.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a piece.")
def logs(job_id: str, task: str, follow: bool, stream: str, whole: bool, profile: str, as_json: bool) -> None:
    """Print the logs of JOB_ID, or of its TASK (worker:1)."""
    engine = engine_of(job_id, profile)
    wanted = _task(task)
    report = _report(engine, job_id)
    if report.state.ended:
        pieces = engine.logs(job_id, wanted, stream)
    else:
        pieces = _live_logs(engine, report, wanted, stream, follow, whole)
    _print_pieces(pieces, as_json)


def _task(text: str) -> TaskId | None:
    try:
        return TaskId.parse(text) if text else None
    except ValueError as error:
        raise SpecError.at("TASK", str(error)) from None


def _report(engine: Engine, job_id: str) -> JobReport:
    found = engine.describe(job_id)
    if not found:
        raise StagingError(f"no job {job_id} on engine {engine.name}; `howdah list` shows yours")
    return found[0]


def _live_logs(
    engine: Engine, report: JobReport, wanted: TaskId | None, stream: str, follow: bool, whole: bool
) -> Iterator[tuple[str, bytes]]:
    """Through the master: what there is, and with `follow` what comes."""
    offsets: dict[tuple[TaskId, str], int] = {}
    follower = Follower(engine, report.id)
    for update in follower.updates():
        for task in [wanted] if wanted else list(update.view.tasks):
            for name in [stream] if stream else ["stdout", "stderr"]:
                yield from _new(follower, task, name, offsets, 0 if whole or follow else -TAIL_BYTES)
        if not follow and update.view.tasks:
            return


def _new(
    follower: Follower, task: TaskId, stream: str, offsets: dict[tuple[TaskId, str], int], first: int
) -> Iterator[tuple[str, bytes]]:
    while follower.link is not None:
        try:
            chunk = follower.link.log(task, stream, offsets.get((task, stream), first))
        except WireError as error:
            if error.status in (400, 404):
                raise StagingError(str(error)) from None
            return
        if not chunk.text:
            return
        offsets[task, stream] = chunk.offset + len(chunk.text)
        yield f"{task} {stream}", chunk.text.encode("latin-1")


def _print_pieces(pieces: Iterator[tuple[str, bytes]], as_json: bool) -> None:
    heading = ""
    for name, data in pieces:
        if as_json:
            click.echo(to_json({"log": name, "text": data.decode("utf-8", "replace")}))
            continue
        if name != heading:
            heading = name
            click.echo(click.style(f"==> {name} <==", bold=True))
        _write(data)


def _write(data: bytes) -> None:
    """To a terminal as readable text; to a file or pipe byte for byte."""
    if sys.stdout.isatty():
        for line in data.split(b"\n"):
            click.echo(readable(line))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@click.command()
@click.argument("job_id")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def cancel(job_id: str, profile: str, as_json: bool) -> None:
    """End a job: its master is asked first, then the engine."""
    engine = engine_of(job_id, profile)
    report = _report(engine, job_id)
    if report.state.ended:
        words = say("{id} had ended already: {state}", id=job_id, state=report.state.value)
        click.echo(to_json(report_json(report)) if as_json else words)
        return
    click.echo(say("cancelling {id}", id=job_id), err=True)
    report = end(engine, report)
    click.echo(to_json(report_json(report)) if as_json else f"{report.id} {report.state.value} {report.diagnostics}")


def end(engine: Engine, report: JobReport) -> JobReport:
    """Cancel and wait until the job has ended, at most `CANCEL_S` by its master and as long again by the engine."""
    try:
        link = link_to(report)
        if link is not None:
            link.cancel(getpass.getuser())
            ended = _wait_for_end(engine, report.id)
            if ended is not None:
                return ended
    except (WireError, StagingError):
        pass  # the master is not there to be asked: the engine ends it
    engine.cancel(report.id)
    ended = _wait_for_end(engine, report.id)
    if ended is None:
        raise EngineUnavailable(f"{engine.name} was told to end {report.id}, but after {CANCEL_S:.0f} s it still runs")
    return ended


def _wait_for_end(engine: Engine, job_id: str) -> JobReport | None:
    until = time.monotonic() + CANCEL_S
    while time.monotonic() < until:
        report = _report(engine, job_id)
        if report.state.ended:
            return report
        time.sleep(0.1)
    return None


def _when(report: JobReport) -> str:
    moment = report.started or report.submitted
    return time.strftime("%m-%d %H:%M:%S", time.localtime(moment)) if moment else ""


def _took(report: JobReport) -> str:
    if not report.started:
        return ""
    return f"{(report.finished or time.time()) - report.started:.1f} s"
