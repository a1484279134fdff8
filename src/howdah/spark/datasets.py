"""What Spark brings, as the frameworks' own data sets: tf.data, PyTorch's IterableDataset, JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy
import pyarrow

from howdah.spark.columns import to_numpy
from howdah.spark.feed import DataFeed, check_batch_size

Columns = dict[str, Any]


def column_batches(feed: DataFeed, rows: int, shuffle_rows: int = 0, seed: int = 0) -> Iterator[Columns]:
    """Yield batches of up to `rows` rows as NumPy arrays by column. With `shuffle_rows` they are drawn at random from
    about so many rows that have come; the same `seed` draws in the same way."""
    check_batch_size(rows)
    if not shuffle_rows:
        yield from feed.batches(rows)
        return
    random, pool = numpy.random.default_rng(seed), None
    while True:
        missing = shuffle_rows - (0 if pool is None else pool.num_rows)
        table = feed.next_table(max(missing, rows))
        if table is not None:
            pool = table if pool is None else pyarrow.concat_tables([pool, table])
        if pool is None or not pool.num_rows:
            return
        pool = pool.take(pyarrow.array(random.permutation(pool.num_rows)))
        # Half of the pool stays until others have come, so that rows of far apart places meet.
        kept = pool.num_rows // 2 if table is not None else 0
        while pool.num_rows > kept:
            batch = pool.slice(0, rows)
            pool = pool.slice(batch.num_rows)
            yield {name: to_numpy(batch.column(name)) for name in batch.column_names}


def torch_dataset(
    feed: DataFeed, rows: int, transform: Callable[[Columns], Any] | None = None, shuffle_rows: int = 0, seed: int = 0
) -> Any:
    """Return a `torch.utils.data.IterableDataset` of batches: tensors by column, or what `transform` makes of the NumPy
    columns. Give it to a DataLoader with `batch_size=None` and no workers: Spark's tasks read in parallel already."""
    import torch
    from torch.utils.data import IterableDataset

    def tensors(columns: Columns) -> dict[str, Any]:
        return {name: torch.from_numpy(numpy.array(values)) for name, values in columns.items()}

    class FeedDataset(IterableDataset[Any]):
        """Batches of a feed."""

        def __iter__(self) -> Iterator[Any]:
            return map(transform or tensors, column_batches(feed, rows, shuffle_rows, seed))

    return FeedDataset()


def tf_dataset(
    feed: DataFeed, rows: int, transform: Callable[[Columns], Any] | None = None, shuffle_rows: int = 0, seed: int = 0
) -> Any:
    """Return a `tf.data.Dataset` of batches: tensors by column, or what `transform` makes of the NumPy columns. The
    call waits for the first batch, which tells the types and shapes.

    Raises:
        ValueError: the feed has ended before a row came.
    """
    import tensorflow

    batches = map(transform or (lambda columns: columns), column_batches(feed, rows, shuffle_rows, seed))
    first = next(batches, None)
    if first is None:
        raise ValueError("Spark has brought no rows")

    def signature(array: Any) -> Any:
        array = numpy.asarray(array)
        dtype = tensorflow.string if array.dtype == object else tensorflow.as_dtype(array.dtype)
        return tensorflow.TensorSpec((None, *array.shape[1:]), dtype)

    every = chain([first], batches)

    def generate() -> Iterator[Any]:
        # Each batch comes once: who goes through the data set again gets what has come since.
        yield from every

    return tensorflow.data.Dataset.from_generator(
        generate, output_signature=tensorflow.nest.map_structure(signature, first)
    )


def jax_batches(
    feed: DataFeed, rows: int, transform: Callable[[Columns], Any] | None = None, shuffle_rows: int = 0, seed: int = 0
) -> Iterator[Any]:
    """Yield batches as JAX arrays by column, or as what `transform` makes of the NumPy columns."""
    import jax

    for columns in column_batches(feed, rows, shuffle_rows, seed):
        yield jax.tree.map(jax.numpy.asarray, transform(columns) if transform else columns)
