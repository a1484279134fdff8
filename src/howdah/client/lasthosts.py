"""The hosts on which a job of the same name last ended well: what it left there may still be of use.

No record is kept for it: the engine knows the jobs, and their event logs where they ran.
"""

from __future__ import annotations

from dataclasses import replace

from howdah.client.follow import Follower
from howdah.engines import Engine
from howdah.spec import JobSpec, Role, State
from howdah.spec.view import JobView


def near_the_last(job: JobSpec, engine: Engine) -> JobSpec:
    """`job`, whose tasks prefer those hosts; as it is when none of its name has ended well."""
    ended = [each for each in engine.describe() if each.name == job.name and each.state is State.SUCCEEDED]
    if not ended:
        return job
    last = max(ended, key=lambda each: each.submitted)
    *_, update = Follower(engine, last.id).updates(wait_s=0.0)
    return replace(job, roles={name: _preferring(job, name, update.view) for name in job.roles})


def _preferring(job: JobSpec, name: str, view: JobView) -> Role:
    role = job.roles[name]
    hosts = dict.fromkeys(task.node or task.host for task in view.tasks.values() if task.id.role == name)
    known = tuple(host for host in hosts if host and host not in role.placement.prefer)
    return replace(role, placement=replace(role.placement, prefer=(*role.placement.prefer, *known)))
