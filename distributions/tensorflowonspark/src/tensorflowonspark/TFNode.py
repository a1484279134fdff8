"""What a node's function uses: its data, and paths on the cluster's file system."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from tensorflowonspark import marker
from tensorflowonspark.TFManager import Empty

logger = logging.getLogger(__name__)

_SCHEMES = ("adl", "file", "hdfs", "oss", "s3", "s3a", "s3n", "swift", "viewfs", "wasb")


def hdfs_path(ctx: Any, path: str) -> str:
    """Return a path with its scheme: on the default file system, and relative paths in the user's home there, or in the
    node's working directory where the file system is the node's own."""
    if path.startswith(tuple(f"{scheme}://" for scheme in _SCHEMES)):
        return path
    if path.startswith("/"):
        return f"{ctx.defaultFS}{path}"
    if ctx.defaultFS.startswith(("hdfs://", "viewfs://")):
        return f"{ctx.defaultFS}/user/{getpass.getuser()}/{path}"
    if ctx.defaultFS.startswith("file://"):
        return f"{ctx.defaultFS}/{ctx.working_dir.lstrip('/')}/{path}"
    logger.warning("Unknown scheme %s with relative path: %s", ctx.defaultFS, path)
    return f"{ctx.defaultFS}/{path}"


def start_cluster_server(ctx: Any, num_gpus: int = 1, rdma: bool = False) -> NoReturn:
    """Refuse: this was for TensorFlow 1."""
    raise Exception("start_cluster_server is for TensorFlow 1: use tf.distribute")


def export_saved_model(sess: Any, export_dir: str, tag_set: Any, signatures: Any) -> NoReturn:
    """Refuse: this was for TensorFlow 1."""
    raise Exception("export_saved_model of a session is for TensorFlow 1: use compat.export_saved_model")


def next_batch(mgr: Any, batch_size: int, qname: str = "input") -> NoReturn:
    """Refuse: DataFeed has taken its place."""
    raise Exception("next_batch is gone: use TFNode.DataFeed")


def batch_results(mgr: Any, results: Any, qname: str = "output") -> NoReturn:
    """Refuse: DataFeed has taken its place."""
    raise Exception("batch_results is gone: use TFNode.DataFeed")


def terminate(mgr: Any, qname: str = "input") -> NoReturn:
    """Refuse: DataFeed has taken its place."""
    raise Exception("terminate is gone: use TFNode.DataFeed")


def release_port(ctx: Any) -> None:
    """Free the port that was reserved for this node."""
    if ctx.tmp_socket is not None:
        ctx.tmp_socket.close()
        ctx.tmp_socket = None


class DataFeed:
    """The rows that Spark brings to this node.

    With an `input_mapping` of columns to tensors, batches are lists of values by tensor; columns come sorted by name.
    """

    drain_s = 5.0
    """After how many seconds without a row `terminate` takes the queue for empty."""

    def __init__(
        self,
        mgr: Any,
        train_mode: bool = True,
        qname_in: str = "input",
        qname_out: str = "output",
        input_mapping: Mapping[str, str] | None = None,
    ) -> None:
        self.mgr, self.train_mode, self.qname_in, self.qname_out = mgr, train_mode, qname_in, qname_out
        self.done_feeding = False
        if hasattr(mgr, "feed"):
            mgr.answered[qname_out] = qname_in
        self.input_tensors = [tensor for _, tensor in sorted(input_mapping.items())] if input_mapping else None

    def next_batch(self, batch_size: int) -> Any:
        """Return up to `batch_size` rows: fewer at the end of the feed, and when not in train mode of a partition."""
        rows = self._from_feed(batch_size) if hasattr(self.mgr, "feed") else self._from_queue(batch_size)
        if self.input_tensors is None:
            return rows
        return {tensor: [row[index] for row in rows] for index, tensor in enumerate(self.input_tensors)}

    def _from_feed(self, batch_size: int) -> list[Any]:
        feed = self.mgr.feed(self.qname_in)
        rows = feed.next_rows(batch_size)
        self.done_feeding = feed.should_stop()
        return list(rows)

    def _from_queue(self, batch_size: int) -> list[Any]:
        queue, rows = self.mgr.get_queue(self.qname_in), []  # type: tuple[Any, list[Any]]
        while len(rows) < batch_size:
            item = queue.get(block=True)
            queue.task_done()
            if item is None:
                self.done_feeding = True
                break
            if isinstance(item, marker.EndPartition):
                if not self.train_mode and rows:
                    break
                continue
            rows.append(item)
        return rows

    def should_stop(self) -> bool:
        """Return whether no more rows will come."""
        return self.done_feeding

    def batch_results(self, results: Any) -> None:
        """Give the results of the last batch: exactly one for each row."""
        if hasattr(self.mgr, "feed"):
            self.mgr.feed(self.qname_in).put_results(list(results))
            return
        queue = self.mgr.get_queue(self.qname_out)
        for result in results:
            queue.put(result, block=True)

    def terminate(self) -> None:
        """Want no more rows: those of this partition, and of all to come, are left out."""
        self.mgr.set("state", "terminating")
        self.done_feeding = True
        if hasattr(self.mgr, "feed"):
            self.mgr.feed(self.qname_in).terminate()
            return
        queue = self.mgr.get_queue(self.qname_in)
        while True:
            try:
                queue.get(block=True, timeout=self.drain_s)
                queue.task_done()
            except Empty:
                return
