"""TensorFlow for XLearning's and HBox's programs: TF_CONFIG, and three variables that are older."""

from __future__ import annotations

import json

from howdah.compat.xlearning.frameworks import WORKER, XLearning
from howdah.frameworks.tensorflow import EVALUATOR, TensorFlow, addresses
from howdah.spec import TaskId, World


class XlTensorFlowSingle(XLearning):
    """Programs without a cluster: with one, TensorFlow would wait for it."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        return _named(task)


class XlTensorFlow(XLearning):
    """TF_CONFIG as TensorFlow 2 reads it, and the three variables that TensorFlow 1 programs read."""

    native = TensorFlow()

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        cluster = self.cluster(world)
        named = _named(task)
        if len(world.members_of(WORKER)) + len(world.members_of("ps")) + len(world.members_of(EVALUATOR)) == 1:
            return named
        config = {"cluster": cluster, "task": {"type": task.role, "index": task.index}}
        text = _json(cluster)
        return {**named, "TF_CLUSTER_DEF": text, "TN_CLUSTER_DEF": text, "TF_CONFIG": _json(config)}

    def cluster(self, world: World) -> dict[str, list[str]]:
        """Return the addresses of the roles that TensorFlow is to know, workers first."""
        everybody = addresses(world)
        return {role: everybody[role] for role in (WORKER, "ps") if role in everybody}


class XlTensorFlowStrategy(XlTensorFlow):
    """TensorFlow's distribution strategies, for which the evaluator is in the cluster, too."""

    def cluster(self, world: World) -> dict[str, list[str]]:
        evaluators = [member.address for member in world.members_of(EVALUATOR)]
        return {**super().cluster(world), **({EVALUATOR: evaluators} if evaluators else {})}


class XlTensor2Tensor(XlTensorFlow):
    """Tensor2Tensor, whose workers are masters. They are renamed task by task, not in the text, which a host's name
    could contain."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        told = super().extra_variables(world, task)
        if "TF_CONFIG" not in told:
            return told
        cluster = {"master" if role == WORKER else role: those for role, those in self.cluster(world).items()}
        who = {"type": "master" if task.role == WORKER else task.role, "index": task.index}
        return {**told, "TF_CONFIG": _json({"cluster": cluster, "task": who, "environment": "cloud"})}


def _named(task: TaskId) -> dict[str, str]:
    """Return role and index, under both of their names."""
    told = {"ROLE": task.role, "INDEX": str(task.index)}
    return {f"{prefix}_{name}": value for prefix in ("TF", "TN") for name, value in told.items()}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
