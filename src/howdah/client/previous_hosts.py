"""Prefers the hosts on which a job of the same name last succeeded: files that it left there may be used again.

Nothing is stored for this: the engine knows the jobs, and their event logs tell where they ran.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from howdah.client.recorded_events import recorded_events
from howdah.engines import Engine
from howdah.errors import HowdahError
from howdah.spec import JobReport, JobSpec, Role, State
from howdah.spec.fold import fold_recorded
from howdah.spec.view import JobView


def prefer_previous_hosts(job: JobSpec, engine: Engine) -> JobSpec:
    """Return `job` with the hosts preferred for its tasks; unchanged when no job of its name has succeeded."""
    for report in sorted(engine.describe(), key=lambda one: one.submitted, reverse=True):
        # An engine may report late that a job has ended; the job's log shows it.
        if report.name == job.name and (report.state is State.SUCCEEDED or not report.state.ended):
            view = _recorded_view(report)
            if view.outcome is not None and view.outcome.state is State.SUCCEEDED:
                return replace(job, roles={name: _role_with_hosts(job, name, view) for name in job.roles})
    return job


def _recorded_view(report: JobReport) -> JobView:
    view = JobView(id=report.id)
    with contextlib.suppress(HowdahError):  # its directory may be gone
        fold_recorded(recorded_events(report), view)
    return view


def _role_with_hosts(job: JobSpec, name: str, view: JobView) -> Role:
    role = job.roles[name]
    hosts = dict.fromkeys(task.node or task.host for task in view.tasks.values() if task.id.role == name)
    known = tuple(host for host in hosts if host and host not in role.placement.prefer)
    return replace(role, placement=replace(role.placement, prefer=(*role.placement.prefer, *known)))
