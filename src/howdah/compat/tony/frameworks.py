"""The variables that TonY's task executor gave a program, in TonY's spelling, over the framework's own variables.

`tony` is for programs that do not know of each other (standalone, FCFS, single-node mode); the others add the variables
of TonY's runtime of that name. TonY's chief is `chief`, or worker:0 if there is no such job type.
"""

from __future__ import annotations

from howdah.frameworks import with_failure_defaults
from howdah.frameworks.mxnet import MXNet
from howdah.frameworks.pytorch import PyTorch
from howdah.frameworks.tensorflow import addresses, compact
from howdah.spec import JobSpec, TaskId, World

EVALUATOR, TENSORBOARD = "evaluator", "tensorboard"
SINGLE = ("driver", "notebook", "preprocess")


class TonyFramework:
    """Adds the variables that identify the task of a program, and the port for its TensorBoard."""

    hold_ports = False

    def expand(self, job: JobSpec) -> JobSpec:
        """Leave `tracked` and `on_failure` as the roles have them."""
        return with_failure_defaults(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the task's variables. SESSION_ID and ATTEMPT_NUMBER count the restarts of the task, or of its gang,
        from 0."""
        again = str(world.restarts)
        variables = {
            "JOB_NAME": task.role,
            "TASK_INDEX": str(task.index),
            "JOB_ID": world.job_id,
            "APPID": world.job_id,
            "SESSION_ID": again,
            "ATTEMPT_NUMBER": again,
            **({"NUM_AM_RETRIES": again} if world.restarts else {}),
        }
        if is_chief(world, task):
            variables["IS_CHIEF"] = "true"
        ports = world.member(task).ports
        if task.role in SINGLE and len(world.members) == 1:
            variables["TB_PORT"] = str(ports["main"])
        elif "tensorboard" in ports and (task.role == TENSORBOARD or is_chief(world, task)):
            variables["TB_PORT"] = str(ports["tensorboard"])
        return variables


class TonyTensorFlow(TonyFramework):
    """Adds CLUSTER_SPEC with every role, and TF_CONFIG without tensorboard; only the evaluator's own TF_CONFIG has the
    evaluator."""

    # TensorFlow's gRPC server sets SO_REUSEADDR.
    hold_ports = True

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        found = addresses(world)
        left_out = {TENSORBOARD} if task.role == EVALUATOR else {TENSORBOARD, EVALUATOR}
        cluster = {role: found[role] for role in found if role not in left_out}
        return {
            **super().environment(world, task),
            "CLUSTER_SPEC": compact(found),
            "TF_CONFIG": compact({"cluster": cluster, "task": {"type": task.role, "index": task.index}}),
        }


class TonyPyTorch(TonyFramework):
    """Adds INIT_METHOD, RANK and WORLD, and the variables that torch itself reads, which TonY left out."""

    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        return PyTorch().expand(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        group = PyTorch().environment(world, task)
        return {**super().environment(world, task), **group, "WORLD": group["WORLD_SIZE"]}


class TonyMXNet(TonyFramework):
    """Adds the variables of ps-lite: scheduler, server, worker."""

    hold_ports = MXNet.hold_ports

    def expand(self, job: JobSpec) -> JobSpec:
        return MXNet().expand(job)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        return {**super().environment(world, task), **MXNet().environment(world, task)}


def is_chief(world: World, task: TaskId) -> bool:
    """Return whether the task is a chief: every `chief` is one; if there is none, worker:0 is."""
    return task.role == "chief" or (task == TaskId("worker", 0) and not world.members_of("chief"))
