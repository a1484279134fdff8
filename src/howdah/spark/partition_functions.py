"""The functions that Spark calls with each partition: they bring it to a training program.

Spark brings this module to its executors by value: it imports Python's own library, pyarrow, NumPy and pyspark alone.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy
import pyarrow

from howdah.spark.columns import to_batches, to_numpy, to_rows
from howdah.spark.feed_messages import FeedError
from howdah.spark.feeding_task import Programs, end_feed, feed_partition, infer_partition

BATCH_ROWS = 1024
"""Rows of an RDD that are sent together."""
ROWS_SCHEMA = "rows long"
"""The columns of what `train_arrow` returns."""


class List:
    """Adds up lists, as pyspark.accumulators.AccumulatorParam does numbers."""

    def zero(self, _value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - Spark's name
        value1.extend(value2)
        return value1


def train_rdd(programs: Programs, reports: Any) -> Callable[[int, Iterable[Any]], Iterator[int]]:
    """Return the function for `mapPartitionsWithIndex`, which yields how many rows a program has taken. `reports` is an
    accumulator for what `_train` reports."""

    def run(partition: int, rows: Iterable[Any]) -> Iterator[int]:
        yield _train(programs, reports, partition, to_batches(rows, BATCH_ROWS))

    return run


def train_arrow(programs: Programs, reports: Any) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the same for `mapInArrow`."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        taken = _train(programs, reports, partition_number(), batches)
        yield pyarrow.RecordBatch.from_pydict({"rows": [taken]})

    return run


def _train(programs: Programs, reports: Any, partition: int, batches: Iterable[Any]) -> int:
    """Feed a partition, and report its number, how many rows were taken, and what went wrong with the program, as a
    text, and of which kind that is. That is no failure of this task, which Spark would repeat at once: the driver knows
    whether a program starts again."""
    try:
        taken = feed_partition(programs, partition, batches)
    except FeedError as error:
        # Plain values: Spark brings them back by a pickle that cannot have this code's classes.
        reports.add([(partition, 0, str(error), error.kind)])
        return 0
    reports.add([(partition, taken, "", "")])
    return taken


def train_rows(programs: Programs) -> Callable[[Iterable[Any]], list[int]]:
    """Return the same without the accumulator, for functions that get no number of their partition."""
    return lambda rows: [feed_partition(programs, partition_number(), to_batches(rows, BATCH_ROWS))]


def end_rows(programs: Programs, grace_s: float, queues: Sequence[str]) -> Callable[[Iterable[Any]], list[bool]]:
    """Return the function of a partition that tells all programs that no more rows will come to feeds of these names,
    and then waits `grace_s` seconds."""

    def run(_rows: Iterable[Any]) -> list[bool]:
        for host, port in programs.ports:
            with contextlib.suppress(OSError, FeedError):  # it has ended, as another partition has told it to
                end_feed(host, port, programs.key, programs.connect_s, queues)
        time.sleep(grace_s)
        return [True]

    return run


def infer_rdd(programs: Programs) -> Callable[[int, Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapPartitionsWithIndex`, which yields a result for each row."""

    def run(partition: int, rows: Iterable[Any]) -> Iterator[Any]:
        for results in infer_partition(programs, partition, to_batches(rows, BATCH_ROWS)):
            yield from to_rows(results)

    return run


def infer_rows(programs: Programs) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the same for functions that get no number of their partition."""
    infer = infer_rdd(programs)
    return lambda rows: infer(partition_number(), rows)


def infer_arrow(programs: Programs, names: list[str]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the same for `mapInArrow`; the results' columns get these names."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for results in infer_partition(programs, partition_number(), batches):
            yield pyarrow.RecordBatch.from_arrays(results.columns, names)

    return run


def partition_number() -> int:
    """Return the number of the partition of this task of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


def predict_arrow(
    packed: bytes, given: str, features: str, prediction: str, are_vectors: bool
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow` that adds a column of predictions: numbers, or vectors (lists of numbers).
    `packed` has a model and the function that predicts with it, which gets the column `given` under the name
    `features`."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import cloudpickle

        model, predict = cloudpickle.loads(packed)
        for batch in batches:
            values = predict(model, {features: to_numpy(batch.column(batch.schema.get_field_index(given)))})
            column = _to_vectors(values) if are_vectors else _to_numbers(values)
            if len(column) != batch.num_rows:
                raise ValueError(f"predictFunction returned {len(column)} predictions for {batch.num_rows} rows")
            yield pyarrow.RecordBatch.from_arrays([*batch.columns, column], [*batch.schema.names, prediction])

    return run


def _to_numbers(values: Any) -> pyarrow.Array:
    """Return predictions, each a number or a vector of one, as a column.

    Raises:
        ValueError: they are longer vectors.
    """
    size = math.prod(numpy.shape(values)[1:])
    if size > 1:
        raise ValueError(f"predictFunction returned {size} values for each row: set predictionType to 'array<double>'")
    return pyarrow.array(numpy.ravel(values) if numpy.ndim(values) > 1 else values, pyarrow.float64())


def _to_vectors(values: Any) -> pyarrow.Array:
    """Return predictions as a column of lists of numbers."""
    array = numpy.asarray(values, numpy.float64)
    size = math.prod(array.shape[1:])
    offsets = numpy.arange(len(array) + 1, dtype=numpy.int32) * size
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(array.ravel()))
