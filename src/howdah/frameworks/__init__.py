"""What a training framework wants to be told, and what it makes of a job.

The rule: a framework is pure. It runs where a job is planned and in the master, which alone knows the whole world;
it opens nothing and imports no library. The executor knows processes, not frameworks.

A task's rank is its place in the world: roles in the job's order, then by index. A framework that wants another
order puts the roles in that order in `expand`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Collection
from difflib import get_close_matches
from typing import Protocol, cast

from howdah.errors import SpecError
from howdah.spec import JobSpec, Role, TaskId, World

# Looked up by name first: reading every installed package's entry points takes tens of milliseconds.
BUILT_IN = {
    "generic": "howdah.frameworks.generic:Generic",
    "tensorflow": "howdah.frameworks.tensorflow:TensorFlow",
    "pytorch": "howdah.frameworks.pytorch:PyTorch",
}
_GROUP = "howdah.frameworks"
# Linux runs no program that has a single variable as long as this (MAX_ARG_STRLEN).
_LONGEST_VARIABLE = 128 * 1024


class Framework(Protocol):
    """One per framework, stateless.

    `hold_ports`: the framework's servers set SO_REUSEADDR or SO_REUSEPORT before they bind, so the reserved port can
    stay reserved until they have it. Otherwise it is let go right before the program starts.
    """

    hold_ports: bool

    def expand(self, job: JobSpec) -> JobSpec:
        """Called once, before staging: add the roles the framework needs, and decide what the user left open.

        Afterwards `tracked` and `on_failure` of every role are set. Expanding twice changes nothing.
        """
        ...

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """The framework's own variables of `task`, beside `world_variables`; `world` is complete."""
        ...


def find(name: str) -> Framework:
    """The framework of that name.

    Raises:
        SpecError: there is none; says which there are.
    """
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    installed = _installed()
    if name in installed:
        return _load(installed[name])
    known = sorted({*BUILT_IN, *installed})
    nearest = next(iter(get_close_matches(name, known, 1)), None)
    raise SpecError.at("framework", f"is {name!r}, known are {', '.join(known)}", nearest)


def names(wanted: str = "") -> Collection[str]:
    """All known names; installed packages are only looked through when `wanted` isn't one of ours."""
    return list(BUILT_IN) if wanted in BUILT_IN else sorted({*BUILT_IN, *_installed()})


def decided(
    job: JobSpec,
    untracked: Collection[str] = (),
    ignored: Collection[str] = (),
    order: Collection[str] | None = None,
) -> JobSpec:
    """`job` with what its roles left open filled in: roles in `untracked` are not waited for, failures of those in
    `ignored` don't matter. `order` names roles in the order of their ranks; it must name all of them."""

    def role(name: str, role: Role) -> Role:
        return dataclasses.replace(
            role,
            tracked=name not in untracked if role.tracked is None else role.tracked,
            on_failure=role.on_failure or ("ignore" if name in ignored else "fail"),
        )

    return dataclasses.replace(job, roles={name: role(name, job.roles[name]) for name in order or job.roles})


def world_variables(world: World, task: TaskId, *, job_id: str, job_name: str, attempt: int) -> dict[str, str]:
    """The HOWDAH_* variables that every task gets, whatever its framework.

    HOWDAH_WORLD is left out of a gang so large that no program could be started with it (some 2,000 tasks).
    """
    member = world.member(task)
    variables = {
        "HOWDAH_JOB_ID": job_id,
        "HOWDAH_JOB_NAME": job_name,
        "HOWDAH_TASK": str(task),
        "HOWDAH_ROLE": task.role,
        "HOWDAH_INDEX": str(task.index),
        "HOWDAH_REPLICAS": str(len(world.of(task.role))),
        "HOWDAH_RANK": str(world.rank(task)),
        "HOWDAH_WORLD_SIZE": str(len(world.members)),
        "HOWDAH_EPOCH": str(world.epoch),
        "HOWDAH_ATTEMPT": str(attempt),
        "HOWDAH_PORT": str(member.ports["main"]),
        **{port_variable(name): str(port) for name, port in member.ports.items() if name != "main"},
    }
    return variables if len(world.text) >= _LONGEST_VARIABLE - 16 else {**variables, "HOWDAH_WORLD": world.text}


def port_variable(name: str) -> str:
    """HOWDAH_PORT_TENSORBOARD for the port named `tensorboard`."""
    return "HOWDAH_PORT_" + name.upper().replace("-", "_")


def _load(path: str) -> Framework:
    module, _, name = path.partition(":")
    return cast(Framework, getattr(importlib.import_module(module), name)())


def _installed() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=_GROUP)}
