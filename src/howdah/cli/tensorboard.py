"""`howdah tensorboard`: TensorBoard of a job, beside it while it runs, or of all jobs."""

from __future__ import annotations

import getpass
import time
from pathlib import Path
from typing import Any

import click

from howdah.cli.jobs import look
from howdah.cli.language import say
from howdah.client.engines import engine as engine_of_settings
from howdah.client.engines import engine_of, engines, settings_for
from howdah.client.follow import Follower
from howdah.client.link import MasterLink, board_url, job_key, link_to
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobFailed, StagingError
from howdah.spec import JobReport
from howdah.spec.events import BoardChanged, Yielded
from howdah.web import places
from howdah.wire import auth
from howdah.wire.board import link as link_of
from howdah.wire.connection import WireError

OPENS_S = 330.0
"""A container may be long in coming; the master gives up after five minutes."""


@click.command()
@click.argument("job_id", default="")
@click.option("--stop", is_flag=True, help="End the one that runs beside the job.")
@click.option("--here", is_flag=True, help="On this machine, although the job runs.")
@click.option("--on", "engine_name", default="", metavar="ENGINE", help="Of all jobs there, as a job there.")
@click.option("--last", default=200, show_default=True, metavar="N", help="Of all jobs the newest N.")
@click.option("--port", default=0, metavar="N", help="Port on this machine; any by default.")
@click.option("--idle", default=30.0, show_default=True, metavar="MINUTES", help="How long it stays unlooked at.")
@click.option("--profile", default="", help="A profile of your configuration.")
def tensorboard(
    job_id: str, stop: bool, here: bool, engine_name: str, last: int, port: int, idle: float, profile: str
) -> None:
    """TensorBoard of JOB_ID, or of all your jobs, wherever their event files are."""
    request: dict[str, Any] = {"port": port, "idle_s": idle * 60, "title": job_id or "howdah"}
    if job_id:
        engine = engine_of(job_id, profile)
        report = _described(engine, job_id)
        if stop or (report.master and not report.state.ended and not here):
            _beside(engine, report, stop, profile, idle * 60)
            return
        found = places.of(look(engine, job_id).view)
        if not found:
            raise StagingError(f"{job_id}: nobody knows where its event files are: `board` in the job file says it")
        _serve({**request, "places": dict(found), "conf_dir": report.conf_dir})
        return
    if engine_name:
        _as_job({"last": last, "idle_s": idle * 60}, engine_name, profile)
        return
    shown = list(engines("", profile))
    conf_dir = settings_for({"engine": "yarn", "profile": profile})["hadoop_conf_dir"]
    _serve({**request, "homes": [engine.home for engine in shown], "last": last, "conf_dir": conf_dir})


def _described(engine: Engine, job_id: str) -> JobReport:
    found = engine.describe(job_id)
    if not found:
        raise StagingError(f"no job {job_id} on engine {engine.name}; `howdah list` shows yours")
    return found[0]


def _notice(text: str) -> None:
    click.echo(f"howdah: {text}", err=True)


def _beside(engine: Engine, report: JobReport, stop: bool, profile: str, idle_s: float) -> None:
    """In a container of the job's."""
    if not stop:
        from howdah.client.tensorboard import install

        install(engine, settings_for({"engine": engine.name, "profile": profile}), _notice)
    link = link_to(report)
    if link is None:
        raise EngineUnavailable(f"{report.id} has no master that could be asked")
    try:
        with link:
            if stop:
                link.end_tensorboard(getpass.getuser())
                click.echo(say("TensorBoard of {id} is asked to end", id=report.id))
            else:
                click.echo(_opened(link, report, idle_s))
    except WireError as error:
        if error.status == 409:
            raise StagingError(f"{report.id}: {str(error).rpartition(str(error.status))[2].strip()}") from None
        raise EngineUnavailable(f"the master of {report.id} does not answer: {error}") from error


def _opened(link: MasterLink, report: JobReport, idle_s: float) -> str:
    """Its address, once it is open."""
    since = link.news(0, 0.0).next
    answer = link.tensorboard(getpass.getuser(), idle_s)
    if answer["url"]:
        return answer["url"]
    _notice(say("TensorBoard of {id} starts", id=report.id))
    until = time.monotonic() + OPENS_S
    while time.monotonic() < until:
        news = link.news(since, 5.0)
        since = news.next
        for change in (event for event in news.events if isinstance(event, BoardChanged)):
            if change.state == "open":
                return link_of(change.host, change.port, auth.board_token(job_key(report)))
            if change.state == "ended":
                raise StagingError(f"no TensorBoard for {report.id}: {change.detail}")
    raise EngineUnavailable(f"TensorBoard of {report.id} is not open after {OPENS_S:.0f} s")


def _as_job(request: dict[str, Any], engine_name: str, profile: str) -> None:
    """Submit it, and print its address once it is open; `howdah status` prints it again."""
    from howdah.cli.run import upload_and_submit
    from howdah.client.prepare import prepare
    from howdah.client.tensorboard import of_all

    settings = settings_for({"engine": engine_name, "profile": profile})
    job = of_all(engine_of_settings(settings), request)
    prepared = prepare(job, Path.cwd(), {"engine": engine_name, "profile": profile}, _notice)
    job_id = upload_and_submit(prepared)
    _notice(say("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
    for update in Follower(prepared.engine, job_id).updates():
        if any(isinstance(event, Yielded) for event in update.events):
            click.echo(board_url(update.report, update.view))
            return
    raise JobFailed(f"{job_id} has ended: `howdah logs {job_id}` says why")


def _serve(request: dict[str, Any]) -> None:
    from howdah.client.tensorboard import here

    running = here(request, _notice)
    try:
        click.echo(running.url)
        running.wait()
    finally:
        running.end()
