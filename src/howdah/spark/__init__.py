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
    from howdah.spark.distributor import Distributor as Distributor
    from howdah.spark.distributor import TorchDistributor as TorchDistributor
    from howdah.spark.distributor import distributed as distributed
    from howdah.spark.estimator import Estimator as Estimator
    from howdah.spark.estimator import Model as Model
    from howdah.spark.feed import DataFeed as DataFeed
    from howdah.spark.node_context import NodeContext as NodeContext
    from howdah.spark.partition_data import get_spark_partition_batches as get_spark_partition_batches
    from howdah.spark.partition_data import get_spark_partition_data_loader as get_spark_partition_data_loader
    from howdah.spark.partition_data import get_spark_partition_jax_batches as get_spark_partition_jax_batches
    from howdah.spark.partition_data import get_spark_partition_tf_dataset as get_spark_partition_tf_dataset

_MODULES = {
    "Cluster": "cluster",
    "ClusterError": "cluster",
    "DataFeed": "feed",
    "Distributor": "distributor",
    "Estimator": "estimator",
    "Model": "estimator",
    "NodeContext": "node_context",
    "TorchDistributor": "distributor",
    "distributed": "distributor",
    "get_spark_partition_batches": "partition_data",
    "get_spark_partition_data_loader": "partition_data",
    "get_spark_partition_jax_batches": "partition_data",
    "get_spark_partition_tf_dataset": "partition_data",
}
__all__ = [
    "Cluster",
    "ClusterError",
    "DataFeed",
    "Distributor",
    "Estimator",
    "Model",
    "NodeContext",
    "TorchDistributor",
    "distributed",
    "get_spark_partition_batches",
    "get_spark_partition_data_loader",
    "get_spark_partition_jax_batches",
    "get_spark_partition_tf_dataset",
]


def __getattr__(name: str) -> object:
    """Import a name only when it is asked for: nodes have no use for the driver's."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"howdah.spark.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'howdah.spark' has no attribute {name!r}")
