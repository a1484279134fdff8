"""Engines, frameworks, record formats and other systems' command lines, found by their names.

`BUILT_IN` holds howdah's own, and equals the entry points of pyproject.toml: a test compares them. They are found
without importlib.metadata, because reading the entry points of every installed package takes 14 ms and more. Another
package adds its own by entry points of the same groups, which are read again when a directory of sys.path has changed.
"""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Any

BUILT_IN = {
    "howdah.engines": {
        "local": "howdah.engines.local:INFO",
        "yarn": "howdah.engines.yarn:INFO",
        "ssh": "howdah.engines.ssh:INFO",
        "slurm": "howdah.engines.slurm:INFO",
        "kubernetes": "howdah.engines.kubernetes:INFO",
        "spark": "howdah.engines.spark:INFO",
    },
    "howdah.frameworks": {
        "generic": "howdah.frameworks.generic:Generic",
        "tensorflow": "howdah.frameworks.tensorflow:TensorFlow",
        "pytorch": "howdah.frameworks.pytorch:PyTorch",
        "jax": "howdah.frameworks.jax:Jax",
        "xgboost": "howdah.frameworks.xgboost:XGBoost",
        "lightgbm": "howdah.frameworks.lightgbm:LightGBM",
        "mxnet": "howdah.frameworks.mxnet:MXNet",
        "mpi": "howdah.frameworks.mpi:Mpi",
        "horovod": "howdah.frameworks.horovod:Horovod",
        "torchrun": "howdah.frameworks.torchrun:TorchRun",
        "ray": "howdah.frameworks.ray:Ray",
        "board": "howdah.frameworks.tensorboard:TensorBoardFramework",
        "submarine": "howdah.compat.submarine.frameworks:SubmarineFramework",
        "submarine-tensorflow": "howdah.compat.submarine.frameworks:SubmarineTensorFlow",
        "submarine-pytorch": "howdah.compat.submarine.frameworks:SubmarinePyTorch",
        "tony": "howdah.compat.tony.frameworks:TonyFramework",
        "tony-tensorflow": "howdah.compat.tony.frameworks:TonyTensorFlow",
        "tony-pytorch": "howdah.compat.tony.frameworks:TonyPyTorch",
        "tony-mxnet": "howdah.compat.tony.frameworks:TonyMXNet",
        "tony-horovod": "howdah.compat.tony.horovod:TonyHorovod",
        "xlearning": "howdah.compat.xlearning.frameworks:XLearning",
        "xlearning-tensorflow": "howdah.compat.xlearning.tensorflow:XlTensorFlow",
        "xlearning-tensorflow-strategy": "howdah.compat.xlearning.tensorflow:XlTensorFlowStrategy",
        "xlearning-tensorflow-single": "howdah.compat.xlearning.tensorflow:XlTensorFlowSingle",
        "xlearning-tensor2tensor": "howdah.compat.xlearning.tensorflow:XlTensor2Tensor",
        "xlearning-pytorch": "howdah.compat.xlearning.frameworks:XlPyTorch",
        "xlearning-mxnet": "howdah.compat.xlearning.server_frameworks:XlMXNet",
        "xlearning-xflow": "howdah.compat.xlearning.server_frameworks:XlXFlow",
        "xlearning-xgboost": "howdah.compat.xlearning.server_frameworks:XlXGBoost",
        "xlearning-lightgbm": "howdah.compat.xlearning.server_frameworks:XlLightGBM",
        "xlearning-lightlda": "howdah.compat.xlearning.server_frameworks:XlLightLda",
        "xlearning-xdl": "howdah.compat.xlearning.server_frameworks:XlXdl",
        "xlearning-mpi": "howdah.compat.xlearning.mpi:XlMpi",
        "xlearning-horovod": "howdah.compat.xlearning.mpi:XlHorovod",
    },
    "howdah.readers": {
        "text": "howdah.inputs.formats.text:TextReader",
        "whole": "howdah.inputs.formats.whole_file:WholeReader",
        "csv": "howdah.inputs.formats.text:CsvReader",
        "jsonl": "howdah.inputs.formats.text:JsonLinesReader",
        "sequencefile": "howdah.inputs.formats.sequencefile:SequenceFileReader",
        "tfrecord": "howdah.inputs.formats.tfrecord:TFRecordReader",
        "parquet": "howdah.inputs.formats.columns:ParquetReader",
        "orc": "howdah.inputs.formats.columns:OrcReader",
        "avro": "howdah.inputs.formats.avro:AvroReader",
    },
    "howdah.writers": {
        "text": "howdah.inputs.formats.text:TextWriter",
        "gzip": "howdah.inputs.formats.text:GzipWriter",
        "sequencefile": "howdah.inputs.formats.sequencefile_writer:SequenceFileWriter",
        "tfrecord": "howdah.inputs.formats.tfrecord:TFRecordWriter",
        "parquet": "howdah.inputs.formats.parquet_writer:ParquetWriter",
    },
    "howdah.dialects": {
        "xl-submit": "howdah.compat.xlearning.submit:XlSubmit",
        "hbox-submit": "howdah.compat.xlearning.submit:HboxSubmit",
        "tony": "howdah.compat.tony.submit:Tony",
        "submarine": "howdah.compat.submarine.job_run:Submarine",
        "azkaban-job": "howdah.compat.tony.azkaban:AzkabanJob",
    },
}
"""The `module:attribute` of each name, by entry point group."""


def find(group: str, name: str) -> str:
    """Return the `module:attribute` of this name, "" if no package has it."""
    return BUILT_IN[group].get(name) or installed(group).get(name, "")


def names(group: str) -> list[str]:
    """Return all names of a group, howdah's own first."""
    return list({**BUILT_IN[group], **installed(group)})


def installed(group: str) -> dict[str, str]:
    """Return what other packages add to a group."""
    added = _entries(tuple(map(_state_of, sys.path))).get(group, {})
    return {name: target for name, target in added.items() if name not in BUILT_IN[group]}


def _state_of(directory: str) -> tuple[str, int]:
    """Return a value that changes when a package is installed into a directory, or removed from it."""
    try:
        return directory, Path(directory).stat().st_mtime_ns
    except OSError:
        return directory, 0


@functools.lru_cache(maxsize=1)
def _entries(path: tuple[tuple[str, int], ...]) -> dict[str, dict[str, str]]:
    """Return the entry points of all packages, by group and name. They are read again when `path` changes."""
    del path
    from importlib.metadata import entry_points

    found: Any = entry_points()
    if hasattr(found, "select"):  # CPython 3.9 has a dict
        found = {group: found.select(group=group) for group in BUILT_IN}
    return {group: {entry.name: entry.value for entry in found.get(group, ())} for group in BUILT_IN}


def distribution(group: str, name: str) -> str:
    """Return the name of the installed distribution that provides this name, "" for howdah's own."""
    from importlib.metadata import entry_points

    if name in BUILT_IN[group]:
        return ""
    entries = entry_points(group=group, name=name)
    return next((entry.dist.name for entry in entries if entry.dist is not None), "")


def load(target: str) -> Any:
    """Import what `module:attribute` names."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
