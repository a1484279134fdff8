"""An estimator of `pyspark.ml` that trains a function on Spark's executors, for pipelines and cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle, keyword_only
from pyspark.ml import Estimator as SparkEstimator
from pyspark.ml import Model as SparkModel
from pyspark.ml.functions import vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol, HasValidationIndicatorCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType

from howdah.errors import SpecError
from howdah.spark import columns, partition_functions
from howdah.spark.distributor import Distributor
from howdah.spark.partition_data import train_in_batches

Train = Callable[[Iterator[dict[str, Any]], dict[str, Any]], Any]
Predict = Callable[[Any, dict[str, Any]], Any]
_FUNCTIONS = "functions"
_ARRAY = "howdah features"
_TYPES = {"double": DoubleType(), "array<double>": ArrayType(DoubleType())}
"""The types that predictions may have, as Spark writes them."""


def _param(name: str, doc: str, converter: Callable[[Any], Any] | None = None) -> Any:
    return Param(Params._dummy(), name, doc, converter)


def _prediction_type(value: Any) -> str:
    if value not in _TYPES:
        raise TypeError(f"{value!r} is none of {', '.join(_TYPES)}")
    return str(value)


def _with_accessors(cls: Any) -> Any:
    """Add a setter and a getter for each Param of a class that has none yet, with the names of pyspark.ml."""
    for name in [each for each in dir(cls) if isinstance(getattr(cls, each), Param)]:
        suffix = f"{name[0].upper()}{name[1:]}"

        def set_value(self: Any, value: Any, name: str = name) -> Any:
            return self._set(**{name: value})

        def get_value(self: Any, name: str = name) -> Any:
            return self.getOrDefault(name)

        for accessor, function, verb in ((f"set{suffix}", set_value, "Set"), (f"get{suffix}", get_value, "Return")):
            if accessor not in dir(cls):
                function.__name__, function.__doc__ = accessor, f"{verb} `{name}`."
                setattr(cls, accessor, function)
    return cls


class _Columns(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasValidationIndicatorCol):
    """The parameters that estimator and model have in common."""

    predictFunction = _param("predictFunction", "Returns predictions, one for each row of NumPy columns.")
    predictionType = _param("predictionType", "The type of a prediction: double or array<double>.", _prediction_type)


@_with_accessors
class Estimator(SparkEstimator, _Columns, MLReadable, MLWritable):
    """Trains `trainFunction` in `numWorkers` tasks, and gives a Model of what the first of them returns.

    `trainFunction(batches, params)` gets its task's share of the data, as an iterator over NumPy columns by name in
    batches of `batchSize` rows, `epochs` times over, and the values of all parameters by name.
    `predictFunction(model, columns)` returns one number for each row, or a vector if `predictionType` is
    `array<double>`. `jobKeys` are more of Distributor's arguments: `{"retries": 2}`. Names are those of `pyspark.ml`;
    each Param has its setter and getter, and `setParams` and `copy` work as they do there.
    """

    trainFunction = _param("trainFunction", "Trains, with batches and parameters; returns the model.")
    numWorkers = _param("numWorkers", "The number of tasks.", TypeConverters.toInt)
    useGpu = _param("useGpu", "Whether each task has GPUs.", TypeConverters.toBoolean)
    framework = _param("framework", "The framework by which tasks find each other.", TypeConverters.toString)
    batchSize = _param("batchSize", "Rows of a batch.", TypeConverters.toInt)
    epochs = _param("epochs", "How often the data comes.", TypeConverters.toInt)
    modelDir = _param("modelDir", "A directory for what the function saves.", TypeConverters.toString)
    jobKeys = _param("jobKeys", "More keys of the job, as Distributor takes them.")

    @keyword_only
    def __init__(
        self,
        *,
        trainFunction: Train | None = None,
        predictFunction: Predict | None = None,
        featuresCol: str = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        predictionType: str = "double",
        validationIndicatorCol: str | None = None,
        numWorkers: int = 1,
        useGpu: bool = False,
        framework: str = "pytorch",
        batchSize: int = 32,
        epochs: int = 1,
        modelDir: str | None = None,
        jobKeys: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(numWorkers=1, useGpu=False, framework="pytorch", batchSize=32, epochs=1, jobKeys={})
        self._setDefault(predictionType="double")
        self._set_given(self._input_kwargs)

    @keyword_only
    def setParams(self, **values: Any) -> Estimator:
        """Set parameters by name; None leaves one as it is."""
        return self._set_given(self._input_kwargs)

    def _set_given(self, values: dict[str, Any]) -> Estimator:
        return self._set(**{name: value for name, value in values.items() if value is not None})

    def _fit(self, dataset: DataFrame) -> Model:
        wanted = [self.getFeaturesCol(), self.getLabelCol()]
        if self.isSet(self.validationIndicatorCol):
            wanted.append(self.getValidationIndicatorCol())
        missing = [name for name in wanted if name not in dataset.columns]
        if missing:
            raise SpecError.at(
                "fit", f"the DataFrame has no column {missing[0]!r}; it has {', '.join(dataset.columns)}"
            )
        values = {param.name: value for param, value in self.extractParamMap().items() if not callable(value)}
        distributor = Distributor(
            self.getOrDefault(self.numWorkers),
            use_gpu=self.getOrDefault(self.useGpu),
            framework=self.getOrDefault(self.framework),
            epochs=self.getOrDefault(self.epochs),
            spark=dataset.sparkSession,
            **self.getOrDefault(self.jobKeys),
        )
        train, rows = self.getOrDefault(self.trainFunction), self.getOrDefault(self.batchSize)
        frame = dataset.select([_as_array(dataset, name) for name in wanted])
        trained = distributor.train_on_dataframe(train_in_batches, frame, train, rows, values)
        return self._copyValues(Model(trained))

    def write(self) -> MLWriter:
        """Return what writes this estimator, with its functions."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return what reads an estimator."""
        return _Reader(cls)


@_with_accessors
class Model(SparkModel, _Columns, MLReadable, MLWritable):
    """Predicts with what a training function has returned."""

    def __init__(self, trained: Any = None) -> None:
        super().__init__()
        self._trained = trained
        self._setDefault(predictionType="double")

    def getModel(self) -> Any:
        """Return what the training function has returned."""
        return self._trained

    def _transform(self, dataset: DataFrame) -> DataFrame:
        features, prediction = self.getFeaturesCol(), self.getPredictionCol()
        kind = self.getOrDefault(self.predictionType)
        if prediction in dataset.columns:
            raise SpecError.at("transform", f"the DataFrame has a column {prediction!r} already")
        given = dataset.withColumn(_ARRAY, _as_array(dataset, features))
        schema = StructType([*given.schema.fields, StructField(prediction, _TYPES[kind])])
        for module in (columns, partition_functions):
            cloudpickle.register_pickle_by_value(module)
        packed = cloudpickle.dumps((self._trained, self.getOrDefault(self.predictFunction)))
        predict = partition_functions.predict_arrow(packed, _ARRAY, features, prediction, kind != "double")
        return given.mapInArrow(predict, schema).drop(_ARRAY)

    def write(self) -> MLWriter:
        """Return what writes this model, with its function."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return what reads a model."""
        return _Reader(cls)


def _as_array(frame: DataFrame, name: str) -> Any:
    """Return a column; vectors become arrays."""
    is_vector = isinstance(frame.schema[name].dataType, VectorUDT)
    return vector_to_array(frame[name]).alias(name) if is_vector else frame[name]


class _Writer(MLWriter):
    """Writes parameters as pyspark.ml does, and what is no JSON beside them."""

    def __init__(self, instance: Any) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        given = {
            param: self._instance.getOrDefault(param) for param in self._instance.params if self._instance.isSet(param)
        }
        kept = {param.name: value for param, value in given.items() if callable(value) or param.name == "jobKeys"}
        plain = self._instance.copy()
        for name in kept:
            plain.clear(plain.getParam(name))
        DefaultParamsWriter.saveMetadata(plain, path, self.sc)
        content = cloudpickle.dumps((kept, getattr(self._instance, "_trained", None)))
        self.sc.parallelize([bytearray(content)], 1).saveAsPickleFile(f"{path}/{_FUNCTIONS}")


class _Reader(MLReader):
    """Reads what `_Writer` has written."""

    def __init__(self, cls: type[Any]) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        """Return the estimator or model in a directory that its user has written."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sc)
        (content,) = self.sc.pickleFile(f"{path}/{_FUNCTIONS}").collect()
        kept, trained = cloudpickle.loads(bytes(content))
        made = self._cls(trained) if self._cls is Model else self._cls()
        made._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(made, metadata)
        made._set(**kept)
        return made
