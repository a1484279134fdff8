"""`howdah attach`: follow a job that was submitted before."""

from __future__ import annotations

import click

from howdah.cli.i18n import examples
from howdah.cli.interrupts import STOPPING, Interrupts
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.run import INTERRUPT, ON_INTERRUPT, follow_submitted


@click.command(epilog=examples("howdah attach", "howdah attach resnet --logs all"))
@job_argument()
@click.option("--logs", "log_tasks", default="chief", help="Whose output to show: chief, all, none, a role, a task.")
@click.option("--on-interrupt", type=click.Choice(INTERRUPT), default="detach", help=ON_INTERRUPT)
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="JSON, for programs.")
def attach(job_id: str | None, log_tasks: str, on_interrupt: str, profile: str, as_json: bool) -> None:
    """Follow a job as `run` does, and exit with its result. Ctrl-C leaves the job running."""
    engine, job_id = choose_job(job_id, profile)
    with Interrupts(STOPPING) as interrupts:
        follow_submitted(engine, job_id, log_tasks, on_interrupt, as_json, interrupts)
