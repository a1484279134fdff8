"""Defines the jobs of the simulated cluster, of every kind."""

from __future__ import annotations

import random
from dataclasses import replace

from howdah.spec import Checkpoint, JobSpec, Output, Resources, Role, Timeouts


def job_of(chance: random.Random, more: random.Random) -> JobSpec:
    """Jobs of every kind."""
    policy = chance.choice(("", "", "ignore", "restart", "restart-role"))
    growth = chance.choice((0.0, 0.0, 0.5))
    worker = Role("w", replicas=chance.randrange(1, 5), on_failure=policy, resources=Resources(growth=growth))
    roles = {"ps": Role("p", tracked=False), "worker": worker}
    if chance.random() < 0.25:
        roles = {"prepare": Role("p"), **roles, "worker": replace(worker, after=("prepare",))}
    job = JobSpec(
        roles=roles,
        retries=chance.randrange(4),
        success=chance.choice(("all", "any", "chief", "50%")),
        gang=chance.random() < 0.8,
        outputs=(Output("/out"),) if chance.random() < 0.5 else (),
        timeouts=Timeouts(gang_s=600, hold_s=20, run_s=3000, grace_s=chance.choice((0, 10))),
    )
    return elastic(job, more) if job.gang and more.random() < 0.5 else job


def elastic(job: JobSpec, chance: random.Random) -> JobSpec:
    """Elastic jobs: with spares, or able to run with fewer workers; some grow back."""
    worker = job.roles["worker"]
    worker = replace(worker, replicas=worker.replicas + chance.randrange(3), spares=chance.randrange(3))
    worker = replace(worker, min_replicas=chance.randrange(worker.replicas))
    checkpoint = Checkpoint(path="/checkpoints" if chance.random() < 0.7 else "")
    return replace(job, roles={**job.roles, "worker": worker}, checkpoint=checkpoint)


def stalling(job: JobSpec, luck: random.Random) -> JobSpec:
    """Return the job for the case that its programs hang: then only the settings of its roles end them."""
    policy = luck.choice(("restart", "restart", "fail"))
    roles = {name: replace(role, on_stall=policy) for name, role in job.roles.items()}
    return replace(job, roles=roles, timeouts=replace(job.timeouts, stall_s=luck.choice((5, 40)), run_s=0))
