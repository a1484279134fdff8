"""An Estimator and a Model for Spark ML pipelines: trains on a cluster, and predicts with a SavedModel."""

from __future__ import annotations

import argparse
import contextlib
import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy
from pyspark import SparkContext
from pyspark.ml import Estimator, Model
from pyspark.ml.param.shared import Param, Params, TypeConverters
from pyspark.sql import DataFrame, SparkSession

from tensorflowonspark import node_environment

logger = logging.getLogger(__name__)
_SPARK = 1
"""TFCluster.InputMode.SPARK. Executors import this module, and need not have what starts clusters."""


class TFTypeConverters:
    """Converts the values of params."""

    @staticmethod
    def toDict(value: Any) -> dict[str, Any]:
        """Return a dict as it is.

        Raises:
            TypeError: it is none.
        """
        if isinstance(value, dict):
            return value
        raise TypeError(f"Could not convert {value} to dict")


def _param(name: str, text: str, convert: Callable[[Any], Any], suffix: str) -> type[Params]:
    """Return a class with the param `name`, its setter and its getter."""
    param = Param(Params._dummy(), name, text, typeConverter=convert)  # type: ignore[no-untyped-call]

    def set_value(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    def get_value(self: Any) -> Any:
        return self.getOrDefault(getattr(self, name))

    set_value.__doc__, get_value.__doc__ = f"Set: {text}.", f"Return: {text}."
    members = {name: param, f"set{suffix}": set_value, f"get{suffix}": get_value, "__doc__": f"{text}."}
    return type(f"Has{suffix}", (Params,), {**members, "__module__": __name__})


_int, _str, _bool, _dict = (
    TypeConverters.toInt,
    TypeConverters.toString,
    TypeConverters.toBoolean,
    TFTypeConverters.toDict,
)
HasBatchSize = _param("batch_size", "Number of records per batch", _int, "BatchSize")
HasClusterSize = _param("cluster_size", "Number of nodes in the cluster", _int, "ClusterSize")
HasEpochs = _param("epochs", "Number of epochs to train", _int, "Epochs")
HasGraceSecs = _param("grace_secs", "Number of seconds to wait after the data was fed", _int, "GraceSecs")
HasInputMapping = _param("input_mapping", "Mapping of input column to input tensor", _dict, "InputMapping")
HasInputMode = _param("input_mode", "Where the data comes from (0=TENSORFLOW, 1=SPARK)", _int, "InputMode")
HasMasterNode = _param("master_node", "Job name of the node that leads", _str, "MasterNode")
HasModelDir = _param("model_dir", "Path of model checkpoints", _str, "ModelDir")
HasOutputMapping = _param("output_mapping", "Mapping of output tensor to output column", _dict, "OutputMapping")
HasProtocol = _param("protocol", "Network protocol of TensorFlow (grpc|rdma)", _str, "Protocol")
HasReaders = _param("readers", "Number of reader threads", _int, "Readers")
HasSteps = _param("steps", "Maximum number of steps to train", _int, "Steps")
HasTensorboard = _param("tensorboard", "Whether TensorBoard runs beside the cluster", _bool, "Tensorboard")
HasTFRecordDir = _param("tfrecord_dir", "Path for a DataFrame as TFRecords", _str, "TFRecordDir")
HasExportDir = _param("export_dir", "Directory of the SavedModel", _str, "ExportDir")
HasSignatureDefKey = _param("signature_def_key", "Name of the SavedModel's signature", _str, "SignatureDefKey")
HasTagSet = _param("tag_set", "Tags of the SavedModel's graph, with commas", _str, "TagSet")
_HasDriverPSNodes = _param("driver_ps_nodes", "Whether the ps run beside the driver", _bool, "DriverPSNodes")


class HasNumPS(_param("num_ps", "Number of ps nodes in the cluster", _int, "NumPS"), _HasDriverPSNodes):  # type: ignore[misc]
    """How many ps nodes there are, and where."""


class Namespace:
    """Arguments of a program: attributes from a dict, from argparse, or `argv` from a list."""

    argv: list[str] | None = None

    def __init__(self, d: Any) -> None:
        if isinstance(d, list):
            self.argv = d
        elif isinstance(d, dict):
            self.__dict__.update(d)
        elif isinstance(d, Namespace | argparse.Namespace):
            self.__dict__.update(vars(d))
        else:
            raise Exception(f"Unsupported Namespace args: {d}")

    def __iter__(self) -> Iterator[str]:
        yield from self.argv if self.argv else self.__dict__.keys()

    def __repr__(self) -> str:
        return f"{self.argv}" if self.argv else f"{self.__dict__}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespace) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class TFParams(Params):
    """Params that are also arguments of the user's functions."""

    args: Namespace | None = None

    def merge_args_params(self) -> Namespace:
        """Return the arguments, with the params in place of those of their names."""
        merged = copy.copy(self.args) if self.args is not None else Namespace({})
        for param in self.params:
            if self.isDefined(param):
                setattr(merged, param.name, self.getOrDefault(param))
        return merged


class TFEstimator(
    Estimator,
    TFParams,
    HasInputMapping,  # type: ignore[misc,valid-type]
    HasClusterSize,  # type: ignore[misc,valid-type]
    HasNumPS,
    HasInputMode,  # type: ignore[misc,valid-type]
    HasMasterNode,  # type: ignore[misc,valid-type]
    HasProtocol,  # type: ignore[misc,valid-type]
    HasGraceSecs,  # type: ignore[misc,valid-type]
    HasTensorboard,  # type: ignore[misc,valid-type]
    HasModelDir,  # type: ignore[misc,valid-type]
    HasExportDir,  # type: ignore[misc,valid-type]
    HasTFRecordDir,  # type: ignore[misc,valid-type]
    HasBatchSize,  # type: ignore[misc,valid-type]
    HasEpochs,  # type: ignore[misc,valid-type]
    HasReaders,  # type: ignore[misc,valid-type]
    HasSteps,  # type: ignore[misc,valid-type]
):
    """Trains by `train_fn(args, ctx)` on a cluster that the DataFrame is fed to; then `export_fn(args)`, if there is
    one, exports the model on one node."""

    train_fn: Callable[[Any, Any], Any] | None = None
    export_fn: Callable[[Any], Any] | None = None

    def __init__(
        self, train_fn: Callable[[Any, Any], Any], tf_args: Any, export_fn: Callable[[Any], Any] | None = None
    ) -> None:
        super().__init__()
        self.train_fn, self.export_fn, self.args = train_fn, export_fn, Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            cluster_size=1,
            num_ps=0,
            driver_ps_nodes=False,
            input_mode=_SPARK,
            master_node="chief",
            protocol="grpc",
            grace_secs=30,
            tensorboard=False,
            model_dir=None,
            export_dir=None,
            tfrecord_dir=None,
            batch_size=100,
            epochs=1,
            readers=1,
            steps=1000,
        )

    def _fit(self, dataset: DataFrame) -> TFModel:
        from howdah.spark import Cluster
        from tensorflowonspark import TFCluster

        sc = SparkContext.getOrCreate()
        args = self.merge_args_params()
        if args.input_mode != _SPARK:  # type: ignore[attr-defined]
            raise Exception("a TFEstimator needs InputMode.SPARK")
        columns = sorted(self.getInputMapping())  # type: ignore[attr-defined]
        if not columns:
            raise Exception("input_mapping is empty: it names the columns to train on")
        tf_args = args.argv or args
        assert self.train_fn is not None
        cluster = TFCluster.run(
            sc,
            self.train_fn,
            tf_args,
            args.cluster_size,  # type: ignore[attr-defined]
            args.num_ps,  # type: ignore[attr-defined]
            args.tensorboard,  # type: ignore[attr-defined]
            _SPARK,
            args.model_dir if args.tensorboard else None,  # type: ignore[attr-defined]
            driver_ps_nodes=args.driver_ps_nodes,  # type: ignore[attr-defined]
            master_node=args.master_node,  # type: ignore[attr-defined]
        )
        try:
            with cluster.job:  # which is cancelled after an error: its nodes would wait for data, in slots of Spark
                cluster.train(dataset.select(columns).rdd, args.epochs)  # type: ignore[attr-defined]
                # The functions of the nodes are waited for, however long they export: no time of grace is needed.
                cluster.shutdown()
        finally:
            cluster.server.stop()
        if self.export_fn is not None:
            export = self.export_fn
            with Cluster.run(sc, lambda _context: export(tf_args), roles=1, fed=(), name="export_fn") as job:
                job.wait()
        return self._copyValues(TFModel(self.args))


class TFModel(
    Model,
    TFParams,
    HasInputMapping,  # type: ignore[misc,valid-type]
    HasOutputMapping,  # type: ignore[misc,valid-type]
    HasBatchSize,  # type: ignore[misc,valid-type]
    HasModelDir,  # type: ignore[misc,valid-type]
    HasExportDir,  # type: ignore[misc,valid-type]
    HasSignatureDefKey,  # type: ignore[misc,valid-type]
    HasTagSet,  # type: ignore[misc,valid-type]
):
    """Predicts with a SavedModel, in each Python of Spark's. The result has the columns of the output mapping alone."""

    def __init__(self, tf_args: Any) -> None:
        super().__init__()
        self.args = Namespace(tf_args)
        self._setDefault(
            input_mapping={},
            output_mapping={},
            batch_size=100,
            model_dir=None,
            export_dir=None,
            signature_def_key="serving_default",
            tag_set="serve",
        )

    def _transform(self, dataset: DataFrame) -> DataFrame:
        args = self.merge_args_params()
        tf_args = self.args.argv if self.args is not None and self.args.argv else args
        rows = dataset.select(sorted(self.getInputMapping())).rdd.mapPartitions(  # type: ignore[attr-defined]
            lambda iterator: _run_model_tf2(iterator, args, tf_args)
        )
        columns = [column for _, column in sorted(self.getOutputMapping().items())]  # type: ignore[attr-defined]
        return SparkSession.builder.getOrCreate().createDataFrame(rows, columns)


pred_fn: Any = None
global_args: Any = None
global_model: Any = None
"""The model that this Python has loaded, and the arguments with which it did."""


def _run_model_tf2(iterator: Iterable[Any], args: Any, _tf_args: Any) -> Iterator[tuple[Any, ...]]:
    """Yield a result for each row of a partition."""
    import tensorflow

    global pred_fn, global_args, global_model
    single_node_env(args)
    directory = args.export_dir or args.model_dir
    wanted = (directory, args.signature_def_key, args.tag_set, _version_of(directory))
    if global_args != wanted:
        global_model = tensorflow.saved_model.load(wanted[0], tags=args.tag_set.split(","))
        pred_fn, global_args = global_model.signatures[args.signature_def_key], wanted
    inputs = {spec.name.partition(":")[0]: spec for spec in pred_fn.inputs if spec.dtype != tensorflow.resource}
    signature = pred_fn.structured_input_signature[1]
    tensors = _names([tensor for _, tensor in sorted(args.input_mapping.items())], signature)
    outputs = _names([tensor for tensor, _ in sorted(args.output_mapping.items())], pred_fn.structured_outputs)
    for columns in yield_batch(iterator, args.batch_size, len(tensors)):
        given = {
            tensor: _to_tensor(values, signature.get(tensor, inputs.get(tensor)))
            for tensor, values in zip(tensors, columns, strict=True)
        }
        found = pred_fn(**given)
        results = [found[name].numpy() for name in outputs]
        for name, result in zip(outputs, results, strict=True):
            if len(result) != len(columns[0]):
                raise AssertionError(f"output {name} has {len(result)} rows for {len(columns[0])} of input")
        yield from zip(*(result.tolist() for result in results), strict=True)


def _version_of(directory: str) -> tuple[int, int] | None:
    """Return what is another one when a model was saved again in its directory; None if that is not known."""
    import tensorflow

    with contextlib.suppress(tensorflow.errors.OpError):
        found = tensorflow.io.gfile.stat(f"{directory}/saved_model.pb")
        return found.mtime_nsec, found.length
    return None


def _names(mapped: list[str], known: Mapping[str, Any]) -> list[str]:
    """Return a signature's names of the mapped tensors. Keras 3 does not name them as Keras 2 does: where a signature
    has one tensor, that one is meant."""
    return list(known) if len(mapped) == len(known) == 1 else mapped


def _to_tensor(values: list[Any], spec: Any) -> Any:
    """Return values as a tensor of the signature's type and shape."""
    import tensorflow

    if spec is None:
        return tensorflow.constant(values)
    plain = [bytes(value) if isinstance(value, bytearray) else value for value in values]
    if spec.dtype == tensorflow.string:
        return tensorflow.constant(plain, dtype=tensorflow.string)
    array = numpy.asarray(plain, dtype=spec.dtype.as_numpy_dtype)
    shape = [-1 if size is None else size for size in spec.shape.as_list()] if spec.shape.rank is not None else None
    return tensorflow.constant(array if shape is None else array.reshape([len(values), *shape[1:]]))


def single_node_env(args: Any) -> None:
    """Set the environment for a model that runs alone."""
    if isinstance(args, list):
        node_environment.single_node_env(1)
    else:
        node_environment.single_node_env(int(node_environment.argument(args, "num_gpus", 1)))


def get_meta_graph_def(saved_model_dir: str, tag_set: str) -> Any:
    """Return the graph of a SavedModel that has these tags.

    Raises:
        RuntimeError: there is none.
    """
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow.python.lib.io import file_io

    parsed = saved_model_pb2.SavedModel()
    parsed.ParseFromString(file_io.FileIO(f"{saved_model_dir}/saved_model.pb", "rb").read())
    wanted = set(tag_set.split(","))
    for graph in parsed.meta_graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    raise RuntimeError(f"{saved_model_dir}: no graph has the tags {tag_set}")


def yield_batch(iterable: Iterable[Any], batch_size: int, num_tensors: int = 1) -> Iterator[list[list[Any]]]:
    """Yield rows in batches of up to `batch_size`, as a list of values for each of `num_tensors` columns."""
    iterator = iter(iterable)
    while rows := list(islice(iterator, batch_size)):
        yield [[row[index] for row in rows] for index in range(num_tensors)]
