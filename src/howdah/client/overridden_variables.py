"""Finds variables of a job's `env` that do not reach its programs, because howdah sets them for each task."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.frameworks import find, world_variables
from howdah.spec import JobSpec, Member, TaskId, World
from howdah.spec.message import Sentence, message


def overridden_variables(job: JobSpec) -> Iterator[Sentence]:
    """Yield a sentence for each variable that the job sets to no effect."""
    if not job.env and not any(role.env for role in job.roles.values()):
        return
    framework = find(job.framework)
    expanded = framework.expand(job)
    tasks = [TaskId(name, index) for name, role in expanded.roles.items() for index in range(min(role.replicas, 2))]
    members = (Member(task, "node", dict.fromkeys(("main", *expanded.roles[task.role].ports), 1)) for task in tasks)
    world = World(1, tuple(members), "job")
    for task in tasks:
        if task.index or task.role not in job.roles:
            continue
        known = world_variables(world, task, job_id="job", job_name=job.name, attempt=1)
        known.update(framework.environment(world, task))
        for place, env in (("env", job.env), (f"roles.{task.role}.env", job.roles[task.role].env)):
            for name in env:
                if name in known:
                    yield message(
                        "{place}.{name} has no effect: each task gets its own from howdah", place=place, name=name
                    )
