"""Runs a function on many nodes that know nothing of each other, such as for inference."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from howdah.spark import Cluster
from tensorflowonspark import TFCluster, TFSparkNode

logger = logging.getLogger(__name__)


def run(sc: Any, map_fn: Callable[[Any, Any], Any], tf_args: Any, num_executors: int, use_barrier: bool = True) -> None:
    """Call `map_fn(tf_args, ctx)` on `num_executors` nodes, and return when all have returned. With `use_barrier` they
    start together, or not at all.

    Raises:
        Exception: a node has failed, or with `use_barrier` Spark has room for fewer.
    """
    if use_barrier:
        jvm = sc._jsc.sc()
        slots = jvm.maxNumConcurrentTasks(jvm.resourceProfileManager().defaultResourceProfile())
        if slots < num_executors:
            raise Exception(f"{num_executors} nodes are to start together, and Spark has room for {slots}")
    roles = ["worker"] * num_executors
    with Cluster.run(
        sc,
        TFSparkNode.run_on_node,
        [map_fn, tf_args, roles, TFCluster._default_fs(sc), False],
        roles=TFCluster._roles(sc, roles),
        name=getattr(map_fn, "__name__", "tensorflowonspark"),
        fed=(),
        gang=use_barrier,
    ) as cluster:
        cluster.wait()
