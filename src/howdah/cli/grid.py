"""`howdah submit --grid`: a job for each combination of values, and a table of their ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.interrupts import STOPPING, Interrupts
from howdah.cli.jobs import duration_text
from howdah.cli.run import load_chosen, notice, prepare_chosen, show_prepared, submit_or_exit, tell_id
from howdah.cli.terminal import columns, styled_state
from howdah.cli.wait import wait_for_jobs
from howdah.client import grid
from howdah.client.annotated_jobs import keep_tags
from howdah.client.follow import fetch_update
from howdah.client.submit import PreparedJob
from howdah.engines import Engine
from howdah.errors import HowdahError, SpecError
from howdah.spec import JobSpec
from howdah.spec.view import JobView

ENDED = (1, 2)
"""Exit statuses with which a wait ends after all jobs have ended, and not all have succeeded."""
MAX_METRICS = 5
MAX_TOLD = 4
"""Of how many jobs at most it is told what they wait for."""

Submitted = tuple[Engine, str, Mapping[str, str]]
"""A job's engine, its id, and its values of the grid."""


def submit_grid(texts: Sequence[str], as_json: bool, waits: bool, dry_run: bool, options: dict[str, Any]) -> None:
    """Submit a job for each combination of values, after all have been checked, and print their ids; with `waits` exit
    with their result.

    Raises:
        SpecError: the grid is wrong, or a job of it.
        SystemExit: as `wait` ends, or after an interrupt.
    """
    values = grid.parse(texts)
    if options["stdin"]:
        raise SpecError.at("--grid", "goes with no --stdin: write the input to a file, and send it by --file")
    group = f"grid-{secrets.token_hex(3)}"
    jobs = _prepare_jobs(values, group, options, not dry_run)
    if dry_run:
        for combination, prepared in jobs:
            click.echo(_words(combination), err=True)
            show_prepared(prepared, as_json)
        return
    submitted: list[Submitted] = []
    tagged = 0
    with Interrupts(STOPPING) as interrupts:
        try:
            for combination, prepared in jobs:
                interrupts.check()
                job_id = submit_or_exit(prepared, as_json, interrupts)
                submitted.append((prepared.engine, job_id, combination))
                interrupts.call(partial(tell_id, prepared.engine, job_id, as_json))
                tagged += interrupts.call(partial(_keep_tags, prepared, job_id))
        except KeyboardInterrupt:
            raise SystemExit(interrupts.status) from None
        finally:
            _tell_submitted(len(submitted), len(jobs), group if tagged == len(submitted) else "")
        if waits:
            _wait(submitted, as_json, interrupts)


def _prepare_jobs(
    values: grid.Grid, group: str, options: dict[str, Any], install: bool
) -> list[tuple[dict[str, str], PreparedJob]]:
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:  # of a hundred jobs that have it in common
            told.add(text)
            notice(text)

    found = {name: options[name] for name in ("overwrite", "fresh")}
    rest = {name: value for name, value in options.items() if name not in found}
    combinations = list(grid.combinations(values))
    chosen = [
        load_chosen(**rest | {"sets": _sets(options["sets"], each)}, varied=list(values), tell=tell)
        for each in combinations
    ]
    variables = {name for name in values if any(f"vars.{name}" in each.loaded.sources for each in chosen)}
    grid.check([each.loaded.spec for each in chosen], values, variables)
    jobs = [
        prepare_chosen(job, **found, change=_tagged(grid.tags(group, combination)), install=install, tell=tell)
        for combination, job in zip(combinations, chosen, strict=True)
    ]
    staged = [job.plan.job for job in jobs]
    grid.check_places([each.job for each in staged], staged[0].settings.get("hadoop_conf_dir", ""))
    return list(zip(combinations, jobs, strict=True))


def _keep_tags(prepared: PreparedJob, job_id: str) -> bool:
    """Return whether lists find the job by its tags."""
    try:
        keep_tags(prepared.engine, job_id, prepared.plan.job.job.tags)
    except HowdahError as error:  # the job runs without them
        notice(f"howdah: {job_id}: {translate_stored(str(error))}")
        return False
    return True


def _sets(sets: Sequence[str], combination: Mapping[str, str]) -> tuple[str, ...]:
    return (*sets, *(f"{name}={value}" for name, value in combination.items()))


def _tagged(tags: tuple[str, ...]) -> Callable[[JobSpec], JobSpec]:
    return lambda job: replace(job, tags=(*job.tags, *(tag for tag in tags if tag not in job.tags)))


def _tell_submitted(count: int, of_all: int, group: str) -> None:
    """Say how many jobs there are, and by which tag all of them are found, if by any."""
    if not group:
        text = _("{count} of {all} jobs were submitted; not all are found by a tag", count=count, all=of_all)
        notice(f"howdah: {text}")
    elif count == of_all:
        notice(_("{count} jobs with the tag {tag}: `howdah list --tag {tag}`", count=count, tag=group))
    elif count:
        text = _(
            "{count} of {all} jobs were submitted: `howdah list -q --tag {tag} | xargs -n1 howdah cancel` ends them",
            count=count,
            all=of_all,
            tag=group,
        )
        notice(f"howdah: {text}")


def _wait(submitted: Sequence[Submitted], as_json: bool, interrupts: Interrupts) -> None:
    status: object = 0
    try:
        jobs = [(engine, job_id) for engine, job_id, _values in submitted]
        wait_for_jobs(jobs, as_json, interrupts, only_ends=len(jobs) > MAX_TOLD)
    except SystemExit as end:
        status = end.code
        if status not in ENDED:
            raise
    if not as_json:
        for line in interrupts.call(lambda: list(columns(table(submitted)))):
            click.echo(line)
    if status:
        raise SystemExit(status)


def table(submitted: Sequence[Submitted]) -> list[tuple[str, ...]]:
    """Return the rows of a table of ended jobs: id, values of the grid, state, duration, and last values of metrics."""
    rows: list[tuple[tuple[str, ...], dict[str, str]]] = []
    for engine, job_id, combination in submitted:
        try:
            update = fetch_update(engine, job_id)
        except HowdahError:  # it has ended; its log can be read later
            rows.append(((job_id, *combination.values(), "", ""), {}))
            continue
        state = styled_state(update.view.outcome.state if update.view.outcome else update.report.state)
        rows.append(((job_id, *combination.values(), state, duration_text(update.report)), _last_metrics(update.view)))
    names = sorted({name for _cells, metrics in rows for name in metrics})[:MAX_METRICS]
    heading = (_("Id"), *(submitted[0][2] if submitted else ()), _("State"), _("Took"), *names)
    return [heading, *((*cells, *(metrics.get(name, "") for name in names)) for cells, metrics in rows)]


def _last_metrics(view: JobView) -> dict[str, str]:
    """Return the last value of each metric, of the first task that has reported it."""
    found: dict[str, str] = {}
    for task in view.tasks.values():
        for name, points in task.metrics.items():
            value = points[-1].value if points else None
            if name not in found and value is not None:
                found[name] = f"{value:.6g}"
    return found


def _words(combination: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in combination.items())
