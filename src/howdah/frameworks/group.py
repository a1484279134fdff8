"""Orders the tasks of a group by rank, and separates them from side roles and helpers.

Ranks go chief (or master) first, then worker, then other roles in the job's order. Side roles run beside the group
and helpers for it: both come last in the world, so that a member's rank in the group is its rank in the world.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from howdah.frameworks import with_failure_defaults
from howdah.spec import JobSpec, Member, Resources, Role, World
from howdah.spec.task import SIDE_ROLES

# The roles that get no data by default: see Input.roles.
HOLD_NO_DATA = ("ps", "evaluator")
"""Roles whose tasks hold no data, whatever the framework."""
_FIRST = ("chief", "master", "worker")
# Numerical libraries start a thread for each core of the node. Each takes memory, and helpers do not need them.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def grouped(job: JobSpec, helpers: Sequence[str] = ()) -> JobSpec:
    """Put the roles of `job` in order and fill in what they leave open: the job does not wait for side roles and
    `helpers`."""
    order = sorted(job.roles, key=lambda role: _order(role, helpers))
    return with_failure_defaults(job, untracked=(*SIDE_ROLES, *helpers), ignored=SIDE_ROLES, order=order)


def group(world: World, helpers: Sequence[str] = ()) -> tuple[Member, ...]:
    """Return the members of the group, by rank; `world` is in the order that `grouped` gave its roles."""
    beside = sum(len(world.members_of(role)) for role in (*SIDE_ROLES, *helpers))
    return world.members[: len(world.members) - beside]


def with_helper(job: JobSpec, name: str, command: tuple[str, ...], memory_mib: int) -> JobSpec:
    """Add one task to `job`, which starts with the group and gets no data; an existing role of that name stays.

    `command` begins with `python3`: it runs in the job's own environment.
    """
    if name in job.roles:
        return job
    first = job.roles[min(job.roles, key=lambda role: _order(role, ()))]
    helper = Role(command, resources=Resources(memory_mib), env=_ONE_THREAD, after=first.after)
    return without_data(dataclasses.replace(job, roles={**job.roles, name: helper}), name)


def without_data(job: JobSpec, *names: str) -> JobSpec:
    """Keep inputs that are for all roles away from the roles `names`."""
    if not any(name in job.roles for name in names):
        return job
    readers = tuple(role for role in job.roles if role not in (*names, *HOLD_NO_DATA))
    inputs = tuple(each if each.roles else dataclasses.replace(each, roles=readers) for each in job.inputs)
    return dataclasses.replace(job, inputs=inputs)


def with_gpu_variable(job: JobSpec, name: str, value: Callable[[int], str]) -> JobSpec:
    """Set the variable `name`, derived from the number of GPUs, in roles with several GPUs. A variable that the role
    itself sets stays."""
    roles = {
        role_name: dataclasses.replace(role, env={name: value(role.resources.gpus), **role.env})
        if role.resources.gpus > 1
        else role
        for role_name, role in job.roles.items()
    }
    return dataclasses.replace(job, roles=roles)


def _order(role: str, helpers: Sequence[str]) -> int:
    """Return the sort key of a role; sorting is stable, so that equal keys keep the job's order."""
    if role in _FIRST and role not in helpers:
        return _FIRST.index(role)
    return len(_FIRST) + (1 if role in helpers else 2 if role in SIDE_ROLES else 0)
