"""The variables of programs under Submarine, in its spelling, over the framework's own variables.

Submarine's first worker is the role `master`, which `_TASK_TYPE` calls PRIMARY_WORKER. Without parameter servers
Submarine gave TensorFlow no variables; here the first worker is then the chief that TensorFlow 2 needs.
"""

from __future__ import annotations

import json

from howdah.frameworks import Framework, with_failure_defaults
from howdah.frameworks.generic import Generic
from howdah.frameworks.pytorch import PyTorch
from howdah.frameworks.tensorflow import TensorFlow, compact
from howdah.spec import JobSpec, TaskId, World

MASTER = "master"
_SERVING = ("ps", "tensorboard")


class SubmarineFramework:
    """Adds the variables of every container, for programs that do not know of each other."""

    native: Framework = Generic()

    @property
    def hold_ports(self) -> bool:
        """Return whether ports are held, as the native framework says."""
        return self.native.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        """Make the job not wait for parameter servers and TensorBoard."""
        return self.native.expand(with_failure_defaults(job, untracked=_SERVING, ignored=("tensorboard",)))

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return _TASK_TYPE and _TASK_INDEX, which every container had, and the variables of the native framework."""
        kind = "PRIMARY_WORKER" if task.role == MASTER else task.role.upper()
        return {"_TASK_TYPE": kind, "_TASK_INDEX": str(task.index), **self.native.environment(world, task)}


class SubmarineTensorFlow(SubmarineFramework):
    """Adds TF_CONFIG with its `environment`."""

    native = TensorFlow()

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        variables = super().environment(world, task)
        if "TF_CONFIG" in variables:
            config = json.loads(variables["TF_CONFIG"])
            renamed = {} if world.members_of("ps") else {MASTER: "chief"}
            config["cluster"] = {renamed.get(role, role): found for role, found in config["cluster"].items()}
            config["task"]["type"] = renamed.get(task.role, task.role)
            variables["TF_CONFIG"] = compact({**config, "environment": "cloud"})
        return variables


class SubmarinePyTorch(SubmarineFramework):
    """Adds the variables of the process group, which Submarine left to the programs."""

    native = PyTorch()
