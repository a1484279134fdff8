"""`howdah tensorboard`: TensorBoard of a job, beside it while it runs, or of all jobs."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from howdah.cli.browser import print_link
from howdah.cli.history import shown_clusters
from howdah.cli.i18n import _, examples
from howdah.cli.job_choice import choose_job
from howdah.cli.page import keep_tunnel
from howdah.cli.terminal import json_option, print_result
from howdah.client.engine_registry import engine as engine_of_settings
from howdah.client.engine_registry import settings_for
from howdah.client.follow import Follower, fetch_update
from howdah.client.job_end import report_of
from howdah.client.master_client import MasterClient, connect, translate_refusals
from howdah.client.page_links import tensorboard_url
from howdah.client.wait_for_tensorboard import wait_until_open
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobFailed, NotFound
from howdah.eventfiles import locations
from howdah.spec import JobReport, uris
from howdah.spec.events import Yielded

HADOOP_SCHEMES = ("hdfs", "viewfs")


@click.command(
    epilog=examples(
        "howdah tensorboard resnet",
        "howdah tensorboard --user ann,ben --last 20",
        "howdah tensorboard --on yarn",
    )
)
@click.argument("job_id", default="")
@click.option("--stop", is_flag=True, help="Stop the TensorBoard that runs beside the job.")
@click.option("--here", is_flag=True, help="Run TensorBoard on this machine, even while the job runs.")
@click.option(
    "--on",
    "engine_name",
    default="",
    metavar="ENGINE",
    help="Run TensorBoard for all jobs of ENGINE, as a job on ENGINE.",
)
@click.option("--user", default="", metavar="NAMES", help="Only the jobs of these users, separated by commas.")
@click.option("--name", default="", metavar="TEXT", help="Only the jobs with TEXT in their name.")
@click.option(
    "--root", "roots", multiple=True, metavar="URI", help="Another home with jobs in it; * stands for any name."
)
@click.option(
    "--last", default=200, show_default=True, type=click.IntRange(1), metavar="N", help="Only the newest N jobs."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on this machine; any by default."
)
@click.option(
    "--idle", default=30.0, show_default=True, metavar="MINUTES", help="Stop after this many minutes without a request."
)
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def tensorboard(
    job_id: str,
    stop: bool,
    here: bool,
    engine_name: str,
    user: str,
    name: str,
    roots: tuple[str, ...],
    last: int,
    port: int,
    idle: float,
    profile: str,
    as_json: bool,
) -> None:
    """Show the TensorBoard of JOB_ID, or of all jobs that you may read, wherever their event files are."""
    request: dict[str, Any] = {"port": port, "idle_s": idle * 60, "title": job_id or "howdah"}
    if job_id:
        engine, job_id = choose_job(job_id, profile, acts=stop)
        request["title"] = job_id
        report = report_of(engine, job_id)
        if stop or (report.master and not report.state.ended and not here):
            view = fetch_update(engine, job_id).view
            if not stop and view.job is not None and view.job.framework == "board":
                _show(engine, job_id, tensorboard_url(engine, report, view), as_json)
            else:
                _start_in_job(engine, report, stop, profile, idle * 60, as_json)
            return
        found = locations.event_file_locations(fetch_update(engine, job_id).view)
        if not found:
            raise NotFound(f"{job_id}: the location of its event files is unknown: set `board` in the job file")
        _serve({**request, "places": dict(found), "conf_dir": report.conf_dir}, as_json)
        return
    conf_dir = settings_for({"profile": profile})["hadoop_conf_dir"]
    # One process has one Hadoop configuration: file systems of Hadoop that another one leads to are left out.
    clusters = shown_clusters(engine_name, profile)
    homes = [one.root for one in clusters if one.conf_dir == conf_dir or uris.split(one.root)[0] not in HADOOP_SCHEMES]
    wanted = {**chosen(homes, roots, user, name), "last": last}
    if engine_name:
        _submit_as_job({**wanted, "idle_s": idle * 60}, engine_name, profile, as_json)
        return
    _serve({**request, **wanted, "conf_dir": conf_dir}, as_json)


def chosen(homes: Sequence[str], roots: Sequence[str], user: str, name: str) -> dict[str, Any]:
    """Return the arguments of `howdah.tensorboard`: jobs in these homes and below `roots`, by the given options."""
    more = [root if uris.has_scheme(root) else uris.of_local(root) for root in roots]
    return {"homes": [*homes, *more], "users": [each for each in user.split(",") if each], "name": name}


def _notice(text: str) -> None:
    click.echo(f"howdah: {text}", err=True)


def _start_in_job(engine: Engine, report: JobReport, stop: bool, profile: str, idle_s: float, as_json: bool) -> None:
    """Start TensorBoard in a container of the job."""
    if not stop:
        from howdah.client.tensorboard_install import install

        install(engine, settings_for({"engine": engine.name, "profile": profile}), _notice)
    link = connect(engine, report)
    if link is None:
        raise EngineUnavailable(f"{report.id} has no running master")
    with link, translate_refusals(report.id):
        if stop:
            link.end_tensorboard(getpass.getuser())
            text = _("the end of TensorBoard of {id} has been requested", id=report.id)
            print_result(text, {"id": report.id}, as_json)
        else:
            _show(engine, report.id, _await_open(link, report, idle_s), as_json)


def _await_open(link: MasterClient, report: JobReport, idle_s: float) -> str:
    """Return TensorBoard's address, once it answers."""

    def ask() -> dict[str, str]:
        answer = link.tensorboard(getpass.getuser(), idle_s)
        if not answer["url"]:
            _notice(_("TensorBoard of {id} starts", id=report.id))
        return answer

    return wait_until_open(report.id, ask, link.changes())


def _submit_as_job(request: dict[str, Any], engine_name: str, profile: str, as_json: bool) -> None:
    """Submit TensorBoard as a job, and print its address once it answers; `howdah status` prints it again."""
    from howdah.cli.run import submit_prepared
    from howdah.client.submit import prepare
    from howdah.client.tensorboard_install import of_all

    settings = settings_for({"engine": engine_name, "profile": profile})
    job = of_all(engine_of_settings(settings), request)
    prepared = prepare(job, Path.cwd(), {"engine": engine_name, "profile": profile}, _notice)
    job_id = submit_prepared(prepared)
    _notice(_("submitted {id} to {engine}", id=job_id, engine=prepared.engine.name))
    for update in Follower(prepared.engine, job_id).updates():
        if any(isinstance(event, Yielded) for event in update.events):
            _show(prepared.engine, job_id, tensorboard_url(prepared.engine, update.report, update.view), as_json)
            return
    raise JobFailed(f"{job_id} has ended: `howdah logs {job_id}` says why")


def _show(engine: Engine, job_id: str, url: str, as_json: bool) -> None:
    """Print a link to the port of a task, and stay while the link leads through this process."""
    print_link(engine.reach_url(job_id, url), as_json)
    keep_tunnel(engine, job_id)


def _serve(request: dict[str, Any], as_json: bool) -> None:
    from howdah.client.tensorboard_install import run_locally

    running = run_locally(request, _notice)
    try:
        print_link(running.url, as_json)
        running.wait()
    finally:
        running.end()
