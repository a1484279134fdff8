"""Tests the parts of the estimator for Spark that need no Spark."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import cloudpickle
import numpy
import pyarrow
import pyspark_stand_in
import pytest

from howdah.spark.partition_functions import predict_arrow


def predicted(monkeypatch: pytest.MonkeyPatch, predict: Any, are_vectors: bool, rows: int = 2) -> pyarrow.Array:
    """Return the column that is added to that many rows."""
    pyspark: Any = ModuleType("pyspark")
    pyspark.cloudpickle = cloudpickle
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    batch = pyarrow.record_batch({"array": pyarrow.array([[1.0, 2.0], [3.0, 4.0]][:rows])})
    packed = cloudpickle.dumps((None, predict))
    (made,) = predict_arrow(packed, "array", "features", "prediction", are_vectors)([batch])
    assert made.schema.names == ["array", "prediction"]
    return made.column(1)


@pytest.mark.parametrize(
    ("values", "are_vectors", "column"),
    [
        ([1, None], False, [1.0, None]),
        (numpy.array([1, 2], "float32"), False, [1.0, 2.0]),
        (numpy.array([[1], [2]]), False, [1.0, 2.0]),
        (numpy.array([[1, 2, 3], [4, 5, 6]], "float32"), True, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ([[1, 2], [3, 4]], True, [[1.0, 2.0], [3.0, 4.0]]),
        ([1, 2], True, [[1.0], [2.0]]),
    ],
)
def test_predictions_are_numbers_or_vectors(
    monkeypatch: pytest.MonkeyPatch, values: Any, are_vectors: bool, column: Any
) -> None:
    found = predicted(monkeypatch, lambda _model, _columns: values, are_vectors)
    assert found.to_pylist() == column
    assert found.type == (pyarrow.list_(pyarrow.float64()) if are_vectors else pyarrow.float64())


@pytest.mark.parametrize("are_vectors", [False, True])
def test_no_rows_have_no_predictions(monkeypatch: pytest.MonkeyPatch, are_vectors: bool) -> None:
    found = predicted(monkeypatch, lambda _model, _columns: numpy.zeros((0, 3))[:, :1], are_vectors, rows=0)
    assert found.to_pylist() == []


def test_vectors_that_were_not_announced_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"3 values for each row: set predictionType to 'array<double>'$"):
        predicted(monkeypatch, lambda _model, _columns: numpy.zeros((2, 3)), are_vectors=False)
    with pytest.raises(ValueError, match="returned 1 predictions for 2 rows"):
        predicted(monkeypatch, lambda _model, _columns: [[1, 2]], are_vectors=True)


def test_each_param_has_a_setter_and_a_getter(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark_stand_in.install(monkeypatch)
    from howdah.spark.estimator import Estimator, Model

    own = ("TrainFunction", "NumWorkers", "UseGpu", "Framework", "BatchSize", "Epochs", "ModelDir", "JobKeys")
    for cls, names in ((Estimator, own), (Model, ())):
        for name in (*names, "PredictFunction", "PredictionType"):
            values: dict[str, Any] = {}
            instance = SimpleNamespace(_set=lambda values=values, **given: values.update(given) or "itself")
            instance.getOrDefault = values.__getitem__
            assert getattr(cls, f"set{name}")(instance, 1) == "itself"
            assert (getattr(cls, f"get{name}")(instance), values) == (1, {name[0].lower() + name[1:]: 1})
