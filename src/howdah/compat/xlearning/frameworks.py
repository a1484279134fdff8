"""What XLearning's and HBox's containers told a program, in their spelling, over the framework's own variables.

The rule: a chief and an evaluator of another size are workers in their count. So variables are made for the world as
they knew it: the chief is worker 0, and the workers come after it.
"""

from __future__ import annotations

from dataclasses import replace

from howdah.frameworks import Framework, decided
from howdah.frameworks.generic import Generic
from howdah.frameworks.pytorch import PyTorch
from howdah.frameworks.tensorflow import EVALUATOR
from howdah.spec import JobSpec, TaskId, World

CHIEF, WORKER = "chief", "worker"
_SERVING = ("ps", "scheduler", EVALUATOR, "tensorboard")
_WATCHING = (EVALUATOR, "tensorboard")


class XLearning:
    """Tasks that know nothing of each other. What others add is `native` and `own`, of the world as it was theirs."""

    native: Framework = Generic()

    @property
    def hold_ports(self) -> bool:
        """As the framework itself."""
        return self.native.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        """Servers and who only watches are not waited for."""
        return decided(job, untracked=_SERVING, ignored=_WATCHING)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """INDEX and the log directory, which every program had, and what its framework adds."""
        theirs, me = as_theirs(world), _renamed(task, bool(world.of(CHIEF)))
        return {
            "INDEX": str(me.index),
            "HBOX_CONTAINER_LOG_DIR": "<LOG_DIR>",
            "XLEARNING_CONTAINER_LOG_DIR": "<LOG_DIR>",
            **self.native.environment(theirs, me),
            **self.own(theirs, me),
        }

    def own(self, world: World, task: TaskId) -> dict[str, str]:
        """Variables that the native framework doesn't have."""
        return {}


class XlPyTorch(XLearning):
    """The process group's variables, and two of them in small letters."""

    native = PyTorch()

    def own(self, world: World, task: TaskId) -> dict[str, str]:
        native = self.native.environment(world, task)
        return {name.lower(): native[name] for name in ("MASTER_ADDR", "MASTER_PORT") if name in native}


def as_theirs(world: World) -> World:
    """The chief is worker 0."""
    if not world.of(CHIEF):
        return world
    members = [replace(member, task=_renamed(member.task, chief=True)) for member in world.members]
    roles = list(dict.fromkeys(member.task.role for member in members))
    members.sort(key=lambda member: (roles.index(member.task.role), member.task.index))
    return replace(world, members=tuple(members))


def _renamed(task: TaskId, chief: bool) -> TaskId:
    if task.role == CHIEF:
        return TaskId(WORKER, 0)
    return TaskId(WORKER, task.index + 1) if task.role == WORKER and chief else task
