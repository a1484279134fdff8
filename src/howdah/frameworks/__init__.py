"""A `Framework` adds the roles that a training framework needs to a job, and sets the variables of its tasks.

A framework is pure. It runs where a job is planned and in the master, which alone knows the whole world; it opens
nothing and imports no library. The executor knows processes, not frameworks.

A task's rank is its place in the world: roles in the job's order, then by index. A framework that wants another
order puts the roles in that order in `expand`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Protocol, cast

from howdah.errors import SpecError
from howdah.spec import JobSpec, Role, TaskId, World, plugins

__all__ = [
    "BUILT_IN",
    "GANG_KEY",
    "Framework",
    "FrameworkWithFiles",
    "LaunchingFramework",
    "command_of",
    "files_of",
    "fills_commands",
    "find",
    "key_variable",
    "names",
    "port_variable",
    "with_failure_defaults",
    "world_variables",
]

_GROUP = "howdah.frameworks"
BUILT_IN = plugins.BUILT_IN[_GROUP]
"""howdah's own frameworks: `module:class` by name."""
GANG_KEY = "HOWDAH_GANG_KEY"
"""The usual `key_variable`: only the tasks of a job have the key."""
# Linux runs no program that has a single variable as long as this (MAX_ARG_STRLEN).
_MAX_VARIABLE = 128 * 1024


class Framework(Protocol):
    """One training framework, stateless."""

    hold_ports: bool
    """Whether the framework's servers set SO_REUSEADDR or SO_REUSEPORT before they bind. Then a port stays reserved
    until the server has it; otherwise the port is released right before the program starts."""

    def expand(self, job: JobSpec) -> JobSpec:
        """Add the roles that the framework needs, and fill in what the user left open. It is called before staging.

        Afterwards `tracked` and `on_failure` of every role are set. Expanding twice changes nothing.
        """
        ...

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the framework's own variables of `task`, beside `world_variables`; `world` is complete."""
        ...


class FrameworkWithFiles(Framework, Protocol):
    """A framework whose programs read files that only the whole world determines, such as a list of machines."""

    def files(self, world: World, task: TaskId) -> dict[str, str]:
        """Return texts by file name; the files are in the working directory of `task` when its program starts."""
        ...


def files_of(framework: Framework, world: World, task: TaskId) -> dict[str, str]:
    """Return the files of a framework, if it has any."""
    return cast(FrameworkWithFiles, framework).files(world, task) if hasattr(framework, "files") else {}


class LaunchingFramework(Framework, Protocol):
    """A framework that starts programs by a command of its own."""

    key_variable: str
    """The variable in which tasks get a key that nobody else has; "" for a framework that needs none."""

    def command(self, task: TaskId, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Return the command that the container of `task` runs; in the end it runs the role's `command`."""
        ...


def command_of(framework: Framework, task: TaskId, command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Return the framework's command, or the role's own if the framework has none."""
    return cast(LaunchingFramework, framework).command(task, command) if hasattr(framework, "command") else command


def key_variable(framework: Framework) -> str:
    """Return the variable in which the tasks get their key; "" if they get none."""
    return str(getattr(framework, "key_variable", ""))


def fills_commands(name: str) -> bool:
    """Return whether the framework of this name gives its own command to roles that have none."""
    return name in names(name) and bool(getattr(find(name), "fills_commands", False))


def find(name: str) -> Framework:
    """Return the framework of this name.

    Raises:
        SpecError: there is none; names those that there are.
    """
    if target := plugins.find(_GROUP, name):
        return cast(Framework, plugins.load(target)())
    from howdah.spec.validation import nearest  # masters do not need this module

    known = sorted(plugins.names(_GROUP))
    raise SpecError.at("framework", f"is {name!r}, known are {', '.join(known)}", nearest(name, known))


def names(wanted: str = "") -> Collection[str]:
    """Return all known names. Installed packages are searched only if `wanted` is not one of howdah's own."""
    return list(BUILT_IN) if wanted in BUILT_IN else sorted(plugins.names(_GROUP))


def with_failure_defaults(
    job: JobSpec,
    untracked: Collection[str] = (),
    ignored: Collection[str] = (),
    order: Collection[str] | None = None,
) -> JobSpec:
    """Fill in what the roles of `job` leave open: the job does not wait for roles in `untracked`, and ignores failures
    of those in `ignored`. `order` names all roles, in the order of their ranks."""

    def role(name: str, role: Role) -> Role:
        return dataclasses.replace(
            role,
            tracked=name not in untracked if role.tracked is None else role.tracked,
            on_failure=role.on_failure or ("ignore" if name in ignored else "fail"),
        )

    return dataclasses.replace(job, roles={name: role(name, job.roles[name]) for name in order or job.roles})


def world_variables(
    world: World, task: TaskId, *, job_id: str, job_name: str, attempt: int, replicas: int = 0
) -> dict[str, str]:
    """Return the HOWDAH_* variables that every task gets, whatever its framework.

    `replicas` is the number of tasks of its role if the world does not show them all: a task without a gang is alone in
    its world. HOWDAH_WORLD is left out if the gang is so large (some 2,000 tasks) that no program could start with it.
    """
    member = world.member(task)
    variables = {
        "HOWDAH_JOB_ID": job_id,
        "HOWDAH_JOB_NAME": job_name,
        "HOWDAH_TASK": str(task),
        "HOWDAH_ROLE": task.role,
        "HOWDAH_INDEX": str(task.index),
        "HOWDAH_REPLICAS": str(replicas or len(world.members_of(task.role))),
        "HOWDAH_RANK": str(world.rank(task)),
        "HOWDAH_WORLD_SIZE": str(len(world.members)),
        "HOWDAH_EPOCH": str(world.epoch),
        "HOWDAH_ATTEMPT": str(attempt),
        "HOWDAH_PORT": str(member.ports["main"]),
        **{port_variable(name): str(port) for name, port in member.ports.items() if name != "main"},
    }
    return variables if len(world.text) >= _MAX_VARIABLE - 16 else {**variables, "HOWDAH_WORLD": world.text}


def port_variable(name: str) -> str:
    """Return HOWDAH_PORT_TENSORBOARD for the port named `tensorboard`."""
    return "HOWDAH_PORT_" + name.upper().replace("-", "_")
