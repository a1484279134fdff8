"""`howdah trace`: finds the job and task that a container, a process or a GPU belongs to."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import click

from howdah.api.trace import describe
from howdah.cli.history import options_of
from howdah.cli.i18n import _, examples, translate_stored
from howdah.client.clusters import describe_clusters, engine_of, find_clusters
from howdah.client.follow import fetch_update
from howdah.client.master_client import connect
from howdah.client.process_owner import is_here, owner_of
from howdah.client.recorded_events import recorded_log
from howdah.engines import Engine
from howdah.errors import HowdahError, NotFound
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index
from howdah.history.options import index_directory
from howdah.history.queries import newest_directory, row_of
from howdah.history.queries import trace as indexed
from howdah.spec import JobReport, State
from howdah.spec.codec import to_json
from howdah.spec.fold import fold_recorded
from howdah.spec.view import JobView
from howdah.wire.connection import WireError
from howdah.wire.messages import PROCESSES

_PROCESS = re.compile(r"(?:(.+):)?(\d{1,10})")
_GPU = re.compile(r"(?:(.+)/)?gpu([A-Za-z0-9-]+)")
_OF_JOB = ("name", "state", "user", "queue", "engine")


@click.command(epilog=examples("howdah trace node17/gpu3", "howdah trace node17:29311", "howdah trace 29311"))
@click.argument("of", metavar="CONTAINER|[HOST:]PID|[HOST/]gpuN")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def trace(of: str, profile: str, as_json: bool) -> None:
    """Show the job and task that own, or owned, a container (its id), host:pid, host/gpu3, or a local pid or gpu3."""
    options = options_of(profile)
    with Index(index_directory(options)) as index:
        if index.claim():  # else a history server keeps it up to date
            Scanner(index, options.roots, options.conf_dir_of).scan()
        found = _find(index.connection, of, profile)
        if found is None:
            raise NotFound(f"no job of {', '.join(options.roots)} had {of}")
        whole = _with_details(index.connection, found, profile)
    if as_json:
        click.echo(to_json({**whole, "at": time.time()}))
        return
    for line in _owner_lines(whole):
        click.echo(line)


def _find(connection: sqlite3.Connection, of: str, profile: str) -> dict[str, Any] | None:
    """Return the job, and if known the task, its attempt and the `process` that was asked for."""
    process, gpu = _PROCESS.fullmatch(of), _GPU.fullmatch(of)
    if process:
        return _find_process(connection, process[1] or "", int(process[2]), profile)
    if gpu:
        found = (indexed(connection, f"{host}/gpu{gpu[2]}") for host in _host_names(gpu[1] or ""))
        return next(filter(None, found), None)
    return indexed(connection, of)


def _find_process(connection: sqlite3.Connection, host: str, pid: int, profile: str) -> dict[str, Any] | None:
    if not host or is_here(host):
        try:
            return _find_local_process(connection, host, pid)
        except NotFound:  # it has ended, and may be known all the same
            if not host:
                raise
    return indexed(connection, f"{host}:{pid}") or _ask_executors(host, pid, profile)


def _find_local_process(connection: sqlite3.Connection, host: str, pid: int) -> dict[str, Any] | None:
    owner = owner_of(pid)
    if owner.task:
        return {"job": owner.job, "task": owner.task, "attempt": owner.attempt, "process": pid}
    places = (f"{name}:{each}" for each in owner.pids for name in _host_names(host))
    found = indexed(connection, owner.container) if owner.container else None
    found = found or next(filter(None, (indexed(connection, place, live=True) for place in places)), None)
    if found is None and owner.job:
        found = {"job": owner.job, "task": "", "attempt": 0}
    return found and {**found, "process": pid}


def _host_names(host: str) -> list[str]:
    """Return the names that a host may have in event logs; jobs of the local engine run on 127.0.0.1."""
    own = ["127.0.0.1", socket.gethostname(), socket.getfqdn()]
    return list(dict.fromkeys([host, *own] if host and is_here(host) else [host] if host else own))


def _ask_executors(host: str, pid: int, profile: str) -> dict[str, Any] | None:
    """Ask the executors of your own jobs on `host`, because the process may be a descendant of a program."""
    for engine, report in _running_jobs(profile):
        with contextlib.suppress(HowdahError, WireError):
            update = fetch_update(engine, report.id)
            view, link = update.view, connect(engine, update.report)
            there = [task for task in view.tasks.values() if task.state is State.RUNNING and task.host == host]
            if link is None or not there:
                continue
            with link:
                for task in there:
                    if pid in json.loads(link.log(task.id, PROCESSES, 0).text or "[]"):
                        return {"job": view.id, "task": str(task.id), "attempt": task.attempt, "process": pid}
    return None


def _running_jobs(profile: str) -> Iterator[tuple[Engine, JobReport]]:
    """Yield the running jobs of all clusters to which the profiles lead; a cluster that does not answer gets a line."""
    clusters = find_clusters("", profile)
    for cluster, answer in zip(clusters, describe_clusters(clusters), strict=True):
        if answer.error is not None:
            click.echo(f"howdah: {answer.place}: {translate_stored(str(answer.error))}", err=True)
        yield from ((cluster.engine, report) for report in answer.reports if report.state is State.RUNNING)


def _with_details(connection: sqlite3.Connection, trace: dict[str, Any], profile: str) -> dict[str, Any]:
    """Return the answer with all details that the job's log, the index and its engine know."""
    job = trace["job"]
    directory = trace.get("directory") or newest_directory(connection, job)
    row = row_of(connection, job, directory, time.time())
    report = JobReport(job, "", State.PENDING, "", directory=directory)
    known: dict[str, Any] = {name: row[name] for name in _OF_JOB if row[name]} if row else {}
    if "queue" not in known:  # the cluster chose it; or the job is of another user
        with contextlib.suppress(HowdahError):
            for report_of_engine in engine_of(job, profile).describe(job):
                fields = {name: getattr(report_of_engine, name) for name in ("name", "user", "queue", "engine")}
                known = {**fields, "state": report_of_engine.state.value, **known}
    view = JobView(id=job)
    if report.directory:
        with contextlib.suppress(HowdahError):
            view = fold_recorded(recorded_log(report), view)
    answer = {**describe(view, trace["task"], trace["attempt"]), **known}
    answer.pop("url")
    return {**answer, "process": trace.get("process") or answer["pid"]}


def _owner_lines(whole: dict[str, Any]) -> Iterator[str]:
    yield " ".join(filter(None, (whole["job"], whole["task"])))
    if whole["user"]:
        name, state, user = whole["name"], whole["state"], whole["user"]
        of_queue = _(", queue {queue}", queue=whole["queue"]) if whole["queue"] else ""
        yield "  " + _("job {name}, {state}, of user {user}", name=name, state=state, user=user) + of_queue
    if whole["task"]:
        role, index, attempt = whole["role"], whole["index"], whole["attempt"]
        rank = _(", rank {rank}", rank=whole["rank"]) if whole["rank"] is not None else ""
        yield (
            "  " + _("role {role}, index {index}, attempt {attempt}", role=role, index=index, attempt=attempt) + rank
        )
    if whole["host"]:
        process = _(", program {pid}", pid=whole["pid"]) if whole["pid"] else ""
        yield "  " + _("on {host} in {container}", host=whole["host"], container=whole["container"]) + process
    if whole["engine_facts"]:
        yield f"  {whole['engine']}: " + ", ".join(f"{name} {value}" for name, value in whole["engine_facts"].items())
    if whole["gpus"]:
        yield "  " + _("GPUs {gpus}", gpus=", ".join(whole["gpus"]))
    if whole["since"]:
        began = time.strftime("%m-%d %H:%M:%S", time.localtime(whole["since"]))
        ended = time.strftime("%m-%d %H:%M:%S", time.localtime(whole["until"])) if whole["until"] else ""
        yield "  " + _("since {time}", time=began) + (_(", until {time}", time=ended) if ended else "")
