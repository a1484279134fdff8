"""Which programs may be started a second time: only those that the job file allows."""

from __future__ import annotations

from howdah.spec import JobSpec, Role

FREE_CAUSES = ("node", "preempted", "withdrawn")
"""Causes of failures that use up no retry (see `Role.causes`): only the cluster is to blame for them."""


def may_start_again(job: JobSpec, role_name: str) -> bool:
    """Return whether a program of this role may be started again after it has started once. A job allows it by
    `retries`, by a role with `spares` or `min_replicas`, or by `causes` that use up no retry; a role allows it for its
    own tasks by `on_failure`. Without any of these a program starts once, whatever happens to its node."""
    if job.retries or restarts_alone(job.roles[role_name]):
        return True
    return any(
        role.spares or role.min_replicas or not set(role.causes.values()).isdisjoint(FREE_CAUSES)
        for role in job.roles.values()
    )


def restarts_alone(role: Role) -> bool:
    """Return whether a task of the role, or the role, restarts while the other roles go on."""
    return role.on_failure in ("restart", "restart-role") and role.restarts > 0
