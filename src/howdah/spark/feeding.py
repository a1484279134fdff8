"""Brings RDDs and DataFrames to the programs of a cluster, by jobs of Spark."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import InheritableThread, SparkContext, cloudpickle

from howdah.errors import SpecError
from howdah.spark import columns, feed_messages, feeding_task, partition_functions
from howdah.spark.feed_messages import SILENT, UNREACHED, FeedError
from howdah.spark.feeding_task import Programs
from howdah.spark.partition_functions import ROWS_SCHEMA, List

POLL_S = 0.2
MAX_TRIES = 40
"""How often partitions are fed again because programs were restarted, or do not listen yet: each time they are waited
for, 20 s, as they import their framework and make their model."""
UNREACHED_S = 800.0
"""How long programs may run of which none listens, before it is an error: with the try that is on its way then about a
quarter of an hour, however many slots of Spark the tasks have that wait for them."""
ENOUGH_UNREACHED = 4
"""After how many tasks that have reached none, one after another, a try ends: more would only wait as long again."""
RETRY_S = 1.0
_numbers = itertools.count(1)


def carry_modules() -> None:
    """Let Spark bring what feeds a partition to its executors, where howdah need not be installed."""
    for module in (columns, feed_messages, feeding_task, partition_functions):
        cloudpickle.register_pickle_by_value(module)


def check_epochs(epochs: int) -> None:
    """Do nothing if data can come so often.

    Raises:
        SpecError: the number is negative, so that nothing would be trained.
    """
    if epochs < 0:
        raise SpecError.at("epochs", f"is {epochs}, must be at least 0")


def have_begun_again(before: Mapping[Any, int], now: Mapping[Any, int]) -> bool:
    """Return whether all tasks have another start of their program than before: their gang was restarted."""
    return bool(before) and all(now.get(task) != start for task, start in before.items())


class SparkFeeder:
    """Feeds the programs of one cluster: `programs` returns where they listen, and `runs` which start of each this is.
    `goes_on` returns whether the job does, and `take_data` whether the programs take data, after it has waited while
    they restart; both raise what has failed. `retry_s` is how many seconds after a program was lost it is tried again:
    the driver has heard by then."""

    def __init__(
        self,
        context: SparkContext,
        programs: Callable[[], Programs],
        job_id: str,
        goes_on: Callable[[], bool],
        take_data: Callable[[], bool],
        runs: Callable[[], Mapping[Any, int]],
        retry_s: float = RETRY_S,
        unreached_s: float = UNREACHED_S,
    ) -> None:
        self._context, self._programs, self._job_id = context, programs, job_id
        self._goes_on, self._take_data, self._runs, self._retry_s = goes_on, take_data, runs, retry_s
        self._unreached_s = unreached_s
        carry_modules()

    def train(self, data: Any, starts: Mapping[Any, int] | None = None) -> int:
        """Bring all partitions to the programs, those again whose program was restarted; return how many rows were
        taken. With `starts` of the programs it ends, too, when all of them have begun again: their data is another.

        Raises:
            FeedError: a program runs and takes no data, or none is reached in many tries, or for a quarter of an hour.
                What Spark raises, if it cannot read the data.
        """
        reports: Any = self._context.accumulator([], List())
        try:
            self._feed_partitions(data, reports, starts)
            return sum(_taken(reports.value).values())
        finally:
            reports.value = []  # pyspark keeps it for good, and a stream makes one for each batch

    def _feed_partitions(self, data: Any, reports: Any, starts: Mapping[Any, int] | None) -> None:
        programs = self._programs()
        fed = _fed(data, programs, reports)
        every = list(range(fed.getNumPartitions()))

        def has_begun_again() -> bool:
            return starts is not None and have_begun_again(starts, self._runs())

        def take_data() -> bool:
            return self._take_data() and not has_begun_again()

        reached = time.monotonic()
        for attempt in range(MAX_TRIES):
            left = sorted(set(every) - _taken(reports.value).keys())
            if not (left and self._goes_on()) or has_begun_again():
                break
            if (now := self._programs()) != programs:  # restarted, they may listen elsewhere
                programs, fed = now, _fed(data, now, reports)
            runs, heard = self._runs(), len(reports.value)

            def kinds(heard: int = heard) -> list[str]:
                return [kind for *_, kind in reports.value[heard:]]

            def is_in_vain() -> bool:
                return SILENT in kinds() or kinds()[-ENOUGH_UNREACHED:] == [UNREACHED] * ENOUGH_UNREACHED

            try:
                self._collect(fed, left, lambda: is_in_vain() or has_begun_again())
            except Exception:
                if not take_data():
                    break  # the programs have ended well, before they had all data
                # Where a program was started again meanwhile, Spark may have failed with it.
                if not is_in_vain() and (self._runs() == runs or attempt + 1 == MAX_TRIES):
                    raise
            problem = next((text for *_, text, _ in reports.value[heard:] if text), "")
            if problem:
                threading.Event().wait(self._retry_s)
                if not take_data():
                    break
                is_same = self._runs() == runs
                is_unreached = is_same and set(kinds()) == {UNREACHED}
                reached = reached if is_unreached else time.monotonic()
                is_too_long = is_unreached and time.monotonic() - reached > self._unreached_s
                if attempt + 1 == MAX_TRIES or is_too_long or (is_same and SILENT in kinds()):
                    raise FeedError(f"{self._job_id}: {problem}")

    def _collect(self, rdd: Any, partitions: list[int], is_enough: Callable[[], bool]) -> list[Any]:
        """Return what partitions of an RDD yield, by a job of Spark that ends as soon as the cluster's does, or when it
        `is_enough`."""
        group = f"howdah {self._job_id} feed {next(_numbers)}"
        found: list[Any] = []
        problems: list[BaseException] = []

        is_over, is_done = threading.Event(), threading.Event()

        def run() -> None:
            try:
                if not is_over.is_set():
                    # Threads of a cancelled job are not interrupted: Spark 3.5 then may give closed sockets of Python
                    # to later tasks, and HDFS takes nodes for dead (HDFS-1208). It ends a task's Python within 2 s.
                    self._context.setJobGroup(group, f"howdah {self._job_id}: feeding")
                    found.extend(self._context.runJob(rdd, lambda rows: rows, partitions))
            except BaseException as problem:  # raised where it is waited for
                problems.append(problem)
            finally:
                is_done.set()

        thread = InheritableThread(target=run, daemon=True)
        try:
            # An interrupted `Thread.join` would take the thread for ended (CPython 3.11, bpo-45274).
            thread.start()
            while not is_done.is_set() and self._goes_on() and not is_enough():
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
            return data.mapPartitionsWithIndex(partition_functions.infer_rdd(self._programs()))
        if not schema:
            raise ValueError('inference of a DataFrame needs the columns of its results: schema="prediction long"')
        names = _names(schema)
        return data.mapInArrow(partition_functions.infer_arrow(self._programs(), names), schema)


def _fed(data: Any, programs: Programs, reports: Any) -> Any:
    """Return the RDD whose partitions are fed when they are computed."""
    if hasattr(data, "mapInArrow"):
        return data.mapInArrow(partition_functions.train_arrow(programs, reports), ROWS_SCHEMA).rdd
    return data.mapPartitionsWithIndex(partition_functions.train_rdd(programs, reports))


def _taken(reports: list[tuple[int, int, str, str]]) -> dict[int, int]:
    """Return how many rows of each partition were taken that has come whole."""
    return {partition: rows for partition, rows, problem, _ in reports if not problem}


def _names(schema: str) -> list[str]:
    from pyspark.sql.types import StructType

    return list(StructType.fromDDL(schema).fieldNames())
