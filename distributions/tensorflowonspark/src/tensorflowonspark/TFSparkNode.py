"""A node of a cluster: what it knows, and the function that runs on it."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflowonspark import TFManager, TFNode, node_environment

logger = logging.getLogger(__name__)
_TOGETHER = ("chief", "master", "worker")


class TFNodeContext:
    """What a node's function knows of its node and of the cluster."""

    def __init__(
        self,
        executor_id: int = 0,
        job_name: str = "",
        task_index: int = 0,
        cluster_spec: Mapping[str, Sequence[str]] = {},
        defaultFS: str = "file://",
        working_dir: str = ".",
        mgr: Any = None,
        tmp_socket: Any = None,
    ) -> None:
        self.worker_num = self.executor_id = executor_id
        self.job_name, self.task_index, self.cluster_spec = job_name, task_index, cluster_spec
        self.num_workers = sum(len(nodes) for role, nodes in cluster_spec.items() if role in _TOGETHER)
        self.defaultFS, self.working_dir, self.mgr, self.tmp_socket = defaultFS, working_dir, mgr, tmp_socket

    def absolute_path(self, path: str) -> str:
        """Return a path with its scheme: TFNode.hdfs_path."""
        return TFNode.hdfs_path(self, path)

    def start_cluster_server(self, num_gpus: int = 1, rdma: bool = False) -> Any:
        """Refuse: this was for TensorFlow 1."""
        return TFNode.start_cluster_server(self, num_gpus, rdma)

    def export_saved_model(self, sess: Any, export_dir: str, tag_set: Any, signatures: Any) -> Any:
        """Refuse: this was for TensorFlow 1."""
        return TFNode.export_saved_model(sess, export_dir, tag_set, signatures)

    def get_data_feed(
        self,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> TFNode.DataFeed:
        """Return the rows that Spark brings to this node."""
        return TFNode.DataFeed(self.mgr, train_mode, qname_in, qname_out, input_mapping)

    def release_port(self) -> None:
        """Free the port that was reserved for this node."""
        TFNode.release_port(self)


class TFSparkNode:
    """What the processes of a node have in common."""

    mgr: Any = None
    cluster_id: Any = None


def run_on_node(
    context: Any,
    fn: Callable[[Any, Any], Any],
    tf_args: Any,
    roles: Sequence[str],
    default_fs: str,
    sets_tf_config: bool,
) -> None:
    """Call the user's function on a node of howdah's. `context` is a howdah.spark.NodeContext, `roles` has the
    cluster's roles in the order of the nodes' numbers."""
    spec = {role: [member.address for member in context.peers.of(role)] for role in dict.fromkeys(roles)}
    number = [*(index for index, role in enumerate(roles) if role == context.role)][context.index]
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    if sets_tf_config and spec.keys() & {"chief", "master"}:
        task = {"type": context.role, "index": context.index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task, "environment": "cloud"})
    node_environment.set_class_path()
    node_environment.write_executor_id(number)
    TFSparkNode.cluster_id = context.cluster
    TFSparkNode.mgr = TFManager.NodeManager(lambda qname: context.feed(queue="" if qname == "input" else qname))
    ctx = TFNodeContext(number, context.role, context.index, spec, default_fs, os.getcwd(), TFSparkNode.mgr)
    if isinstance(tf_args, list):
        sys.argv = tf_args
    fn(tf_args, ctx)
