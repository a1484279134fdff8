"""`howdah explain`: why a job waits, why it failed, what was started again and when, in a few sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from howdah.cli.i18n import _, examples, translate_stored
from howdah.cli.job_choice import choose_job, job_argument
from howdah.cli.progress_lines import event_line
from howdah.cli.terminal import columns, styled_state
from howdah.client.explain import Explanation
from howdah.client.explain import explain as look
from howdah.engines import AccountedTask
from howdah.logs.output_text import readable
from howdah.spec import State
from howdah.spec.advice import advice
from howdah.spec.codec import encode, to_json
from howdah.spec.events import Event, GangRestarted, Stopping


@click.command(epilog=examples("howdah explain", "howdah explain resnet"))
@job_argument()
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(job_id: str | None, profile: str, as_json: bool) -> None:
    """Say why JOB_ID waits, why it failed, and what was started again."""
    found = look(*choose_job(job_id, profile))
    if as_json:
        click.echo(to_json(as_object(found)))
        return
    for line in lines(found):
        click.echo(line)


def lines(explanation: Explanation) -> Iterator[str]:
    """Yield all sentences of the explanation."""
    state = styled_state(explanation.report.state)
    yield f"{explanation.report.id}  {explanation.report.name}  {state}"
    yield from describe_waits(explanation)
    yield from _failure(explanation)
    if explanation.moments or len(explanation.failures) > 1:
        yield _("what happened:")
        yield from (
            f"  {_clock(event.time)} {text}" for event in _event_sentences(explanation) if (text := event_line(event))
        )
    if explanation.accounting:
        yield _("from the cluster's accounting:")
        yield from (f"  {line}" for line in columns([_account(task) for task in explanation.accounting]))
    if (
        not explanation.report.state.ended
        and not explanation.missing
        and explanation.view.tasks
        and not explanation.after
    ):
        yield from _describe_running(explanation)


def _event_sentences(explanation: Explanation) -> list[Event]:
    """Return the events to show, oldest first. An end that caused a restart is shown together with the restart."""
    told_with_restart = {event.time for event in explanation.moments if isinstance(event, (GangRestarted, Stopping))}
    ends = [event for event in explanation.failures if event.time not in told_with_restart]
    return sorted([*explanation.moments, *ends], key=lambda event: event.time)


def describe_waits(explanation: Explanation) -> Iterator[str]:
    """Yield the containers for which the job waits, and why; nothing if it waits for none."""
    for role, count in explanation.missing.items():
        yield _("{role} waits for {count} more containers", role=role, count=count)
    for role, before in explanation.after.items():
        yield _("{role} begins when {before} ended well", role=role, before=", ".join(before))
    if not explanation.view.tasks and not explanation.report.state.ended and not explanation.pending_reasons:
        yield translate_stored(explanation.report.diagnostics) or _("it waits for its master's container")
    yield from (f"  {translate_stored(each.sentence)}" for each in explanation.pending_reasons)


def _failure(explanation: Explanation) -> Iterator[str]:
    outcome = explanation.view.outcome
    ended = explanation.report.state
    if not ended.ended or ended is State.SUCCEEDED:
        return
    said = outcome.diagnostics if outcome else explanation.report.diagnostics
    yield _("why: {reason}", reason=translate_stored(said or "?"))
    first = explanation.first
    if first is None:
        return
    task, node, exit = first
    if task is not None:
        yield _("first: {task} on {node}: {exit}", task=task, node=node or "?", exit=translate_stored(exit))
    yield from (f"    {readable(line.encode())}" for line in exit.lines)
    if text := advice(exit.cause):
        yield _("what to do: {advice}", advice=translate_stored(text))


def _describe_running(explanation: Explanation) -> Iterator[str]:
    if explanation.view.ends_as is not None:
        yield _("the job is ending")
        return
    out = [
        f"{id_}: {translate_stored(task.straggler)}" for id_, task in explanation.view.tasks.items() if task.straggler
    ]
    yield _("all programs run; the job waits for nothing")
    yield from (f"  {line}" for line in out)


def _account(task: AccountedTask) -> tuple[str, ...]:
    exit = _("signal {signal}", signal=task.signal) if task.signal else _("exit code {code}", code=task.code)
    memory = f"{task.memory_mib:.0f} MiB" if task.memory_mib else ""
    return task.task, task.node, task.state, exit, f"{task.elapsed_s:.0f} s", memory


def _clock(moment: float) -> str:
    return time.strftime("%m-%d %H:%M:%S", time.localtime(moment))


def as_object(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation for `--json`."""
    first = explanation.first
    return {
        "id": explanation.report.id,
        "state": explanation.report.state.value,
        "missing": explanation.missing,
        "after": {role: list(before) for role, before in explanation.after.items()},
        "waiting": [
            {"kind": each.kind, **each.facts, "text": translate_stored(each.sentence)}
            for each in explanation.pending_reasons
        ],
        "diagnostics": explanation.view.outcome.diagnostics
        if explanation.view.outcome
        else explanation.report.diagnostics,
        "failure": first and {"task": str(first[0] or ""), "node": first[1], "exit": encode(first[2])},
        "advice": translate_stored(advice(first[2].cause)) if first else "",
        "accounting": [encode(task) for task in explanation.accounting],
        "story": [_event_record(event) for event in _event_sentences(explanation)],
    }


def _event_record(event: Event) -> dict[str, Any]:
    return {"time": event.time, "kind": type(event).__name__, "text": event_line(event)}
