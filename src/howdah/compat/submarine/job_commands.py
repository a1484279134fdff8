"""Runs Submarine's `job show`, and `job list` and `job kill`, which it did not have; prints the links of a job."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from howdah.cli.i18n import _
from howdah.cli.jobs import table
from howdah.cli.run import notice
from howdah.cli.terminal import Plain, task_lines
from howdah.client.clusters import engine_of
from howdah.client.engine_registry import engine, settings_for
from howdah.client.follow import Update, fetch_update
from howdah.client.job_end import cancel_job
from howdah.client.page_links import tensorboard_url
from howdah.compat import engine_flags
from howdah.engines import Engine
from howdah.errors import JobNotFound, SpecError
from howdah.spec import JobReport, JobSpec, redaction
from howdah.spec.links import resolve_links
from howdah.spec.validation import nearest


class LinkScreen(Plain):
    """Prints plain lines, and each link of the job as soon as it can be opened."""

    def __init__(self, job: JobSpec) -> None:
        super().__init__()
        self._links = {label: address for label, address in job.links.items() if "{" in address}

    def show(self, update: Update) -> None:
        """Print what is new."""
        super().show(update)
        for label, address in resolve_links(self._links, update.view.tasks).items():
            del self._links[label]
            self._print(f"{label}: {address}")


def show(argv: Sequence[str]) -> None:
    """Print the same as Submarine's `job show`, and the job's state."""
    on, report = _find_job(argv)
    update = fetch_update(on, report.id)
    links = resolve_links(update.view.job.links, update.view.tasks) if update.view.job else {}
    board = "" if report.state.ended or on.has_tunnel else tensorboard_url(on, report, update.view)
    links = {**links, **({"Tensorboard": board} if board else {})}
    parameters = run_parameters(update.view.submission.command)
    typed = {"Run Parameters": parameters} if parameters else {}
    found = {"Application Id": report.id, **links, **typed, "State": report.state.value}
    click.echo("Job Meta Info:")
    for label, text in found.items():
        click.echo(f"\t{label}: {text}")
    for line in task_lines(update.view.tasks.values()) if update.view.tasks else ():
        click.echo(f"\t{line}")


def run_parameters(command: Sequence[str]) -> str:
    """Return the words after `job run`, without secrets; "" for a job that another command submitted."""
    words = list(command)
    if "submarine" not in words[:2] or "run" not in words:
        return ""
    return shlex.join(redaction.words(words[words.index("run") + 1 :]))


def list_jobs(argv: Sequence[str]) -> None:
    """Print all jobs that the engine knows, the newest first."""
    if argv:
        raise SpecError.at(argv[0], "is too much: job list takes nothing")
    for line in table(_newest_first(engine(settings_for(engine_flags())).describe())):
        click.echo(line)


def kill(argv: Sequence[str]) -> None:
    """Cancel the job if it runs."""
    on, report = _find_job(argv, running=True)
    if not report.state.ended:
        click.echo(_("cancelling {id}", id=report.id), err=True)
        report = cancel_job(on, report, notice)
    click.echo(f"{report.id} {report.state.value} {report.diagnostics}".rstrip())


def _newest_first(reports: Sequence[JobReport]) -> list[JobReport]:
    return sorted(reports, key=lambda report: report.submitted, reverse=True)


def _find_job(argv: Sequence[str], running: bool = False) -> tuple[Engine, JobReport]:
    """Return the job that an id or a name means, with its engine. If several jobs have the name it is the newest one,
    or with `running` the only one that runs."""
    name = argv[0].partition("=")[2] if argv and argv[0].lstrip("-").startswith("name=") else argv[-1] if argv else ""
    if len(argv) > 2 or not name or (len(argv) == 2 and argv[0].lstrip("-") != "name"):
        raise SpecError.at("--name", "is missing: give --name NAME, or a job's id")
    if name.startswith(("application_", "local-")):
        on = engine_of(name)
        found = on.describe(name)
        if not found:
            raise JobNotFound(f"no job {name} on engine {on.name}")
        return on, found[0]
    on = engine(settings_for(engine_flags()))
    reports = on.describe()
    found = _newest_first([report for report in reports if report.name == name])
    alive = [report for report in found if not report.state.ended]
    if not found:
        near = nearest(name, [report.name for report in reports])
        raise JobNotFound(f"--name: no job is called {name!r}" + (f" (did you mean {near!r}?)" if near else ""))
    if running and len(alive) > 1:
        raise SpecError.at("--name", f"is {name!r}, which are {', '.join(one.id for one in alive)}: give the id")
    return on, (alive if running and alive else found)[0]
