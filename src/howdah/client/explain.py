"""Why a job is where it is: from its events what happened and what was done about it, from its engine why it waits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from howdah.client.follow import fetch_update
from howdah.engines import Engine, PendingReason
from howdah.errors import HowdahError
from howdah.spec import Exit, JobReport, JobSpec, Role, StagedJob, State, TaskId
from howdah.spec.codec import decode
from howdah.spec.events import (
    AllocationLost,
    Asked,
    CancelRequested,
    Ended,
    Event,
    GangReleased,
    GangRestarted,
    LossAnnounced,
    MasterEnded,
    StacksTaken,
    Stalled,
    Stopping,
    TimeLost,
    TookOver,
)
from howdah.spec.view import JobView
from howdah.storage.factory import filesystem

MOST_MOMENTS = 40
_COURSE_EVENTS = (
    GangReleased,
    GangRestarted,
    AllocationLost,
    MasterEnded,
    TookOver,
    TimeLost,
    LossAnnounced,
    Stalled,
    StacksTaken,
    CancelRequested,
    Stopping,
)


@dataclass(frozen=True)
class Explanation:
    """`missing` are containers by role that are still waited for, `after` what other roles wait for; `moments` are the
    events that changed the job's course, `failures` the ends that counted, both in order."""

    report: JobReport
    view: JobView
    missing: dict[str, int] = field(default_factory=dict)
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pending_reasons: list[PendingReason] = field(default_factory=list)
    moments: Sequence[Event] = ()
    failures: list[Ended] = field(default_factory=list)

    @property
    def first(self) -> tuple[TaskId | None, str, Exit] | None:
        """Task, node and end that decided the failure; None where the job did not fail by a task."""
        outcome = self.view.outcome
        if outcome is None or outcome.exit is None or outcome.state is State.SUCCEEDED:
            return None
        task = self.view.tasks.get(outcome.first) if outcome.first else None
        return outcome.first, task.node or task.host if task else "", outcome.exit


def explain(engine: Engine, job_id: str) -> Explanation:
    """Look at the job as it is now.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    update = fetch_update(engine, job_id)
    report, view, events = update.report, update.view, update.events
    moments = [event for event in events if isinstance(event, _COURSE_EVENTS)][-MOST_MOMENTS:]
    failures = [event for event in events if isinstance(event, Ended) and event.counts and not event.exit.ok]
    found = Explanation(report, view, moments=moments, failures=failures)
    if report.state.ended:
        return found
    job = view.job or _submitted(report)
    found.missing.update(_missing(view, events))
    if job is not None and view.tasks:
        found.after.update(_after(job, events))
    if found.missing or not view.tasks:
        found.pending_reasons.extend(
            engine.pending_reasons(job_id, elastic_roles(job, events) if job else None, found.missing)
        )
    return found


def elastic_roles(job: JobSpec, events: Iterable[Event]) -> JobSpec:
    """The job with the memory that is asked for now: `resources.growth` adds to it with each restart."""
    again: Counter[str] = Counter()
    for event in events:
        if isinstance(event, GangRestarted):
            again.update({task.role for task in event.tasks} or set(job.roles))
    roles = {name: _grown(role, again[name]) for name, role in job.roles.items()}
    return replace(job, roles=roles)


def _grown(role: Role, restarts: int) -> Role:
    memory = role.resources.memory_mib
    more = int(memory * role.resources.growth * restarts)
    return replace(role, resources=replace(role.resources, memory_mib=memory + more)) if more else role


def _missing(view: JobView, events: Iterable[Event]) -> dict[str, int]:
    asked = {event.role for event in events if isinstance(event, Asked)}
    waiting = (id_.role for id_, task in view.tasks.items() if task.phase == "asked" and not task.state.ended)
    return dict(Counter(role for role in waiting if role in asked))


def _after(job: JobSpec, events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Roles for which nothing was asked yet, and those that must end before."""
    asked = {event.role for event in events if isinstance(event, Asked)}
    return {name: role.after for name, role in job.roles.items() if role.after and name not in asked}


def _submitted(report: JobReport) -> JobSpec | None:
    """The job as it was submitted, where we may read it."""
    uri = f"{report.directory}/job.json"
    try:
        return decode(StagedJob, json.loads(filesystem(uri, report.conf_dir).read_bytes(uri))).job
    except (HowdahError, ValueError):
        return None
