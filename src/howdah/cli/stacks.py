"""`howdah stacks`: what the programs of a job are doing now, or did when their stacks were last requested."""

from __future__ import annotations

import getpass

import click

from howdah.api.curve_schemas import Stacks
from howdah.cli.i18n import _, examples
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.terminal import styled_heading
from howdah.client.follow import fetch_update
from howdah.client.job_end import report_of
from howdah.client.master_client import connect, translate_refusals
from howdah.client.recorded_files import read_kept_stacks
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, NotFound, SpecError
from howdah.logs.output_text import readable
from howdah.spec import JobReport, TaskId
from howdah.spec.codec import to_json
from howdah.spec.view import JobView


@click.command(
    epilog=examples("howdah stacks resnet", "howdah stacks resnet worker:1 --native", "howdah stacks --last")
)
@job_argument()
@click.argument("task", default="")
@click.option("--native", is_flag=True, help="With the frames of C and C++ libraries; large ones take a while.")
@click.option("--last", is_flag=True, help="Show the stacks that were saved last, not the current ones.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def stacks(job_id: str | None, task: str, native: bool, last: bool, profile: str, as_json: bool) -> None:
    """Show the stacks of all threads of JOB_ID's programs, or of its TASK's (worker:1); they are kept with the job."""
    engine, job_id = choose_job(job_id, profile)
    report = report_of(engine, job_id)
    view = fetch_update(engine, job_id).view
    if last or report.state.ended or view.outcome is not None:  # the engine learns of the end a little later
        uri = _latest_stacks(view)
        text = read_kept_stacks(report, uri).decode("utf-8", "replace")
        if as_json:
            click.echo(to_json({"uri": uri, "text": text}))
        else:
            _print_text(f"{uri}\n{text}")
        return
    answer = _take_stacks(engine, report, _check_task(task), native)
    if as_json:
        click.echo(to_json(answer))
        return
    for name, text in answer["stacks"].items():
        click.echo(styled_heading(name))
        _print_text(text)
    if answer["uri"]:
        click.echo(_("kept in {uri}", uri=answer["uri"]), err=True)
    if answer["problem"]:
        click.echo(_("not kept: {problem}", problem=answer["problem"]), err=True)


def _print_text(text: str) -> None:
    """Print a file that another user may have written, so that nothing in it controls the terminal."""
    for line in text.splitlines():
        click.echo(readable(line.encode("utf-8", "backslashreplace")))


def _check_task(task: str) -> str:
    try:
        return str(TaskId.parse(task)) if task else ""
    except ValueError as error:
        raise SpecError.at("TASK", str(error)) from None


def _take_stacks(engine: Engine, report: JobReport, task: str, native: bool) -> Stacks:
    link = connect(engine, report)
    if link is None:
        raise EngineUnavailable(f"{report.id} waits for its master: nothing runs yet that could be looked into")
    with link, translate_refusals(report.id):
        return link.stacks(getpass.getuser(), task, native)


def _latest_stacks(view: JobView) -> str:
    if not view.stacks:
        raise NotFound(f"{view.id}: no stacks were saved while the job ran")
    return view.stacks[-1]
