"""Tests that programs run on Spark 3.5 with TensorFlow 2.15, whose Keras is version 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from spark_submission import DIGITS, PROGRAMS, ROOT, Run, check_distributor, check_tensorflowonspark, said_by, submitter

from howdah.sandbox import SparkSandbox, spark_install
from howdah.staging.virtual_environments import ensure_environment

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 12), reason="TensorFlow 2.15 is for Python 3.11 and older")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def python() -> Path:
    """Return the Python of an environment with pyspark and TensorFlow, which stays in the user's cache."""
    return ensure_environment(ROOT / "requirements" / "spark35.txt", print) / "bin" / "python"


@pytest.fixture(scope="module")
def spark(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSandbox]:
    """Start the Spark of the environment: its package has the whole of it."""
    base = tmp_path_factory.mktemp("spark")
    home = next(python.parents[1].glob("lib/python*/site-packages/pyspark"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_install, "spark_home", lambda cache, progress: home)
        with SparkSandbox(base / "run") as running:
            yield running


@pytest.fixture
def run(spark: SparkSandbox, tmp_path: Path) -> Run:
    return submitter(spark, tmp_path)


def test_programs_for_tensorflowonspark_run_unchanged(run: Run, tmp_path: Path, python: Path) -> None:
    """The program feeds training and inference, and writes and reads TFRecords."""
    check_tensorflowonspark(said_by(run(PROGRAMS / "tensorflowonspark_api.py", tmp_path, python=python)))


def test_functions_are_called_on_executors(run: Run, tmp_path: Path, python: Path) -> None:
    check_distributor(said_by(run(PROGRAMS / "distributor.py", tmp_path, python=python)))


def test_keras_2_trains_on_what_spark_feeds(run: Run, tmp_path: Path, python: Path) -> None:
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model")
    assert "test accuracy 0.9" in run(DIGITS / "train.py", *arguments, python=python, brought="digits.py")


def test_a_pipeline_of_keras_2_fits_and_transforms(run: Run, tmp_path: Path, python: Path) -> None:
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model")
    assert "test accuracy 0.9" in run(DIGITS / "pipeline.py", *arguments, python=python, brought="digits.py")


def test_tensors_have_the_names_that_keras_2_gives(run: Run, tmp_path: Path, python: Path) -> None:
    assert said_by(run(PROGRAMS / "keras_names.py", tmp_path, python=python))["sums"] == [3.0, 7.0]
