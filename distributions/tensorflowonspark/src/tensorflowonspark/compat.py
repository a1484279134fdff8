"""What differs between versions of TensorFlow."""

from __future__ import annotations

import inspect
import os
from typing import Any

from tensorflowonspark import gpu_info


def export_saved_model(model: Any, export_dir: str | bytes | os.PathLike[str], is_chief: bool = False) -> None:
    """Save a Keras model as a SavedModel in `export_dir`; other nodes than the chief take part, and save it locally."""
    directory = os.fsdecode(export_dir) if is_chief else "worker_model"  # bytes are what estimators' exporters give
    if "save_format" in inspect.signature(model.save).parameters:  # Keras 2, where `export` gives tensors other names
        model.save(directory, save_format="tf")
    else:
        model.export(directory)


def disable_auto_shard(options: Any) -> None:
    """Let each node read all of its data set: what Spark feeds is divided already."""
    import tensorflow

    options.experimental_distribute.auto_shard_policy = tensorflow.data.experimental.AutoShardPolicy.OFF


def is_gpu_available() -> bool:
    """Return whether this node has a GPU."""
    return gpu_info.is_gpu_available()
