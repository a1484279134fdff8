"""Tests the estimator and the model of the module tensorflowonspark, without a Spark and without TensorFlow."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyspark_stand_in
import pytest

SOURCE = Path(__file__).parents[2] / "distributions" / "tensorflowonspark" / "src"


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pyspark_stand_in.install(monkeypatch)
    monkeypatch.syspath_prepend(str(SOURCE))
    from tensorflowonspark import pipeline

    yield pipeline
    for name in [each for each in sys.modules if each.partition(".")[0] == "tensorflowonspark"]:
        del sys.modules[name]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for TensorFlow; the list has the directory of each model that was loaded."""
    found: list[str] = []
    signature = SimpleNamespace(inputs=[], structured_input_signature=((), {}), structured_outputs={})

    def load(directory: str, tags: list[str]) -> Any:
        found.append(directory)
        return SimpleNamespace(signatures={"serving_default": signature})

    def stat(path: str) -> Any:
        try:
            status = Path(path).stat()
            return SimpleNamespace(mtime_nsec=status.st_mtime_ns, length=status.st_size)
        except FileNotFoundError as error:
            raise tensorflow.errors.OpError from error

    tensorflow: Any = ModuleType("tensorflow")
    tensorflow.saved_model, tensorflow.io = (
        SimpleNamespace(load=load),
        SimpleNamespace(gfile=SimpleNamespace(stat=stat)),
    )
    tensorflow.errors = SimpleNamespace(OpError=type("OpError", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    return found


def test_a_model_that_was_saved_again_is_loaded_again(
    pipeline: Any, loaded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's Python stays for the next job."""
    monkeypatch.setattr(pipeline, "single_node_env", lambda args: None)
    args = Namespace(
        export_dir=str(tmp_path),
        model_dir=None,
        signature_def_key="serving_default",
        tag_set="serve",
        input_mapping={},
        output_mapping={},
        batch_size=1,
    )

    def predict() -> int:
        assert list(pipeline._run_model_tf2([], args, args)) == []
        return len(loaded)

    assert [predict(), predict()] == [1, 1]  # there is no such file, as where the graph is a text
    (tmp_path / "saved_model.pb").touch()
    assert [predict(), predict()] == [2, 2]
    os.utime(tmp_path / "saved_model.pb", ns=(1, 1))
    assert [predict(), predict()] == [3, 3]


class Job:
    """A cluster as howdah has it; `did` has what became of it."""

    def __init__(self) -> None:
        self.did: list[str] = []

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.did.append("cancelled" if kind else "shut down")


class Dataset:
    """A DataFrame."""

    rdd = "rows"

    def select(self, columns: list[str]) -> Dataset:
        assert columns == ["image"]
        return self


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_cluster_whose_data_cannot_be_read_is_cancelled(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    from tensorflowonspark import TFCluster

    job, stopped = Job(), []

    def train(_rows: Any, _epochs: int) -> None:
        raise error("no such file")

    server = SimpleNamespace(stop=lambda: stopped.append(True))
    cluster = SimpleNamespace(job=job, server=server, train=train)
    monkeypatch.setattr(TFCluster, "run", lambda *_arguments, **_named: cluster)
    with pytest.raises(error, match="no such file"):
        fit(pipeline, {"image": "x"})
    assert (job.did, stopped) == (["cancelled"], [True])


def test_an_estimator_without_columns_is_refused(pipeline: Any) -> None:
    with pytest.raises(Exception, match="input_mapping is empty: it names the columns to train on"):
        fit(pipeline, {})


def fit(pipeline: Any, mapping: dict[str, str]) -> Any:
    defaults = {"cluster_size": 1, "num_ps": 0, "tensorboard": False, "model_dir": None, "driver_ps_nodes": False}
    args = Namespace(argv=None, input_mode=1, master_node="chief", epochs=1, **defaults)
    estimator = SimpleNamespace(
        train_fn=print, export_fn=None, merge_args_params=lambda: args, getInputMapping=lambda: mapping
    )
    return pipeline.TFEstimator._fit(estimator, Dataset())
