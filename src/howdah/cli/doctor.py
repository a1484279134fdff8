"""`howdah doctor`: one line for each thing that jobs need, on this machine and on the cluster, and what to do about it.

Every check has a time limit, and none changes anything but a small file in the staging directory, which is removed;
only `--run` starts a job.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from howdah.cli.findings import Finding, fail, guarded, ok, warn
from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.terminal import place_text
from howdah.client.clusters import ConfiguredEngine, find_configured_engines
from howdah.client.engine_registry import engine, engine_info, settings_for
from howdah.config.extras import how_to_install
from howdah.engines.info import known
from howdah.errors import HowdahError
from howdah.spec import plugins
from howdah.spec.codec import to_json
from howdah.storage.progress import no_notice

MIN_FREE_MIB = 1024
MAX_NODES = 8
"""The most nodes that the small job of `--run` uses."""
TRIAL_LIMIT_S = 300.0
"""Limit in seconds for that job; if there is no room for it, it would wait for days."""
_MARKS = {"ok": "green", "warn": "yellow", "fail": "red"}
_EXTRAS = {"records": ("cramjam", "google_crc32c", "pyarrow")}
"""Modules that show whether an extra that belongs to no engine is installed."""


@click.command(epilog=examples("howdah doctor", "howdah doctor --on yarn --run"))
@click.option("--on", "engine_name", default="", help="Only this engine; unset: all that are configured.")
@click.option("--run", "with_job", is_flag=True, help="Start a small job too, on up to eight nodes.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def doctor(engine_name: str, with_job: bool, profile: str, as_json: bool) -> None:
    """Check this machine's and the cluster's set-up; the exit status is 1 if a check failed."""
    failed = False
    for finding in findings(engine_name, with_job, profile):
        failed = failed or finding.state == "fail"
        if as_json:
            click.echo(to_json(asdict(finding)))
            continue
        click.echo(f"{click.style(f'{finding.state:4}', fg=_MARKS[finding.state])}  {finding.name}: {finding.text}")
        if finding.advice:
            click.echo(f"      {finding.advice}")
    raise SystemExit(1 if failed else 0)


def findings(engine_name: str, with_job: bool, profile: str) -> Iterator[Finding]:
    """Yield the results of all checks, as they are made."""
    wrong: list[Finding] = []

    def report_unusable(engine: str, profile: str, error: HowdahError) -> None:
        wrong.append(fail(place_text(engine, profile), translate_stored(str(error)), ""))

    in_use = settings_for({"profile": profile}).profile
    chosen = list(_distinct(find_configured_engines(engine_name, profile, report_unusable)))
    if engine_name and not chosen:  # its checks say what is not configured
        settings = settings_for({"engine": engine_name, "profile": profile})
        chosen = [ConfiguredEngine(engine_name, engine_info(engine_name), settings)]
    yield python()
    yield from extras({each.info.extra for each in chosen})
    yield from guarded("howdah", home)
    yield stack_tools()
    yield from wrong
    for name, info in known():
        found = [each for each in chosen if each.name == name]
        for each in found:
            other = each.settings.profile if each.settings.profile != in_use else ""
            yield from _named_by_profile(guarded(name, functools.partial(_checks_of, each)), other)
        if not found and not engine_name:
            yield ok(name, _("no cluster is configured; {advice}", advice=_(info.how_to_configure)))
    for each in chosen if with_job else ():
        other = each.settings.profile if each.settings.profile != in_use else ""
        run = functools.partial(trial, each.name, each.settings.profile)
        yield from _named_by_profile(guarded(each.name, run), other)


def _distinct(found: Iterable[ConfiguredEngine]) -> Iterator[ConfiguredEngine]:
    """Yield the first of the engines that lead to the same cluster."""
    clusters = set()
    for each in found:
        try:
            cluster = engine(each.settings).cluster
        except HowdahError:  # a check says why
            cluster = f"profile {each.settings.profile}"
        if (each.name, cluster) not in clusters:
            clusters.add((each.name, cluster))
            yield each


def _named_by_profile(found: Iterator[Finding], profile: str) -> Iterator[Finding]:
    """Yield findings with the profile in their names; "" changes nothing."""
    for finding in found:
        name = _("{engine}, profile {profile}", engine=finding.name, profile=profile) if profile else finding.name
        yield replace(finding, name=name)


def _checks_of(configured: ConfiguredEngine) -> Iterator[Finding]:
    info = configured.info
    try:
        checks = plugins.load(info.checks) if info.checks else None
    except ModuleNotFoundError:
        if not info.extra:
            raise
        return  # `extras` has said what is missing
    if checks is not None:
        yield from checks(configured.settings)


# This machine


def python() -> Finding:
    """Check the Python that runs howdah."""
    return ok("Python", f"{sys.version.split()[0]} ({sys.executable})")


def extras(needed: Collection[str]) -> Iterator[Finding]:
    """Check the libraries beyond the standard one."""
    of_engines = {info.extra: info.extra_modules for _, info in known() if info.extra_modules}
    for extra, modules in {**of_engines, **_EXTRAS}.items():
        missing = [module for module in modules if not _is_installed(module)]
        install = how_to_install(extra)
        if not missing:
            yield ok(f"howdah[{extra}]", _("installed"))
        elif extra in needed:
            yield fail(f"howdah[{extra}]", _("missing: {modules}", modules=", ".join(missing)), install)
        else:
            yield warn(f"howdah[{extra}]", _("missing: {modules}", modules=", ".join(missing)), install)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def home() -> Iterator[Finding]:
    """Check the directory of jobs and caches."""
    from howdah.localfiles.own_directories import state_directory
    from howdah.storage.content_cache import local_directory

    for name, place in ((_("jobs"), state_directory(os.environ)), (_("cache"), local_directory())):
        there = next(one for one in (place, *place.parents) if one.exists())
        free = shutil.disk_usage(there).free >> 20
        if not os.access(there, os.W_OK):
            advice = _("make it writable, or set HOWDAH_HOME to a place that is")
            yield fail(name, _("{path} can't be written", path=there), advice)
        elif free < MIN_FREE_MIB:
            yield warn(name, _("{path}: {free} MiB free", path=place, free=free), _("make room, or set HOWDAH_HOME"))
        else:
            yield ok(name, _("{path}: {free} MiB free", path=place, free=free))


def stack_tools() -> Finding:
    """Check whether stacks can be taken."""
    from howdah.executor.diagnostics.stacks import py_spy

    found = py_spy("/", os.environ.get("PATH", ""))
    if not found:
        return warn("py-spy", _("not installed: stacks show only what the kernel knows"), how_to_install("stacks"))
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and int(scope.read_text(encoding="ascii")) > 1 and os.geteuid():
        text = _("this machine forbids reading the stacks of programs (kernel.yama.ptrace_scope)")
        return warn("py-spy", text, "sysctl kernel.yama.ptrace_scope=1")
    return ok("py-spy", found)


# A job


def trial(name: str, profile: str, limit_s: float = TRIAL_LIMIT_S) -> Iterator[Finding]:
    """Run a task on each of some nodes, and say which Python its programs find there. The job is cancelled if it has
    not ended within `limit_s` seconds."""
    from howdah.client.follow import Follower
    from howdah.client.job_end import cancel_job
    from howdah.client.submit import prepare
    from howdah.spec import JobSpec, Placement, Resources, Role, State, Timeouts

    count = max(1, min(MAX_NODES, engine(settings_for({"engine": name, "profile": profile})).node_count()))
    role = Role(
        "python3 -V || true",
        replicas=count,
        resources=Resources(memory_mib=512),
        placement=Placement(spread=count > 1),
    )
    spec = JobSpec(roles={"node": role}, name="howdah-doctor", timeouts=Timeouts(gang_s=90, run_s=60))
    prepared = prepare(spec, Path.cwd(), {"engine": name, "profile": profile}, no_notice)
    job_id = prepared.engine.submit(prepared.plan, prepared.secrets)
    view: Any = None
    deadline = time.monotonic() + limit_s
    for update in Follower(prepared.engine, job_id).updates():
        view = update.view
        if time.monotonic() > deadline and view.outcome is None:
            cancel_job(prepared.engine, update.report)
            why = translate_stored(update.report.diagnostics) or view.state.value
            said = _(
                "{id} had not ended after {seconds} s, and is cancelled: {why}",
                id=job_id,
                seconds=f"{limit_s:.0f}",
                why=why,
            )
            yield fail(_("job on {engine}", engine=name), said, f"howdah explain {job_id}")
            return
    if view is None or view.outcome is None or view.outcome.state is not State.SUCCEEDED:
        said = view.outcome.diagnostics if view is not None and view.outcome else "?"
        yield fail(_("job on {engine}", engine=name), said, f"howdah explain {job_id}")
        return
    yield ok(_("job on {engine}", engine=name), f"{job_id}, {view.finished - view.started:.1f} s")
    for task in view.tasks.values():
        found = Finding("ok", f"  {task.node or task.host}", f"python3: {task.program or '-'}; executor: {task.python}")
        yield found if task.program else replace(found, state="warn", advice=_("programs find no python3 there"))
