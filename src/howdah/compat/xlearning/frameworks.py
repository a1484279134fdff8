"""The variables of XLearning's and HBox's programs, in their spelling, over the framework's own variables.

Both counted a chief and an evaluator of another size among the workers. So the variables describe the world as these
systems had it: the chief is worker 0, and the workers come after it.
"""

from __future__ import annotations

from dataclasses import replace

from howdah.frameworks import Framework, with_failure_defaults
from howdah.frameworks.generic import Generic
from howdah.frameworks.pytorch import PyTorch
from howdah.frameworks.tensorflow import EVALUATOR
from howdah.spec import JobSpec, TaskId, World

CHIEF, WORKER = "chief", "worker"
_SERVING = ("ps", "scheduler", EVALUATOR, "tensorboard")
_WATCHING = (EVALUATOR, "tensorboard")


class XLearning:
    """Adds the variables of every container, for tasks that do not know of each other. Subclasses add those of the
    framework `native` and of `extra_variables`, made for XLearning's world."""

    native: Framework = Generic()

    @property
    def hold_ports(self) -> bool:
        """Return whether ports are held, as the native framework says."""
        return self.native.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        """Make the job not wait for servers, TensorBoard and the like."""
        return with_failure_defaults(job, untracked=_SERVING, ignored=_WATCHING)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return INDEX and the log directory, which every program had, and the framework's variables."""
        world, task = xlearning_world(world), _renamed(task, bool(world.members_of(CHIEF)))
        return {
            "INDEX": str(task.index),
            "HBOX_CONTAINER_LOG_DIR": "<LOG_DIR>",
            "XLEARNING_CONTAINER_LOG_DIR": "<LOG_DIR>",
            **self.native.environment(world, task),
            **self.extra_variables(world, task),
        }

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        """Return variables that the native framework doesn't have."""
        return {}


class XlPyTorch(XLearning):
    """Adds the process group's variables, two of them also in small letters."""

    native = PyTorch()

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        native = self.native.environment(world, task)
        return {name.lower(): native[name] for name in ("MASTER_ADDR", "MASTER_PORT") if name in native}


class NativeRoles(XLearning):
    """Leaves it to the native framework which roles exist, and for which of them the job waits."""

    def expand(self, job: JobSpec) -> JobSpec:
        return self.native.expand(job)


def xlearning_world(world: World) -> World:
    """Return the world as XLearning had it: the chief is worker 0."""
    if not world.members_of(CHIEF):
        return world
    members = [replace(member, task=_renamed(member.task, chief=True)) for member in world.members]
    roles = list(dict.fromkeys(member.task.role for member in members))
    members.sort(key=lambda member: (roles.index(member.task.role), member.task.index))
    return replace(world, members=tuple(members))


def _renamed(task: TaskId, chief: bool) -> TaskId:
    if task.role == CHIEF:
        return TaskId(WORKER, 0)
    return TaskId(WORKER, task.index + 1) if task.role == WORKER and chief else task
