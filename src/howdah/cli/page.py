"""`howdah page`: a link to a job's page, which permits actions or only looking."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import click

from howdah.cli.browser import READ_S, opened, tell_ssh_tunnel
from howdah.cli.i18n import _, examples
from howdah.cli.interrupts import finish_unless_interrupted
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.run import notice
from howdah.client import history_service
from howdah.client.api_client import ApiClient
from howdah.client.engine_registry import settings_for
from howdah.client.history_link import IDLE, find_or_start
from howdah.client.job_end import report_of, watch_until_end
from howdah.client.page_links import HOURS, embed_url, page_link
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, HowdahError, JobEnded, SpecError, StagingError
from howdah.history.options import job_key, key_of
from howdah.localfiles.own_directories import state_directory
from howdah.spec.codec import to_json
from howdah.wire import auth


@click.command(epilog=examples("howdah page --open", "howdah page resnet --look-only"))
@job_argument()
@click.option("--look-only", is_flag=True, help="A link to share, which permits no changes.")
@click.option("--embed", is_flag=True, help="A link for other people's pages: only the job's curves.")
@click.option("--open", "opens", is_flag=True, help="Open it in this machine's browser.")
@click.option("--hours", default=HOURS, metavar="N", help="Hours for which the link permits changes.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def page(
    job_id: str | None, look_only: bool, embed: bool, opens: bool, hours: int, profile: str, as_json: bool
) -> None:
    """Print a link to the page of JOB_ID. Everybody who has the link may cancel the job: share a link made with
    --look-only instead. The page of an ended job is at a history server; one is started if there is none. If the server
    is yours, the link also permits changing the job's note and tags, and archiving the job."""
    if not 0 < hours <= 24 * 30:
        raise SpecError.at("--hours", f"is {hours}, must be from 1 to {24 * 30}")
    engine, job_id = choose_job(job_id, profile)
    report = report_of(engine, job_id)
    if report.state.ended and embed:
        raise JobEnded(f"{job_id} has ended: `howdah history --embed {job_id}` prints where its curves are")
    if report.state.ended:
        url, expires = find_or_start(engine, job_id, profile, _tell_start, _tell_wait), time.time() + hours * 3600
        key = None if look_only else _key_of(url, engine, profile)
        if key is not None:
            url += f"&act={auth.act_token(job_key(key, job_id), expires)}"
        with _shown(url, 0.0 if key is None else round(expires), as_json, opens):
            service = history_service.find_running_service(engine) if engine.has_tunnel else None
            if service is not None:
                keep_tunnel(engine, service.id, hours)
        return
    if not report.master:
        raise EngineUnavailable(f"{job_id} waits for its master, which serves the page: try again when it runs")
    expires = 0.0 if look_only else time.time() + hours * 3600
    url = embed_url(engine, report) if embed else page_link(engine, report, expires)
    with _shown(url, 0.0 if embed else round(expires), as_json, opens):
        keep_tunnel(engine, job_id, hours)


def _key_of(url: str, engine: Engine, profile: str) -> bytes | None:
    """Return the key of the history server of a link; None if the server belongs to another user."""
    token = ApiClient(url).token
    with contextlib.suppress(StagingError):
        key = key_of(Path(state_directory(os.environ), "history"))
        if auth.is_same(token, auth.view_token(key)):
            return key
    if not engine.one_machine and history_service.find_running_service(engine) is not None:
        settings = settings_for({"engine": engine.name, "profile": profile})
        with contextlib.suppress(HowdahError):
            key = history_service.key(engine, settings["hadoop_conf_dir"])
            if auth.is_same(token, auth.view_token(key)):
                return key
    return None


@contextlib.contextmanager
def _shown(url: str, expires: float, as_json: bool, opens: bool) -> Iterator[None]:
    """Print a link, and open it in a browser if that is wanted."""
    click.echo(to_json({"url": url, "expires": expires}) if as_json else url)
    tell_ssh_tunnel(url)
    with opened(url) if opens else contextlib.nullcontext():
        yield
        time.sleep(READ_S if opens else 0.0)


def keep_tunnel(engine: Engine, job_id: str, hours: float = HOURS) -> None:
    """Stay while a printed link leads through this process: until the job ends, or until Ctrl-C."""
    if not engine.has_tunnel:
        return
    notice(_("the link leads through this command: Ctrl-C ends both"))
    finish_unless_interrupted(lambda: watch_until_end(engine, job_id, hours * 3600))


def _tell_start() -> None:
    notice(_("a history server was started on this machine; it ends after {time} without a request", time=IDLE))


def _tell_wait(limit_s: float) -> None:
    notice(_("waiting until it has read the jobs' logs, at most {seconds} s", seconds=f"{limit_s:.0f}"))
