"""Trains on the executors of a Spark that runs already, with data that Spark brings to the training programs.

    from howdah.spark import Cluster

    with Cluster.run(spark, train, roles={"worker": 2}, framework="pytorch") as cluster:
        cluster.train(frame, epochs=3)

`train` is called on each node with a `NodeContext`, whose `feed()` has the data (docs/spark-feeding.md).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from howdah.spark.cluster import Cluster as Cluster
    from howdah.spark.cluster import ClusterError as ClusterError
    from howdah.spark.feed import DataFeed as DataFeed
    from howdah.spark.node_context import NodeContext as NodeContext

__all__ = ["Cluster", "ClusterError", "DataFeed", "NodeContext"]
_MODULES = {"Cluster": "cluster", "ClusterError": "cluster", "DataFeed": "feed", "NodeContext": "node_context"}


def __getattr__(name: str) -> object:
    """Import a class only when it is asked for: nodes have no use for the driver's."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"howdah.spark.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'howdah.spark' has no attribute {name!r}")
