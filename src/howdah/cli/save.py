"""`howdah save`: take a snapshot of what a running job has made so far."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import asdict

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.job_choice import choose_job, job_argument
from howdah.client.follow import Follower
from howdah.client.job_end import report_of
from howdah.client.master_client import connect, translate_refusals
from howdah.engines import Engine
from howdah.errors import EngineUnavailable, JobEnded, JobFailed
from howdah.spec import State
from howdah.spec.codec import to_json
from howdah.spec.view import JobView, SnapshotView

SHOWN = 5


@click.command(epilog=examples("howdah save resnet", "howdah save --output 0 --wait"))
@job_argument()
@click.option("--output", type=click.IntRange(0), metavar="N", help="Only outputs.N of the job file, counted from 0.")
@click.option("--wait", is_flag=True, help="Return when the snapshot is complete.")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def save(job_id: str | None, output: int | None, wait: bool, profile: str, as_json: bool) -> None:
    """Take a snapshot of the outputs of a running job as they are now; its programs go on."""
    engine, job_id = choose_job(job_id, profile, acts=True)
    numbers = dict(_ask(engine, job_id, -1 if output is None else output))
    if not wait:
        for number, snapshot in numbers.items():
            line = _(
                "snapshot {snapshot} of outputs.{number}: `howdah status {id}` shows it",
                snapshot=snapshot,
                number=number,
                id=job_id,
            )
            click.echo(to_json({"output": number, "number": snapshot}) if as_json else line)
        return
    failed = False
    for view in _await_snapshots(engine, job_id, set(numbers.values())):
        click.echo(to_json(asdict(view)) if as_json else sentence(view))
        failed = failed or view.state is State.FAILED
    if failed:
        raise SystemExit(JobFailed.exit_code)


def _ask(engine: Engine, job_id: str, output: int) -> list[tuple[int, int]]:
    report = report_of(engine, job_id)
    if report.state.ended:
        raise JobEnded(f"{job_id} has ended: {report.state.value}")
    link = connect(engine, report)
    if link is None:
        raise EngineUnavailable(f"{job_id} waits for its master: no program runs yet, so no snapshot can be taken")
    with link, translate_refusals(job_id):
        return link.save(getpass.getuser(), output)


def _await_snapshots(engine: Engine, job_id: str, numbers: set[int]) -> Iterator[SnapshotView]:
    """Yield each of the snapshots when it is complete or has failed, at the latest when the job ends."""
    for update in Follower(engine, job_id).updates():
        for view in _ended_snapshots(update.view, numbers):
            numbers.discard(view.number)
            yield view
        if not numbers:
            return
    raise JobFailed(f"{job_id} ended before the snapshot was complete")


def _ended_snapshots(view: JobView, numbers: set[int]) -> list[SnapshotView]:
    return [each for each in view.snapshots if each.number in numbers and each.state is not State.RUNNING]


def snapshot_lines(view: JobView) -> Iterator[str]:
    """Yield lines about the snapshots: those from which the programs continued, and the newest ones."""
    if view.resumed:
        yield _("resumed from {uri}", uri=view.resumed)
    if len(view.snapshots) > SHOWN:
        yield _("the newest {count} snapshots:", count=SHOWN)
    yield from map(sentence, view.snapshots[-SHOWN:])


def sentence(view: SnapshotView) -> str:
    """Return a line about a snapshot."""
    if view.state is State.FAILED:
        return _("no snapshot of outputs.{number}: {reason}", number=view.output, reason=translate_stored(view.reason))
    if view.state is State.RUNNING:
        return _(
            "taking a snapshot of outputs.{number}: {done} of {tasks} tasks",
            number=view.output,
            done=view.done,
            tasks=view.tasks,
        )
    text = _(
        "snapshot: {uri} ({total} files, {files} of them new, {bytes} bytes)",
        uri=view.uri,
        total=view.total,
        files=view.files,
        bytes=view.bytes,
    )
    if view.removed:
        return f"{text} {_('(removed)')}"
    return "\n".join([text, *(f"  {_('left out: {what}', what=line)}" for line in view.skipped)])
