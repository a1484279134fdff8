"""Brings RDDs and DataFrames to the programs of a cluster, by jobs of Spark."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from pyspark import InheritableThread, SparkContext, cloudpickle

from howdah.spark import columns, feed_messages, feeding_task, partition_functions
from howdah.spark.feeding_task import Programs
from howdah.spark.partition_functions import ROWS_SCHEMA, List

POLL_S = 0.2
MAX_TRIES = 10
"""How often partitions are fed again because programs were restarted."""
_numbers = itertools.count(1)


def carry_modules() -> None:
    """Let Spark bring what feeds a partition to its executors, where howdah need not be installed."""
    for module in (columns, feed_messages, feeding_task, partition_functions):
        cloudpickle.register_pickle_by_value(module)


class SparkFeeder:
    """Feeds the programs of one cluster. `goes_on` returns whether its job does, and `take_data` whether the programs
    take data, after it has waited while they restart; both raise what has failed."""

    def __init__(
        self,
        context: SparkContext,
        programs: Programs,
        job_id: str,
        goes_on: Callable[[], bool],
        take_data: Callable[[], bool],
    ) -> None:
        self._context, self._programs, self._job_id = context, programs, job_id
        self._goes_on, self._take_data = goes_on, take_data
        carry_modules()

    def train(self, data: Any) -> int:
        """Bring all partitions to the programs, those again whose program was restarted; return how many rows were
        taken."""
        done: Any = self._context.accumulator([], List())
        if hasattr(data, "mapInArrow"):
            fed = data.mapInArrow(partition_functions.train_arrow(self._programs, done), ROWS_SCHEMA).rdd
        else:
            fed = data.mapPartitionsWithIndex(partition_functions.train_rdd(self._programs, done))
        rows, every = 0, list(range(fed.getNumPartitions()))
        for attempt in range(MAX_TRIES):
            left = [number for number in every if number not in set(done.value)]
            if not (left and self._goes_on()):
                break
            try:
                rows += sum(int(each[0] if isinstance(each, tuple) else each) for each in self._collect(fed, left))
            except Exception:
                if not self._take_data():
                    break  # the programs have ended well, before they had all data
                if attempt + 1 == MAX_TRIES or not set(left) - set(done.value):
                    raise
        return rows

    def _collect(self, rdd: Any, partitions: list[int]) -> list[Any]:
        """Return what partitions of an RDD yield, by a job of Spark that ends as soon as the cluster's does."""
        group = f"howdah {self._job_id} feed {next(_numbers)}"
        found: list[Any] = []
        problems: list[BaseException] = []

        is_over, is_done = threading.Event(), threading.Event()

        def run() -> None:
            try:
                if not is_over.is_set():
                    self._context.setJobGroup(group, f"howdah {self._job_id}: feeding", interruptOnCancel=True)
                    found.extend(self._context.runJob(rdd, lambda rows: rows, partitions))
            except BaseException as problem:  # raised where it is waited for
                problems.append(problem)
            finally:
                is_done.set()

        thread = InheritableThread(target=run, daemon=True)
        try:
            # An interrupted `Thread.join` would take the thread for ended (CPython 3.11, bpo-45274).
            thread.start()
            while not is_done.is_set() and self._goes_on():
                is_done.wait(POLL_S)
        finally:
            is_over.set()
            while thread.ident and not is_done.is_set():  # a job that has not begun yet is not cancelled
                self._context.cancelJobGroup(group)
                is_done.wait(POLL_S)
        if problems:
            raise problems[0]
        return found

    def inference(self, data: Any, schema: str) -> Any:
        """Return the programs' results: an RDD, or a DataFrame with the columns of `schema`."""
        if not hasattr(data, "mapInArrow"):
            return data.mapPartitionsWithIndex(partition_functions.infer_rdd(self._programs))
        if not schema:
            raise ValueError('inference of a DataFrame needs the columns of its results: schema="prediction long"')
        names = _names(schema)
        return data.mapInArrow(partition_functions.infer_arrow(self._programs, names), schema)


def _names(schema: str) -> list[str]:
    from pyspark.sql.types import StructType

    return list(StructType.fromDDL(schema).fieldNames())
