"""Describes the cluster to TensorFlow 1 and 2 in TF_CONFIG, and in the variables of TonY's and XLearning's programs.

TF_CONFIG contains only the roles that TensorFlow itself knows (chief, master, worker, ps), because TensorFlow 2 refuses
any other name. An evaluator gets TF_CONFIG, too, but is not in the cluster: it reads checkpoints and talks to no other
task.
"""

from __future__ import annotations

import json

from howdah.frameworks import with_failure_defaults
from howdah.spec import JobSpec, TaskId, World

CLUSTER_ROLES = ("chief", "master", "worker", "ps")
EVALUATOR = "evaluator"
_WATCHING = {EVALUATOR, "tensorboard"}
# These roles serve or watch until the others have ended.
_SERVING = {"ps", *_WATCHING}


class TensorFlow:
    """Runs parameter servers, MultiWorkerMirrored, estimators and hand-written clusters."""

    # TensorFlow's gRPC server sets SO_REUSEADDR (and SO_REUSEPORT with TF_GRPC_REUSE_PORT=true).
    hold_ports = True

    def expand(self, job: JobSpec) -> JobSpec:
        """Set what the roles leave open: the job does not wait for a ps, an evaluator and a tensorboard, and the last
        two may fail.

        With a chief beside parameter servers the job does not wait for the workers either: under TensorFlow 2's
        coordinator they serve for ever, as a ps does. `tracked: true` on the role overrides this.
        """
        untracked = _SERVING | {"worker"} if {"chief", "ps"} <= set(job.roles) else _SERVING
        return with_failure_defaults(job, untracked=untracked, ignored=_WATCHING)

    def environment(self, world: World, task: TaskId) -> dict[str, str]:
        """Return the variables. A task that is alone gets no cluster, because with one TensorFlow expects a distributed
        job."""
        index = str(task.index)
        variables = {"TF_ROLE": task.role, "TF_INDEX": index, "JOB_NAME": task.role, "TASK_INDEX": index}
        if sum(len(world.members_of(role)) for role in (*CLUSTER_ROLES, EVALUATOR)) == 1:
            return variables
        found = addresses(world)
        cluster = {role: found[role] for role in found if role in CLUSTER_ROLES}
        variables["CLUSTER_SPEC"] = compact(found)
        variables["LOCAL_ADDRESS"] = world.member(task).address
        if task.role in CLUSTER_ROLES or task.role == EVALUATOR:
            variables["TF_CLUSTER_DEF"] = compact(cluster)
            variables["TF_CONFIG"] = compact({"cluster": cluster, "task": {"type": task.role, "index": task.index}})
        return variables


def addresses(world: World) -> dict[str, list[str]]:
    """Return `{"worker": ["host:port", …], …}` of every role, by the main ports."""
    roles: dict[str, list[str]] = {}
    for member in world.members:
        roles.setdefault(member.task.role, []).append(member.address)
    return roles


def compact(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))
