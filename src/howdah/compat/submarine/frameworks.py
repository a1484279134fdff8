"""What Submarine's containers told a program, in its spelling, over the framework's own variables.

The rule: its first worker is the role `master`, which `_TASK_TYPE` calls PRIMARY_WORKER. Without parameter servers it
told TensorFlow nothing; there the first worker is the chief that TensorFlow 2 wants.
"""

from __future__ import annotations

import json

from howdah.frameworks import Framework, decided
from howdah.frameworks.generic import Generic
from howdah.frameworks.pytorch import PyTorch
from howdah.frameworks.tensorflow import TensorFlow
from howdah.spec import JobSpec, TaskId, World

MASTER = "master"
_SERVING = ("ps", "tensorboard")


class SubmarineFramework:
    """Containers that know nothing of each other."""

    native: Framework = Generic()

    @property
    def hold_ports(self) -> bool:
        """As the framework itself."""
        return self.native.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        """Servers and who only watches are not waited for."""
        return self.native.expand(decided(job, untracked=_SERVING, ignored=("tensorboard",)))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """_TASK_TYPE and _TASK_INDEX, which every container had, and what its framework adds."""
        kind = "PRIMARY_WORKER" if task.role == MASTER else task.role.upper()
        return {"_TASK_TYPE": kind, "_TASK_INDEX": str(task.index), **self.native.environment(world, task)}


class SubmarineTensorFlow(SubmarineFramework):
    """TF_CONFIG with its `environment`."""

    native = TensorFlow()

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        told = super().environment(world, task)
        if "TF_CONFIG" not in told:
            return told
        config = json.loads(told["TF_CONFIG"])
        if not world.of("ps"):
            config["cluster"] = {_chief(role): those for role, those in config["cluster"].items()}
            config["task"]["type"] = _chief(task.role)
        text = json.dumps({**config, "environment": "cloud"}, separators=(",", ":"))
        return {**told, "TF_CONFIG": text}


class SubmarinePyTorch(SubmarineFramework):
    """The process group, which it left to the programs."""

    native = PyTorch()


def _chief(role: str) -> str:
    return "chief" if role == MASTER else role
