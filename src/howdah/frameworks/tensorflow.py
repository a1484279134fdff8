"""Describes the cluster to TensorFlow 1 and 2 in TF_CONFIG, and in the variables of TonY's and XLearning's programs.

TF_CONFIG holds the roles TensorFlow itself knows (chief, master, worker, ps); TensorFlow 2 refuses any other name.
An evaluator gets one too, but is not in the cluster: it reads checkpoints and talks to nobody.
"""

from __future__ import annotations

import json

from howdah.frameworks import decided
from howdah.spec import JobSpec, TaskId, World

CLUSTER_ROLES = ("chief", "master", "worker", "ps")
EVALUATOR = "evaluator"
# These roles serve or watch until the others have ended.
_SERVING = {"ps", EVALUATOR, "tensorboard"}
_WATCHING = {EVALUATOR, "tensorboard"}


class TensorFlow:
    """Runs parameter servers, MultiWorkerMirrored, estimators and hand-written clusters."""

    # TensorFlow's gRPC server sets SO_REUSEADDR (and SO_REUSEPORT with TF_GRPC_REUSE_PORT=true).
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Decide the roles: a ps, an evaluator and a tensorboard are not waited for, and the last two may fail.

        With a chief beside parameter servers the workers aren't waited for either: under TensorFlow 2's
        coordinator they serve for ever, as a ps does. `tracked: true` on the role says otherwise.
        """
        untracked = _SERVING | {"worker"} if {"chief", "ps"} <= set(job.roles) else _SERVING
        return decided(job, untracked=untracked, ignored=_WATCHING)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Set the variables; a task without others gets no cluster, or TensorFlow would expect a distributed job."""
        index = str(task.index)
        variables = {"TF_ROLE": task.role, "TF_INDEX": index, "JOB_NAME": task.role, "TASK_INDEX": index}
        everybody = addresses(world)
        if len([m for m in world.members if m.task.role in (*CLUSTER_ROLES, EVALUATOR)]) == 1:
            return variables
        cluster = {role: those for role, those in everybody.items() if role in CLUSTER_ROLES}
        variables["CLUSTER_SPEC"] = _json(everybody)
        variables["LOCAL_ADDRESS"] = world.member(task).address
        if task.role in CLUSTER_ROLES or task.role == EVALUATOR:
            variables["TF_CLUSTER_DEF"] = _json(cluster)
            variables["TF_CONFIG"] = _json({"cluster": cluster, "task": {"type": task.role, "index": task.index}})
        return variables


def addresses(world: World) -> dict[str, list[str]]:
    """Return `{"worker": ["host:port", …], …}` of every role, by the main ports."""
    roles: dict[str, list[str]] = {}
    for member in world.members:
        roles.setdefault(member.task.role, []).append(member.address)
    return roles


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
