"""What a function that `train_on_dataframe` calls asks for its node's share of the DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.program.run_function import call_packed
from howdah.spark.node_context import NodeContext

if TYPE_CHECKING:
    import pyarrow

    from howdah.spark.feed import DataFeed

_ROWS_OF_BATCH = 4096
_contexts: list[NodeContext] = []
_is_endless = False
_has_enough = 0
"""After how many rows this node wanted no more; 0 while it does."""


def call_with_data(context: NodeContext, directory: str, is_endless: bool) -> None:
    """Call the function in `directory` on a node; it finds its data by the functions of this module. `is_endless` says
    whether the data comes again and again, until the function wants no more."""
    global _is_endless
    _contexts.append(context)
    _is_endless = is_endless
    call_packed(Path(directory))


def _want_no_more(feed: DataFeed, rows: int) -> None:
    global _has_enough
    _has_enough = rows
    feed.terminate()


def _feed() -> DataFeed:
    if not _contexts:
        raise RuntimeError("there is no data here: only a function that train_on_dataframe calls has some")
    return _contexts[-1].feed()


def get_spark_partition_batches(columns: Sequence[str] | None = None) -> Iterator[pyarrow.RecordBatch]:
    """Yield this node's share of the DataFrame as record batches, with all columns or these."""
    feed = _feed()
    while (table := feed.next_table(_ROWS_OF_BATCH)) is not None:
        yield from (table.select(list(columns)) if columns else table).to_batches()


def get_spark_partition_data_loader(
    num_samples: int | None = None,
    batch_size: int = 32,
    num_workers: int = 0,  # noqa: ARG001 - pyspark's argument, as the next one
    prefetch_factor: int | None = None,  # noqa: ARG001
) -> Any:
    """Return a DataLoader of PyTorch over this node's share of the DataFrame: each batch is a list with a tensor for
    each column.

    After `num_samples` rows it ends, and no more are brought to this node; without, it ends with the data. Where the
    data comes again and again (TorchDistributor), the next pass has the next `num_samples` rows. `num_workers` and
    `prefetch_factor` are accepted for programs that were written for pyspark: the tasks of Spark read in parallel
    already.
    """
    from torch.utils.data import DataLoader, IterableDataset

    if num_samples is None and _is_endless:
        raise ValueError("num_samples is missing: TorchDistributor brings the data again and again")
    feed = _feed()

    class PartitionDataset(IterableDataset[Any]):
        """Yields batches of the feed until there are enough."""

        def __iter__(self) -> Iterator[Any]:
            if _has_enough:
                raise RuntimeError(f"no more rows come after the {_has_enough} of num_samples: ask for all in one pass")
            left = num_samples
            while left is None or left > 0:
                columns = feed.next_batch(batch_size if left is None else min(batch_size, left))
                if not columns:
                    return
                yield [_to_tensor(values) for values in columns.values()]
                left = None if left is None else left - len(next(iter(columns.values())))
            if not _is_endless:
                _want_no_more(feed, num_samples or 0)

    return DataLoader(PartitionDataset(), batch_size=None)


def get_spark_partition_tf_dataset(batch_size: int = 32) -> Any:
    """Return this node's share of the DataFrame as a `tf.data.Dataset` of batches, by column."""
    from howdah.spark.datasets import tf_dataset

    return tf_dataset(_feed(), batch_size)


def get_spark_partition_jax_batches(batch_size: int = 32) -> Iterator[dict[str, Any]]:
    """Yield batches of this node's share of the DataFrame as JAX arrays, by column."""
    from howdah.spark.datasets import jax_batches

    return jax_batches(_feed(), batch_size)


def _to_tensor(values: Any) -> Any:
    import numpy
    import torch

    return torch.from_numpy(numpy.array(values)) if values.dtype != object else list(values)


def train_in_batches(
    train: Callable[[Iterator[dict[str, Any]], dict[str, Any]], Any], rows: int, params: dict[str, Any]
) -> Any:
    """Call a training function of an Estimator with its task's share of the data."""
    return train(_feed().batches(rows), params)
