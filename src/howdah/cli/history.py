"""`howdah history`: the page of all jobs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import click

from howdah.cli.browser import print_link
from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.page import keep_tunnel
from howdah.cli.run import notice, submit_prepared
from howdah.cli.terminal import json_option, place_text
from howdah.client import history_service
from howdah.client.clusters import find_clusters
from howdah.client.engine_registry import engine as engine_for
from howdah.client.engine_registry import settings_for
from howdah.client.history_link import PORT
from howdah.client.page_links import HOURS
from howdah.errors import HowdahError, NotFound, SpecError
from howdah.hadoop.conf import user_on
from howdah.history.options import HistoryOptions, ShownCluster, job_key, key_of, root_of
from howdah.history.server import serve_until_signal
from howdah.localfiles.own_directories import state_directory
from howdah.spec import prices, uris
from howdah.spec.units import seconds
from howdah.wire import auth


@click.command(
    epilog=examples(
        "howdah history",
        "howdah history --on yarn",
        "howdah history --root 'hdfs://ns/user/*/.howdah' --keep 90d",
    )
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    metavar="N",
    help="Port; 0 takes any free one.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0 means all addresses."
)
@click.option(
    "--root", "roots", multiple=True, metavar="URI", help="Another home with jobs in it; * stands for any name."
)
@click.option("--keep", default="", metavar="TIME", help="How long ended jobs are listed, such as 90d; else for ever.")
@click.option("--remove-files", is_flag=True, help="With --keep: remove the directories of your jobs, too.")
@click.option("--idle", default="", metavar="TIME", help="End after this long without a request, such as 30m.")
@click.option(
    "--on",
    "engine_name",
    default="",
    metavar="ENGINE",
    help="Run the server as a job on ENGINE, and print its address.",
)
@click.option(
    "--embed", "embedded", default="", metavar="ID", help="Only print where that job's curves are for other pages."
)
@click.option("--act", is_flag=True, help="Only print a link that permits changes of all its jobs; start nothing.")
@click.option("--profile", default="", help="A profile of your configuration.")
@json_option
def history(
    port: int,
    host: str,
    roots: tuple[str, ...],
    keep: str,
    remove_files: bool,
    idle: str,
    engine_name: str,
    embedded: str,
    act: bool,
    profile: str,
    as_json: bool,
) -> None:
    """Serve the page of all jobs, running and ended, until it is stopped."""
    keep_s, idle_s = _keep(keep, remove_files), _time("--idle", idle)
    if embedded:
        _print_embed_url(embedded, engine_name, profile, f"{host}:{port}", as_json)
        return
    if act:
        _print_act_link(engine_name, profile, f"{host}:{port}", as_json)
        return
    if engine_name:
        arguments = ["--engine", engine_name, *(word for root in roots for word in ("--root", root))]
        arguments += ["--keep", str(keep_s)] if keep_s else []
        priced = settings_for({"engine": engine_name, "profile": profile})["prices"]
        arguments += ["--prices", priced] if priced else []
        _run_as_job(engine_name, profile, [*arguments, *(["--remove-files"] if remove_files else [])], as_json)
        return
    options = options_of(profile, roots, host=host, port=port, keep_s=keep_s, remove_files=remove_files, idle_s=idle_s)
    serve_until_signal(options, lambda link: _tell_link(link, key_of(options.state), as_json))


def _tell_link(link: str, key: bytes, as_json: bool) -> None:
    print_link(link, as_json, _("history: {url}", url=link))
    if as_json or not sys.stderr.isatty():  # others may read a pipe or a journal
        return
    notice(
        _(
            "to change notes and tags and to archive jobs, for {hours} h, and not to pass on: {url}",
            hours=HOURS,
            url=_act_link(link, key),
        )
    )


def _act_link(link: str, key: bytes) -> str:
    return f"{link}&act={auth.act_token(key, time.time() + HOURS * 3600)}"


def _print_act_link(engine_name: str, profile: str, address: str, as_json: bool) -> None:
    """Print a link that permits changes, to the history server of the engine, or to the one at `address`."""
    address, key, keep = _server(engine_name, profile, address)
    print_link(_act_link(f"http://{address}{auth.page_link(key)}", key), as_json)
    keep()


def _print_embed_url(job_id: str, engine_name: str, profile: str, address: str, as_json: bool) -> None:
    """Print the address of a job's curves for an iframe, at the history server of the engine, or the one at
    `address`."""
    address, key, keep = _server(engine_name, profile, address)
    token = auth.embed_token(job_key(key, job_id))
    print_link(f"http://{address}/api/v1/jobs/{quote(job_id)}/curves/embed.html?token={token}", as_json)
    keep()


def _server(engine_name: str, profile: str, address: str) -> tuple[str, bytes, Callable[[], object]]:
    """Return the address and the key of the history server of the engine, or of the server at `address`, and a function
    that keeps the connection to it open."""
    if not engine_name:
        return address, key_of(options_of(profile).state), lambda: None
    settings = settings_for({"engine": engine_name, "profile": profile})
    engine, conf_dir = engine_for(settings), settings["hadoop_conf_dir"]
    found = history_service.find_running_service(engine)
    if found is None:
        raise NotFound(f"no history server runs on {engine.name}: `howdah history --on {engine.name}` starts it")
    link = history_service.link(engine, found.id, conf_dir, notice)
    return urlsplit(link).netloc, history_service.key(engine, conf_dir), partial(keep_tunnel, engine, found.id)


def _keep(text: str, remove_files: bool) -> float:
    if remove_files and not text:
        raise SpecError.at("--remove-files", "needs --keep: how long a job's files stay")
    return _time("--keep", text)


def _time(option: str, text: str) -> float:
    """Read a time in seconds; 0 for none."""
    try:
        found = seconds(text) if text else 0.0
    except ValueError as error:
        raise SpecError.at(option, f"is {text!r}, {error}") from None
    if found < 0 or (text and found < 1):
        raise SpecError.at(option, f"is {text!r}, must be a second at least")
    return found


def _run_as_job(engine_name: str, profile: str, arguments: list[str], as_json: bool) -> None:
    flags: dict[str, str | None] = {"engine": engine_name, "profile": profile}
    settings = settings_for(flags)
    engine = engine_for(settings)
    found = history_service.find_running_service(engine)
    if found is not None:
        notice(_("{id} runs already", id=found.id))
        job_id = found.id
    else:
        prepared = history_service.prepare_service(flags, arguments, notice)
        engine, job_id = prepared.engine, submit_prepared(prepared)
        notice(_("submitted {id} to {engine}", id=job_id, engine=engine.name))
    conf_dir = settings["hadoop_conf_dir"]
    _tell_link(history_service.link(engine, job_id, conf_dir, notice), history_service.key(engine, conf_dir), as_json)
    keep_tunnel(engine, job_id)


def options_of(profile: str, roots: tuple[str, ...] = (), **more: Any) -> HistoryOptions:
    """Return the options of a server that shows the jobs of all clusters that the profiles lead to."""
    extra = tuple(root if uris.has_scheme(root) else uris.of_local(root) for root in roots)
    settings = settings_for({"profile": profile})
    directory = Path(state_directory(os.environ), "history")
    priced = prices.parse(settings["prices"])
    return HistoryOptions(
        shown_clusters("", profile), directory, extra, settings["hadoop_conf_dir"], prices=priced, **more
    )


def shown_clusters(engine_name: str, profile: str) -> tuple[ShownCluster, ...]:
    """Return the clusters of the named engine, or of all engines, to which the profiles lead. For an engine to which a
    profile does not lead, print a line."""

    def report_unusable(engine: str, profile: str, error: HowdahError) -> None:
        notice(f"{place_text(engine, profile)}: {translate_stored(str(error))}")

    shown = []
    for cluster in find_clusters(engine_name, profile, report_unusable):
        conf_dir = settings_for({"engine": cluster.engine.name, "profile": cluster.profile})["hadoop_conf_dir"]
        try:
            root = root_of(cluster.engine, user_on(conf_dir))
        except HowdahError as error:
            if engine_name:
                raise
            report_unusable(cluster.engine.name, cluster.profile, error)
            continue
        shown.append(ShownCluster(cluster.engine, root, conf_dir, cluster.profile))
    return tuple(shown)
