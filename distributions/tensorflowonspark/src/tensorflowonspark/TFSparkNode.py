"""A node of a cluster: what it knows, and the function that runs on it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.spark.node_context import FEED_PORT
from tensorflowonspark import TFManager, TFNode, node_environment, reservation

logger = logging.getLogger(__name__)
_TOGETHER = ("chief", "master", "worker")
PORT = "TENSORFLOW_PORT"
"""The variable of executors that fixes the port of their nodes."""
GRACE = "grace"
"""The role of the task, beside the driver, that runs as long as an evaluator may run after the others."""
_GRACE_POLL_S = 0.5


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
    in_cluster: bool,
    port: int = 0,
    grace_file: str = "",
) -> None:
    """Call the user's function on a node of howdah's. `context` is a howdah.spark.NodeContext, `roles` has the
    cluster's roles in the order of the nodes' numbers. A node that is not `in_cluster` may know of no other one; it
    gets no TF_CONFIG, and no error if it has no GPUs. `port` is that of all nodes; 0: each has one of its own. The task
    of the role GRACE is no node: it waits for the `grace_file`.

    Raises:
        Exception: two nodes of one host would have the same port, or this one is to have another than all.
    """
    if context.role == GRACE:
        over = Path(grace_file)
        while over.parent.exists() and not over.exists():
            time.sleep(_GRACE_POLL_S)
        return
    members = {role: _at_port(context.peers.of(role), port) for role in dict.fromkeys(roles)}
    spec = {role: [member.address for member in members[role]] for role in members}
    if in_cluster:
        _check_port(spec, port)
    number = [*(index for index, role in enumerate(roles) if role == context.role)][context.index]
    together = sum(map(len, members.values())) == len(roles)
    own = members[context.role][context.index if together else 0]
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if context.role == "ps":
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(given)
    else:
        others = [each for role in members if role != "ps" for each in members[role] if each.host == own.host]
        index = others.index(own) if together else number
        node_environment.assign_gpus(tf_args, given, index, required=in_cluster)
    if in_cluster:
        _set_tf_config(spec, context.role, context.index)
    node_environment.set_class_path()
    node_environment.write_executor_id(number)
    TFSparkNode.cluster_id = context.cluster
    TFSparkNode.mgr = TFManager.NodeManager(lambda qname: context.feed(queue=_feed_name(qname)))
    if FEED_PORT in own.ports:
        TFSparkNode.mgr.feed("input")  # rows can come while `fn` imports TensorFlow and makes its model
    ctx = TFNodeContext(number, context.role, context.index, spec, default_fs, os.getcwd(), TFSparkNode.mgr)
    ctx.num_workers = sum(role in _TOGETHER for role in roles)
    _call(fn, tf_args, ctx)


def run(
    fn: Callable[[Any, Any], Any],
    tf_args: Any,
    cluster_meta: Mapping[str, Any],
    tensorboard: bool,
    log_dir: str | None,
    queues: Sequence[str],
    background: bool,
) -> Callable[[Iterable[int]], None]:
    """Return the function for `mapPartitions` that registers a node, whose number is the partition's last row, with the
    reservation server of `cluster_meta`, and calls `fn(tf_args, ctx)` when all nodes have registered. `TFCluster.run`
    does without it: its nodes are tasks of a howdah job, which have TensorBoard and are fed.

    Raises:
        Exception: `background` or `tensorboard` is asked for.
    """
    if background or tensorboard:
        raise Exception("only TFCluster.run feeds nodes in the background, and shows TensorBoard")

    def run_node(numbers: Iterable[int]) -> None:
        *_, number = numbers
        node_environment.assign_gpus(tf_args, _gpus_of_spark(), 0)
        role, index = _role_of(number, cluster_meta["cluster_template"])
        node_environment.write_executor_id(number)
        node_environment.set_class_path()
        TFSparkNode.mgr = TFManager.start(secrets.token_bytes(16), queues)
        TFSparkNode.mgr.set("state", "running")
        TFSparkNode.cluster_id = cluster_meta["id"]
        nodes, held = _register(cluster_meta["server_addr"], number, role, index)
        if held is not None and cluster_meta.get("release_port", True):
            held.close()
            held = None
        spec = _get_cluster_spec(sorted(nodes, key=lambda node: int(node["executor_id"])))
        _set_tf_config(spec, role, index)
        node_environment.assign_gpus(tf_args, _gpus_of_spark(), _index_on_host(spec, role, index))
        file_system, directory = cluster_meta["default_fs"], cluster_meta["working_dir"]
        _call(fn, tf_args, TFNodeContext(number, role, index, spec, file_system, directory, TFSparkNode.mgr, held))

    return run_node


def train(
    cluster_info: Sequence[Mapping[str, Any]],
    cluster_meta: Mapping[str, Any],
    feed_timeout: float = 600,
    qname: str = "input",
) -> Callable[[Iterable[Any]], list[int]]:
    """Return the function for `foreachPartition` that brings rows to a node of a cluster, whose `cluster_info` it is;
    the function returns how many were taken. `TFCluster.train` also feeds a partition again whose node was restarted.

    Raises:
        Exception: Spark feeds no node of this cluster.
    """
    programs = _fed_programs(cluster_info, feed_timeout, qname)
    from howdah.spark.partition_functions import train_rows

    return train_rows(programs)


def inference(
    cluster_info: Sequence[Mapping[str, Any]], feed_timeout: float = 600, qname: str = "input"
) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function for `mapPartitions` that brings rows to a node, and yields its result of each row.

    Raises:
        Exception: Spark feeds no node of this cluster.
    """
    programs = _fed_programs(cluster_info, feed_timeout, qname)
    from howdah.spark.partition_functions import infer_rows

    return infer_rows(programs)


def shutdown(
    cluster_info: Sequence[Mapping[str, Any]],
    grace_secs: float = 0,
    queues: Sequence[str] = ["input"],
) -> Callable[[Iterable[Any]], list[bool]]:
    """Return the function for `foreachPartition` that tells the nodes that no more rows will come to these
    queues, and waits `grace_secs` seconds. `TFCluster.shutdown` also waits for the nodes.

    Raises:
        Exception: Spark feeds no node of this cluster.
    """
    programs = _fed_programs(cluster_info, None, "input")
    from howdah.spark.partition_functions import end_rows

    return end_rows(programs, grace_secs, [_feed_name(qname) for qname in queues])


def _feed_name(qname: str) -> str:
    return "" if qname == "input" else qname


def _fed_programs(cluster_info: Sequence[Mapping[str, Any]], feed_timeout: float | None, qname: str) -> Any:
    from howdah.spark.feeding import carry_modules  # nodes have no pyspark

    programs = next((node["programs"] for node in cluster_info if node.get("programs")), None)
    if programs is None or not programs.ports:
        raise Exception(
            "Spark feeds no node of this cluster: only TFCluster.run with InputMode.SPARK starts such nodes"
        )
    carry_modules()
    return programs.of_queue(_feed_name(qname), feed_timeout)


def _call(fn: Callable[[Any, Any], Any], tf_args: Any, ctx: TFNodeContext) -> None:
    if isinstance(tf_args, list):
        sys.argv = tf_args
    fn(tf_args, ctx)


def _set_tf_config(spec: Mapping[str, Sequence[str]], role: str, index: int) -> None:
    """Tell TensorFlow who the nodes are, if one of them leads."""
    if spec.keys() & {"chief", "master"}:
        task = {"type": role, "index": index}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": spec, "task": task, "environment": "cloud"})


def _at_port(members: Sequence[Any], port: int) -> list[Any]:
    return [replace(member, ports={**member.ports, "main": port}) if port else member for member in members]


def _check_port(spec: Mapping[str, Sequence[str]], port: int) -> None:
    wanted = node_environment.inherited_port(PORT)
    if wanted and wanted != str(port):
        raise Exception(f"{PORT} is {wanted} here and {port or 'not set'} in the driver: set spark.executorEnv.{PORT}")
    found = [address for addresses in spec.values() for address in addresses]
    twice = next((address for address in found if found.count(address) > 1), "")
    if twice and spec.keys() & {"chief", "master"}:  # else they may do without the port
        raise Exception(f"two nodes would have the address {twice}: with {PORT} each node needs a host of its own")


def _role_of(number: int, template: Mapping[str, Sequence[int]]) -> tuple[str, int]:
    """Return the role of a node, and its index there."""
    return next(
        ((role, list(numbers).index(number)) for role, numbers in template.items() if number in numbers),
        ("default", -1),
    )


def _register(address: tuple[str, int], number: int, role: str, index: int) -> tuple[list[Any], socket.socket | None]:
    """Register a node unless it is registered already, as after a retry; return all nodes, once they have registered,
    and the socket that holds its port, if there is one."""
    host, held = node_environment.get_ip_address(), None
    client = reservation.Client(address)
    try:
        known = [node for node in client.get_reservations() if (node["host"], node["executor_id"]) == (host, number)]
        if not known:
            port = int(node_environment.inherited_port(PORT) or "0")
            if not port:
                held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind(("", 0))
                port = held.getsockname()[1]
            node = {"executor_id": number, "host": host, "job_name": role, "task_index": index, "port": port}
            client.register({**node, "tb_pid": 0, "tb_port": 0})
        return client.await_reservations(), held
    finally:
        client.close()


def _get_cluster_spec(sorted_cluster_info: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the addresses of all nodes by role, from what they have registered, sorted by their numbers.

    Raises:
        Exception: two nodes have the same number.
    """
    numbers = [node["executor_id"] for node in sorted_cluster_info]
    if len(set(numbers)) < len(numbers):
        raise Exception(f"two nodes have registered with the same number: {numbers}")
    spec: dict[str, list[str]] = {}
    for node in sorted_cluster_info:
        spec.setdefault(node["job_name"], []).append(f"{node['host']}:{node['port']}")
    return spec


def _index_on_host(spec: Mapping[str, Sequence[str]], role: str, index: int) -> int:
    """Return a node's number among those of its host."""
    own = spec[role][index]
    return [each for nodes in spec.values() for each in nodes if _host(each) == _host(own)].index(own)


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _has_spark_resource_api() -> bool:
    """Return whether Spark can give GPUs to tasks: that of pyspark 3 and newer can."""
    import pyspark

    return int(pyspark.__version__.partition(".")[0]) >= 3


def _gpus_of_spark() -> list[str]:
    """Return the GPUs that Spark has given to this task."""
    found = node_environment.gpus_of_task() if _has_spark_resource_api() else None
    return found or []
