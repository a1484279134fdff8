"""`howdah explain`: why a job waits, why it failed, what was started again and when, in a few sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from howdah.cli.i18n import _, translate_stored
from howdah.cli.terminal import columns, sentence
from howdah.client.clusters import engine_of
from howdah.client.explain import Explanation
from howdah.client.explain import explain as look
from howdah.engines import AccountedTask, PendingReason
from howdah.logs.output_text import readable
from howdah.spec import State
from howdah.spec.codec import encode, to_json
from howdah.spec.events import Event, GangRestarted, Stopping

SHOWN_NODES = 6
REASONS = {
    "queue-stopped": "queue {queue} is stopped: it grants nothing",
    "queue-limit": "queue {queue} uses {used} of at most {limit}; {needs} more are wanted",
    "label-limit": ("queue {queue} uses {used} of at most {limit} on nodes labelled {label}; {needs} more are wanted"),
    "queue-pending": "{count} jobs wait in queue {queue}",
    "user-limit": "{user} uses {used} of at most {limit} in queue {queue}; {needs} more are wanted",
    "label": "{role}: no node that runs has the label {label}",
    "constraint": ("{role} is placed as {constraint} says (placement.constraint): a node with room may not satisfy it"),
    "nodes-out": "nodes that take no containers: {nodes}",
    "too-small": "{role} needs {needs}; too small for it: {nodes}",
    "full": "{role} needs {needs}; occupied: {nodes}",
    "room": "{role}: there is room on {nodes}; the scheduler gives it in its turn",
}
"""The sentence of each kind of pending reason; its facts are the values."""
_NO_FAULT_OF_JOB = "nothing is wrong with the job: set `retries`, and a `checkpoint` to lose little"
ADVICE = {
    "memory": "raise resources.memory, or let it grow with resources.growth",
    "lost": _NO_FAULT_OF_JOB,
    "withdrawn": _NO_FAULT_OF_JOB,
    "gpu": "nothing is wrong with the job: have the node's GPU looked at",
    "preempted": "nothing is wrong with the job: set `retries`, or take a queue with a guarantee",
    "silent": "look whether the node still lives, and into the executor's log",
    "localise": "look whether the inputs are there and may be read, and at the node's disks",
    "port": "let howdah reserve the ports (roles.NAME.ports) instead of fixed numbers",
    "start": "look whether the command and its Python are on the nodes (environment)",
    "stalled": "howdah stacks --last shows where the programs were",
}
"""What helps against a failure, by its cause."""


@click.command()
@click.argument("job_id")
@click.option("--profile", default="", help="A profile of your configuration.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(job_id: str, profile: str, as_json: bool) -> None:
    """Say why JOB_ID waits, why it failed, and what was started again."""
    found = look(engine_of(job_id, profile), job_id)
    if as_json:
        click.echo(to_json(as_object(found)))
        return
    for line in lines(found):
        click.echo(line)


def lines(explanation: Explanation) -> Iterator[str]:
    """Yield everything that there is to say."""
    state = explanation.report.state.value
    yield f"{explanation.report.id}  {explanation.report.name}  {state}"
    yield from _describe_waits(explanation)
    yield from _failure(explanation)
    if explanation.moments or len(explanation.failures) > 1:
        yield _("what happened:")
        yield from (
            f"  {_clock(event.time)} {text}" for event in _event_sentences(explanation) if (text := sentence(event))
        )
    if explanation.accounting:
        yield _("what the cluster's accounting has:")
        yield from (f"  {line}" for line in columns([_account(task) for task in explanation.accounting]))
    if (
        not explanation.report.state.ended
        and not explanation.missing
        and explanation.view.tasks
        and not explanation.after
    ):
        yield from _describe_running(explanation)


def _event_sentences(explanation: Explanation) -> list[Event]:
    """Return the events to tell, oldest first; an end that caused a restart is told with the restart."""
    told_with_restart = {event.time for event in explanation.moments if isinstance(event, (GangRestarted, Stopping))}
    ends = [event for event in explanation.failures if event.time not in told_with_restart]
    return sorted([*explanation.moments, *ends], key=lambda event: event.time)


def _describe_waits(explanation: Explanation) -> Iterator[str]:
    for role, count in explanation.missing.items():
        yield _("{role} waits for {count} more containers", role=role, count=count)
    for role, before in explanation.after.items():
        yield _("{role} begins when {before} ended well", role=role, before=", ".join(before))
    if not explanation.view.tasks and not explanation.report.state.ended and not explanation.pending_reasons:
        yield translate_stored(explanation.report.diagnostics) or _("it waits for its master's container")
    yield from (f"  {reason(each)}" for each in explanation.pending_reasons)


def reason(pending: PendingReason) -> str:
    """Return a pending reason as a sentence."""
    facts = dict(pending.facts)
    if pending.kind in ("too-small", "full", "room"):
        facts["needs"] = f"{facts['count']} × ({facts['needs']})"
    if "nodes" in facts:
        facts["nodes"] = _names(facts["nodes"], "state" if pending.kind == "nodes-out" else "has")
    template = REASONS.get(pending.kind)
    return _(template, **facts) if template else str(facts.get("text", pending.kind))


def _names(nodes: Sequence[Mapping[str, str]], fact: str) -> str:
    """Return nodes with a fact, alike ones together: `node2, node3 (32 GiB memory), node4 (8 GiB memory)`."""
    alike: dict[str, list[str]] = {}
    for node in nodes:
        alike.setdefault(node[fact], []).append(node["node"])
    parts = []
    for has, names in alike.items():
        more = f" +{len(names) - SHOWN_NODES}" if len(names) > SHOWN_NODES else ""
        parts.append(f"{', '.join(names[:SHOWN_NODES])}{more} ({has})")
    return "; ".join(parts)


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
        yield _("what to do: {advice}", advice=text)


def advice(cause: str) -> str:
    """Return what helps against a failure of this kind; "" if only its output can say."""
    return _(ADVICE[cause]) if cause in ADVICE else ""


def _describe_running(explanation: Explanation) -> Iterator[str]:
    if explanation.view.ends_as is not None:
        yield _("the job is ending")
        return
    out = [f"{id_}: {task.straggler}" for id_, task in explanation.view.tasks.items() if task.straggler]
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
        "waiting": [{"kind": each.kind, **each.facts, "text": reason(each)} for each in explanation.pending_reasons],
        "diagnostics": explanation.view.outcome.diagnostics
        if explanation.view.outcome
        else explanation.report.diagnostics,
        "failure": first and {"task": str(first[0] or ""), "node": first[1], "exit": encode(first[2])},
        "advice": advice(first[2].cause) if first else "",
        "accounting": [encode(task) for task in explanation.accounting],
        "story": [_event_record(event) for event in _event_sentences(explanation)],
    }


def _event_record(event: Event) -> dict[str, Any]:
    return {"time": event.time, "kind": type(event).__name__, "text": sentence(event)}
