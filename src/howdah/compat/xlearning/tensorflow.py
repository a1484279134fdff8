"""TensorFlow for XLearning's and HBox's programs: TF_CONFIG, and three variables that are older."""

from __future__ import annotations

from howdah.compat.xlearning.frameworks import WORKER, XLearning
from howdah.frameworks.tensorflow import EVALUATOR, TensorFlow, addresses, compact
from howdah.spec import TaskId, World


class XlTensorFlowSingle(XLearning):
    """Programs without a cluster: with one, TensorFlow would wait for it."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        return _role_and_index(task)


class XlTensorFlow(XLearning):
    """TF_CONFIG as TensorFlow 2 reads it, and the three variables that TensorFlow 1 programs read."""

    native = TensorFlow()

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        named, cluster = _role_and_index(task), self.cluster(world)
        if sum(len(world.members_of(role)) for role in (WORKER, "ps", EVALUATOR)) == 1:
            return named
        config = {"cluster": cluster, "task": {"type": task.role, "index": task.index}}
        text = compact(cluster)
        return {**named, "TF_CLUSTER_DEF": text, "TN_CLUSTER_DEF": text, "TF_CONFIG": compact(config)}

    def cluster(self, world: World) -> dict[str, list[str]]:
        """Return the addresses of the roles for TensorFlow, workers first."""
        found = addresses(world)
        return {role: found[role] for role in (WORKER, "ps") if role in found}


class XlTensorFlowStrategy(XlTensorFlow):
    """TensorFlow's distribution strategies, for which the evaluator is in the cluster, too."""

    def cluster(self, world: World) -> dict[str, list[str]]:
        evaluators = [member.address for member in world.members_of(EVALUATOR)]
        return {**super().cluster(world), **({EVALUATOR: evaluators} if evaluators else {})}


class XlTensor2Tensor(XlTensorFlow):
    """Tensor2Tensor, which calls workers masters. Roles are renamed before the text is made, because the name of a host
    could contain the name of a role."""

    def extra_variables(self, world: World, task: TaskId) -> dict[str, str]:
        variables = super().extra_variables(world, task)
        if "TF_CONFIG" in variables:
            renamed = {WORKER: "master"}
            cluster = {renamed.get(role, role): found for role, found in self.cluster(world).items()}
            own = {"type": renamed.get(task.role, task.role), "index": task.index}
            variables["TF_CONFIG"] = compact({"cluster": cluster, "task": own, "environment": "cloud"})
        return variables


def _role_and_index(task: TaskId) -> dict[str, str]:
    """Return role and index, under both of their names."""
    values = {"ROLE": task.role, "INDEX": str(task.index)}
    return {f"{prefix}_{name}": value for prefix in ("TF", "TN") for name, value in values.items()}
