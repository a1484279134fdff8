"""`howdah note` and `howdah archive`: annotations that people add to a job after its submission, or long after its
end."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import click

from howdah.api.job_annotations import Annotation
from howdah.cli.i18n import _, examples
from howdah.cli.job_choice import choose_job, job_argument
from howdah.client.annotated_jobs import change_annotation, engine_of_forgotten, locate, read_annotation
from howdah.errors import JobNotFound
from howdah.spec import JobReport
from howdah.spec.codec import to_json


@click.command(
    epilog=examples(
        "howdah note resnet 'diverges after epoch 3: lr too high'",
        "howdah note @last --tag best --untag candidate",
    )
)
@job_argument()
@click.argument("text", required=False)
@click.option("--tag", "added", multiple=True, metavar="TAG", help="Give the job a tag; may be repeated.")
@click.option("--untag", "removed", multiple=True, metavar="TAG", help="Take a tag from the job; may be repeated.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def note(
    job_id: str | None, text: str | None, added: tuple[str, ...], removed: tuple[str, ...], profile: str, as_json: bool
) -> None:
    """Print the note and the tags of a job, or write them: TEXT replaces the note, '' removes it."""
    changes: dict[str, Any] = {} if text is None else {"note": text}
    report = _find(job_id, profile, acts=bool(changes or added or removed))
    found = read_annotation(report)
    known = found.tags or ()

    def edit_tags(stored: tuple[str, ...] | None) -> list[str]:  # they may have changed since they were read
        return [tag for tag in dict.fromkeys((*(known if stored is None else stored), *added)) if tag not in removed]

    if changes or added or removed:
        found = change_annotation(report, changes, len(known), edit_tags if added or removed else None)
    if as_json:
        click.echo(to_json({"id": report.id, **dataclasses.asdict(found)}))
        return
    for line in _lines(found):
        click.echo(line)


@click.command(epilog=examples("howdah archive resnet", "howdah list -q --name sweep | xargs howdah archive"))
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...")
@click.option("--undo", is_flag=True, help="Bring the jobs back into lists.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def archive(job_ids: tuple[str, ...], undo: bool, profile: str, as_json: bool) -> None:
    """Hide jobs from lists that do not ask for archived jobs. Nothing of the jobs is removed."""
    for wanted in job_ids:
        report = _find(wanted, profile, acts=True)
        found = change_annotation(report, {"archived": not undo})
        said = _("{id} is in lists again", id=report.id) if undo else _("{id} is archived", id=report.id)
        click.echo(to_json({"id": report.id, **dataclasses.asdict(found)}) if as_json else said)


def _find(wanted: str | None, profile: str, *, acts: bool) -> JobReport:
    """Return the report of a job; a job that its engine has forgotten is found by its whole id."""
    try:
        return locate(*choose_job(wanted, profile, acts=acts))
    except JobNotFound:
        engine = engine_of_forgotten(wanted, profile) if wanted else None
        if wanted is None or engine is None:
            raise
        return locate(engine, wanted)


def _lines(found: Annotation) -> list[str]:
    tags, changed = ", ".join(found.tags or ()), time.strftime("%F %T", time.localtime(found.changed))
    by = _("changed by {user}, {time}", user=found.by, time=changed)
    lines = [found.note, _("tags: {tags}", tags=tags) if tags else "", _("archived") if found.archived else ""]
    return [line for line in (*lines, by if found.changed else "") if line] or [_("no note and no tags")]
