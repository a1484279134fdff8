"""`howdah submit`: a job, or a grid of jobs, that nobody follows."""

from __future__ import annotations

from typing import Any

import click

from howdah.cli.i18n import examples
from howdah.cli.interrupts import STOPPING, Interrupts
from howdah.cli.job_arguments import CommandWithProgram, dry_run_option, fresh_option, job_options
from howdah.cli.run import prepared_job, show_plan, submit_or_exit, tell_id

SUBMIT_EXAMPLES = examples(
    "howdah submit --on yarn job.yaml",
    "howdah submit --wait job.yaml && ./publish.sh",
    "howdah submit --like @last --set lr=0.01",
    "howdah submit --wait --grid lr=0.1,0.01 --grid seed=1..4 job.yaml",
)


@click.command(cls=CommandWithProgram, epilog=SUBMIT_EXAMPLES)
@job_options
@fresh_option
@click.option("--wait", "waits", is_flag=True, help="Wait for the job's end, and exit with its result.")
@click.option(
    "--grid", multiple=True, metavar="NAME=V1,V2", help="A job for each value, as --set; several: each combination."
)
@dry_run_option
def submit(as_json: bool, waits: bool, grid: tuple[str, ...], dry_run: bool, **options: Any) -> None:
    """Submit the job in JOB_FILE, or COMMAND as a job, and print its id."""
    if grid:
        from howdah.cli.grid import submit_grid

        submit_grid(grid, as_json, waits, dry_run, options)
        return
    if dry_run:
        show_plan(as_json, **options)
        return
    prepared = prepared_job(**options)
    with Interrupts(STOPPING) as interrupts:
        job_id = submit_or_exit(prepared, as_json, interrupts)
        interrupts.call(lambda: tell_id(prepared.engine, job_id, as_json))
        if waits:
            from howdah.cli.wait import wait_for_jobs

            wait_for_jobs([(prepared.engine, job_id)], as_json, interrupts)
