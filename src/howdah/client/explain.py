"""Explains a job: its events tell what happened and how the master reacted, its engine tells why it waits."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from howdah.client.follow import Update, fetch_update
from howdah.client.recorded_files import find_submitted_job
from howdah.engines import AccountedTask, Engine, PendingReason
from howdah.errors import HowdahError
from howdah.spec import Exit, JobReport, JobSpec, State, TaskId
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
from howdah.spec.values import dataclass
from howdah.spec.view import JobView

MAX_COURSE_EVENTS = 40
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
    """The known facts about a job's course."""

    report: JobReport
    """The engine's report."""
    view: JobView
    """The job as it is now."""
    missing: dict[str, int] = field(default_factory=dict)
    """The number of containers for which the job still waits, by role."""
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By role that waits, the roles that must end before its containers are asked for."""
    pending_reasons: list[PendingReason] = field(default_factory=list)
    """Why the engine has not granted the missing containers."""
    moments: Sequence[Event] = ()
    """The events that changed the job's course, in order."""
    failures: list[Ended] = field(default_factory=list)
    """The failures that counted as an attempt, in order."""
    accounting: list[AccountedTask] = field(default_factory=list)
    """The records of the cluster's accounting about the job, once it has ended."""

    @property
    def first(self) -> tuple[TaskId | None, str, Exit] | None:
        """Return the task, node and exit that decided the failure; None if no task made the job fail."""
        outcome = self.view.outcome
        if outcome is None or outcome.exit is None or outcome.state is State.SUCCEEDED:
            return None
        task = self.view.tasks.get(outcome.first) if outcome.first else None
        return outcome.first, task.node or task.host if task else "", outcome.exit


def explain(engine: Engine, job_id: str) -> Explanation:
    """Explain the job as it is now.

    Raises:
        JobNotFound: there is no such job. EngineUnavailable: its engine does not answer.
    """
    return explain_update(engine, fetch_update(engine, job_id))


def explain_update(engine: Engine, update: Update) -> Explanation:
    """Explain the job of a first `update`.

    Raises:
        EngineUnavailable: its engine does not answer.
    """
    report, view, events = update.report, update.view, update.events
    if view.outcome is not None and not report.state.ended:  # the engine notices the end a little later than the log
        report = replace(report, state=view.outcome.state, diagnostics=view.outcome.diagnostics)
    elif view.tasks and not report.state.ended:  # for an engine, a job runs as soon as its master runs
        report = replace(report, state=view.state)
    moments = [event for event in events if isinstance(event, _COURSE_EVENTS)][-MAX_COURSE_EVENTS:]
    failures = [event for event in events if isinstance(event, Ended) and event.counts and not event.exit.ok]
    found = Explanation(report, view, moments=moments, failures=failures)
    if report.state.ended:
        with contextlib.suppress(HowdahError):  # the event log alone says how the job ended
            found.accounting.extend(engine.accounting(report.id))
        return found
    job = view.job or find_submitted_job(report)
    found.missing.update(_missing_containers(view, events))
    if job is not None and view.tasks:
        found.after.update(_roles_started_after(job, events))
    if found.missing or not view.tasks:
        found.pending_reasons.extend(
            engine.pending_reasons(report.id, elastic_roles(job, events) if job else None, found.missing)
        )
    if found.missing and not found.pending_reasons and view.waiting is not None:  # from the master's event
        found.pending_reasons.extend(PendingReason("said", {"text": text}) for text in view.waiting.reasons)
    return found


def elastic_roles(job: JobSpec, events: Iterable[Event]) -> JobSpec:
    """Return the job with the memory that it asks for now: `resources.growth` adds memory with each restart."""
    restarts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, GangRestarted):
            restarts.update({task.role for task in event.tasks} or set(job.roles))
    return replace(job, roles={name: role.grown(restarts[name]) for name, role in job.roles.items()})


def _missing_containers(view: JobView, events: Iterable[Event]) -> dict[str, int]:
    asked = {event.role for event in events if isinstance(event, Asked)}
    waiting = (id_.role for id_, task in view.tasks.items() if task.phase == "asked" and not task.state.ended)
    return dict(Counter(role for role in waiting if role in asked))


def _roles_started_after(job: JobSpec, events: Iterable[Event]) -> dict[str, tuple[str, ...]]:
    """Return the roles whose containers were not asked for yet, each with the roles that must end before."""
    asked = {event.role for event in events if isinstance(event, Asked)}
    return {name: role.after for name, role in job.roles.items() if role.after and name not in asked}
