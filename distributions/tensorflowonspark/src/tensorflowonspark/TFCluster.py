"""Runs a cluster of TensorFlow nodes on Spark's executors. Each cluster is a howdah job (`howdah list`)."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from howdah.errors import HowdahError
from howdah.spark import Cluster
from howdah.spark.application_job import keep_state_in_container
from howdah.spec import Board, Resources, Role, State
from tensorflowonspark import TFSparkNode, node_environment, reservation

logger = logging.getLogger(__name__)

tf_status: dict[str, Any] = {}
"""What went wrong in the cluster that runs. It is cleared when another one starts."""
_DEFAULT_EPOCHS = 10
_STOP_POLL_S, _GRACE_POLL_S = 1.0, 0.2
_LAST_PORT = 65535
_SIDE_ROLES = ("ps", "evaluator")


class InputMode:
    """Where a node's data comes from."""

    TENSORFLOW = 0
    """The node's function reads it."""
    SPARK = 1
    """Spark brings it, by `train` and `inference`."""


class TFCluster:
    """A cluster that `run` has started."""

    sc: Any = None
    defaultFS: str | None = None
    working_dir: str | None = None
    num_executors: int | None = None
    nodeRDD: Any = None
    cluster_id: Any = None
    cluster_info: Any = None
    cluster_meta: Any = None
    input_mode: int | None = None
    queues: Sequence[str] | None = None
    server: Any = None
    grace_file: Path | None = None
    """The file that ends the evaluator's grace; None without an evaluator."""
    job: Cluster
    """The cluster as howdah has it: its id, its page, its end."""

    def train(self, dataRDD: Any, num_epochs: int = 0, feed_timeout: float = 600, qname: str = "input") -> Any:
        """Bring an RDD's rows to the nodes, `num_epochs` times (0: ten times), or those of each RDD of a DStream or
        batch of a streaming DataFrame, whose StreamingQuery is returned. A node that takes nothing for `feed_timeout`
        seconds is an error.

        Raises:
            Exception: a node has failed; it says which, where, and what it printed last.
        """
        self._check_feeding(dataRDD, qname)
        if num_epochs < 0:
            raise AssertionError(f"num_epochs is {num_epochs}, must be at least 0")
        if hasattr(dataRDD, "foreachRDD"):
            dataRDD.foreachRDD(lambda rdd: self._feed(rdd, feed_timeout, qname) and None)
        elif getattr(dataRDD, "isStreaming", False):
            return self.job.feed_stream(dataRDD, lambda frame: self._feed(frame.rdd, feed_timeout, qname))
        else:
            for _ in range(num_epochs or _DEFAULT_EPOCHS):
                self._feed(dataRDD, feed_timeout, qname)
        return None

    def _feed(self, data: Any, feed_timeout: float, qname: str) -> Any:
        try:
            return self.job.train(data, silence_s=feed_timeout, queue="" if qname == "input" else qname)
        except Exception as error:
            tf_status["error"] = str(error)
            raise

    def inference(self, dataRDD: Any, feed_timeout: float = 600, qname: str = "input") -> Any:
        """Return an RDD of the nodes' results, one for each row of `dataRDD`, in the order of a partition's rows."""
        self._check_feeding(dataRDD, qname)
        return self.job.inference(dataRDD, silence_s=feed_timeout, queue="" if qname == "input" else qname)

    def _check_feeding(self, data: Any, qname: str) -> None:
        if self.input_mode != InputMode.SPARK:
            raise AssertionError("Spark brings data with InputMode.SPARK alone")
        if data is None:
            raise AssertionError("dataRDD is None")
        if qname not in (self.queues or ()):
            raise AssertionError(f"unknown queue: {qname}, known are {', '.join(self.queues or ())}")

    def shutdown(self, ssc: Any = None, grace_secs: float = 0, timeout: float = 259200) -> None:
        """End the feed, and return when the nodes' functions have returned. Streaming DataFrames that feed the cluster
        are stopped, when the batch that is on its way has come. With a StreamingContext or StreamingQuery `ssc` the
        feed ends when that has ended, or a node wants no more rows. After `timeout` and `grace_secs` seconds
        (`timeout` -1: never) the cluster is cancelled; what a node does after the feed is waited for without
        `grace_secs`, too.

        Raises:
            Exception: a node has failed, or the time is over.
        """
        start = time.monotonic()
        try:
            with self.job.cancelled_by_interrupt():
                if ssc is not None:
                    self._await_end_of(ssc, timeout)
                end = math.inf if timeout < 0 else start + timeout + grace_secs
                if self.grace_file is not None:
                    self._await_evaluator(self.grace_file, grace_secs, end)
            self.job.shutdown(None if timeout < 0 else round(max(0.0, end - time.monotonic()), 1))
        except Exception as error:
            tf_status["error"] = str(error)
            raise
        finally:
            self.server.stop()

    def _await_evaluator(self, grace_file: Path, grace_secs: float, end: float) -> None:
        """Return when the evaluator has ended, or `grace_secs` seconds after all others have but the ps, or at `end`.
        Then the job may end."""
        nodes = [(node["job_name"], node["task_index"]) for node in self.cluster_info]
        others = [node for node in nodes if node[0] not in _SIDE_ROLES]
        watching = [node for node in nodes if node[0] == "evaluator"]
        for awaited in (others, watching):
            while self.job.outcome is None and time.monotonic() < end and self._go_on(awaited):
                time.sleep(_GRACE_POLL_S)
            end = min(end, time.monotonic() + grace_secs)
        with contextlib.suppress(FileNotFoundError):  # the job has ended
            grace_file.touch()

    def _go_on(self, nodes: Sequence[tuple[str, int]]) -> bool:
        return not all(self.job.task(*node).state.ended for node in nodes)

    def _await_end_of(self, ssc: Any, timeout: float) -> None:
        """Return when `ssc` has ended, or was stopped because the nodes want no more rows. After an error, and after
        `timeout` seconds, the cluster is cancelled."""
        is_context = hasattr(ssc, "awaitTerminationOrTimeout")
        await_end = ssc.awaitTerminationOrTimeout if is_context else ssc.awaitTermination
        start = time.monotonic()
        try:
            while not await_end(_STOP_POLL_S):
                outcome = self.job.outcome
                if self.server.done or outcome is not None:
                    # After a failure the batches that are left fail, too, and Spark waits for them for ten intervals.
                    gracefully = outcome is None or outcome.state is State.SUCCEEDED
                    ssc.stop(**({"stopSparkContext": False, "stopGraceFully": gracefully} if is_context else {}))
                    return
                if 0 <= timeout < time.monotonic() - start:
                    raise TimeoutError(f"{self.job.job_id} goes on after {timeout:g} s")
        except Exception:
            try:
                self.job.check()  # a node that has failed is why the stream has
                raise
            finally:
                if self.job.outcome is None:
                    with contextlib.suppress(Exception):  # what went wrong first is told
                        self.job.cancel()

    def tensorboard_url(self) -> str | None:
        """Return the address of the cluster's TensorBoard; None if it has none."""
        return self.job.tensorboard or None


def run(
    sc: Any,
    map_fun: Callable[[Any, Any], Any],
    tf_args: Any,
    num_executors: int,
    num_ps: int,
    tensorboard: bool = False,
    input_mode: int = InputMode.TENSORFLOW,
    log_dir: str | None = None,
    driver_ps_nodes: bool = False,
    master_node: str | None = None,
    reservation_timeout: float = 600,
    queues: Sequence[str] = ["input", "output", "error"],
    eval_node: bool = False,
    release_port: bool = True,
) -> TFCluster:
    """Start a cluster, and return when the functions of all its nodes run.

    Nodes are numbered in the order ps, `master_node` (one, if it is named), evaluator (one, with `eval_node`), worker.
    `map_fun(tf_args, ctx)` is called on each; if `tf_args` is a list, it is `sys.argv` there. `ctx` is a
    TFSparkNode.TFNodeContext. With `driver_ps_nodes` the ps run beside the driver.

    Raises:
        Exception: not all nodes run within `reservation_timeout` seconds, or one has failed.
    """
    keep_state_in_container(sc, os.environ)  # before the server writes its key
    roles = node_roles(num_executors, num_ps, master_node, eval_node)
    if input_mode == InputMode.SPARK and (driver_ps_nodes or eval_node):
        raise Exception("driver_ps_nodes and eval_node need InputMode.TENSORFLOW")
    tf_status.clear()
    default_fs, port = _default_fs(sc), _port_of_executors(sc, TFSparkNode.PORT)
    board_port = _port_of_executors(sc, "TENSORBOARD_PORT") if tensorboard else 0
    server = reservation.Server(len(roles))
    address = server.start()
    board = Board(path=_uri(log_dir, default_fs), show=True) if tensorboard and log_dir else Board()
    if tensorboard and not log_dir:
        board = Board(local="tensorboard", tasks=f"{next(r for r in roles if r not in _SIDE_ROLES)}:0", show=True)
    grace_file = Path(tempfile.mkdtemp(prefix="tensorflowonspark-"), "over") if eval_node else None
    # The job goes on while a task of its own runs, which ends with the evaluator's grace.
    beside = (*(["ps"] if driver_ps_nodes else []), *([TFSparkNode.GRACE] if eval_node else []))
    try:
        job = Cluster.run(
            sc,
            TFSparkNode.run_on_node,
            [map_fun, tf_args, roles, default_fs, True, port, str(grace_file or "")],
            roles={**_roles(sc, roles), **({TFSparkNode.GRACE: Role(replicas=1)} if eval_node else {})},
            name=getattr(map_fun, "__name__", "tensorflowonspark"),
            fed=[role for role in dict.fromkeys(roles) if role not in _SIDE_ROLES]
            if input_mode == InputMode.SPARK
            else (),
            beside_driver=beside,
            start_limit_s=reservation_timeout,
            board=replace(board, port=board_port) if tensorboard else board,
        )
    except BaseException as error:
        tf_status["error"] = str(error)
        server.stop()
        if grace_file is not None:
            shutil.rmtree(grace_file.parent, ignore_errors=True)
        raise
    cluster = TFCluster()
    cluster.grace_file = grace_file
    cluster.sc, cluster.job, cluster.server, cluster.queues = sc, job, server, list(queues)
    cluster.defaultFS, cluster.working_dir = default_fs, os.getcwd()
    cluster.num_executors, cluster.input_mode, cluster.cluster_id = num_executors, input_mode, job.job_id
    cluster.cluster_meta = {
        "id": job.job_id,
        "cluster_template": {
            role: [n for n, each in enumerate(roles) if each == role] for role in dict.fromkeys(roles)
        },
        "num_executors": num_executors,
        "default_fs": default_fs,
        "working_dir": cluster.working_dir,
        "server_addr": address,
        "release_port": release_port,
    }
    cluster.cluster_info = _cluster_info(job, roles, port)
    threading.Thread(target=_watch, args=(cluster,), daemon=True).start()
    logger.info("the cluster is the howdah job %s", job.job_id)
    if tensorboard:
        threading.Thread(target=_log_tensorboard, args=(job,), daemon=True).start()
    return cluster


def node_roles(num_executors: int, num_ps: int, master_node: str | None, eval_node: bool) -> list[str]:
    """Return the role of each node, by its number.

    Raises:
        AssertionError: there are too few nodes.
    """
    first = ["ps"] * num_ps + ([master_node] if master_node else []) + (["evaluator"] if eval_node else [])
    workers = num_executors - len(first)
    if workers < 0:
        raise AssertionError(
            f"{len(first)} nodes are asked for besides workers, and there are {num_executors} executors"
        )
    if not master_node and workers < 1:
        raise AssertionError("a cluster needs at least one worker, chief or master")
    return first + ["worker"] * workers


def _roles(sc: Any, roles: Sequence[str]) -> dict[str, Role]:
    """Return howdah's roles: those that serve the others are not waited for."""
    conf = sc.getConf()
    gpus = int(float(conf.get("spark.task.resource.gpu.amount", "0")))
    resources = Resources(vcores=int(conf.get("spark.task.cpus", "1")), gpus=gpus)
    return {
        role: Role(
            replicas=list(roles).count(role), resources=resources, tracked=False if role in _SIDE_ROLES else None
        )
        for role in dict.fromkeys(roles)
    }


def _default_fs(sc: Any) -> str:
    """Return the default file system of Spark, without a slash at the end."""
    found = str(sc._jsc.hadoopConfiguration().get("fs.defaultFS") or "file://")
    return found.rstrip("/") if not found.startswith("file:") else "file://"


def _uri(path: str, default_fs: str) -> str:
    return path if "://" in path else f"{default_fs}{os.path.abspath(path)}"


def _port_of_executors(sc: Any, variable: str) -> int:
    """Return the port that a variable of Spark's executors, or else of the driver, has; 0 without it.

    Raises:
        ValueError: it is no port.
    """
    found = sc.getConf().get(f"spark.executorEnv.{variable}") or node_environment.inherited_port(variable) or "0"
    if not found.isdecimal() or int(found) > _LAST_PORT:
        raise ValueError(f"{variable} is {found!r}, must be a port")
    return int(found)


def _cluster_info(job: Cluster, roles: Sequence[str], port: int) -> list[dict[str, Any]]:
    """Return what is known of each node, as the reservations of 2.2.5 had it."""
    found, counts, programs = [], dict.fromkeys(roles, 0), job.programs
    for number, role in enumerate(roles):
        index, counts[role] = counts[role], counts[role] + 1
        task = job.task(role, index)
        node = {"executor_id": number, "host": task.host, "job_name": role, "task_index": index, "programs": programs}
        found.append(
            {**node, "port": port or task.ports.get("main", 0), "tb_pid": 0, "tb_port": 0, "addr": "", "authkey": ""}
        )
    return found


def _log_tensorboard(job: Cluster) -> None:
    """Log the address of the cluster's TensorBoard, as soon as it has one. The token that opens it is not logged."""
    with contextlib.suppress(Exception):  # a cluster that nobody follows any more; its program is told elsewhere
        while job.outcome is None:
            job.check()
            with contextlib.suppress(HowdahError):  # the master does not answer just now
                if link := job.tensorboard:
                    address = urlsplit(link)._replace(query="", fragment="").geturl()
                    logger.info("TensorBoard running at: %s (cluster.tensorboard_url() is the link)", address)
                    return
            time.sleep(_STOP_POLL_S)


def _watch(cluster: TFCluster) -> None:
    """Keep in `tf_status` what goes wrong, and tell streams when the nodes have ended."""
    with contextlib.suppress(Exception):
        cluster.job.wait()
    outcome = cluster.job.outcome
    if outcome is not None and outcome.state is not State.SUCCEEDED:
        tf_status["error"] = str(outcome.diagnostics)
    cluster.server.done = True
    if cluster.grace_file is not None:
        shutil.rmtree(cluster.grace_file.parent, ignore_errors=True)
