"""Runs a function on many nodes that know nothing of each other, such as for inference."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from howdah.spark import Cluster
from tensorflowonspark import TFCluster, TFSparkNode

logger = logging.getLogger(__name__)
_EXECUTORS_WAIT_S = 30.0
"""How long Spark itself waits, unless it is told otherwise, for its executors to register."""
_POLL_S = 0.5


def run(sc: Any, map_fn: Callable[[Any, Any], Any], tf_args: Any, num_executors: int, use_barrier: bool = True) -> None:
    """Call `map_fn(tf_args, ctx)` on `num_executors` nodes, and return when all have returned. With `use_barrier` they
    start together, or not at all.

    Raises:
        Exception: a node has failed, or with `use_barrier` Spark has room for fewer.
    """
    if use_barrier and (slots := _count_slots(sc, num_executors)) < num_executors:
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


def _count_slots(sc: Any, wanted: int) -> int:
    """Return how many tasks can run at the same time. Executors register one by one: fewer than `wanted` is the answer
    only after a while."""
    jvm, deadline = sc._jsc.sc(), time.monotonic() + _EXECUTORS_WAIT_S
    while True:
        slots = int(jvm.maxNumConcurrentTasks(jvm.resourceProfileManager().defaultResourceProfile()))
        if slots >= wanted or time.monotonic() > deadline:
            return slots
        time.sleep(_POLL_S)
