"""Tests that programs on a real Spark start clusters, feed them, and hear of every failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_submission import DIGITS, PROGRAMS, ROOT, Run, check_distributor, check_tensorflowonspark, said_by, submitter

from howdah.sandbox import SparkSandbox
from howdah.staging.virtual_environments import ensure_environment


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def run(spark: SparkSandbox, tmp_path: Path) -> Run:
    return submitter(spark, tmp_path)


def test_programs_are_fed_and_failures_are_heard(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "sums.py", tmp_path))
    assert (said["rows"], said["rows of a frame"]) == (20000, 1000)
    assert sum(rows for rows, _ in said["sums"]) == 21000
    assert sum(total for _, total in said["sums"]) == 2 * sum(range(10000)) + sum(range(1000))
    assert said["doubled"]
    assert said["frame"]
    assert "worker:1" in said["error"]
    assert "ValueError: this is what is wrong" in said["error"]
    assert said["usable"] == 45


def test_streams_are_fed_and_programs_may_stop_or_be_late(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "ends.py", tmp_path))
    assert said["streamed"] == [f"{place} {number}" for place in ("first", "second") for number in range(3)]
    assert not said["stream goes on"]
    assert said["rows of a program that stops"] < 32000
    assert said["usable"] == 45


def test_programs_for_tensorflowonspark_run_unchanged(run: Run, tmp_path: Path) -> None:
    check_tensorflowonspark(said_by(run(PROGRAMS / "tensorflowonspark_api.py", tmp_path)))


def test_functions_are_called_on_executors(run: Run, tmp_path: Path) -> None:
    check_distributor(said_by(run(PROGRAMS / "distributor.py", tmp_path)))


def test_an_estimator_works_in_pipelines_and_cross_validation(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "estimator.py", tmp_path))
    assert (said["columns"][-1], said["rows"], said["loaded"]) == ("prediction", 200, [2, True])
    assert said["vectors"]
    small, right = said["errors by batch size"]
    assert max(said["error"], said["error when loaded"], right) < 1e-9 < 1 < small
    assert said["no such column"] == "fit: the DataFrame has no column 'features'; it has a, b, label"


def test_a_program_for_torchdistributor_trains(run: Run) -> None:
    program = ROOT / "examples" / "spark-digits-pytorch" / "distributor.py"
    assert "test accuracy 0.9" in run(program, ROOT / "examples" / "data" / "digits", brought="fit.py")


def test_the_example_trains_on_a_dataframe(run: Run, tmp_path: Path) -> None:
    """The accuracy is that of the saved model, which other programs load; the example fails below 0.9."""
    program = ROOT / "examples" / "spark-digits-pytorch" / "fit.py"
    assert "test accuracy 0.9" in run(program, ROOT / "examples" / "data" / "digits", tmp_path / "model")


@pytest.fixture(scope="module")
def tensorflow() -> Path:
    """Return the Python of the example's own environment, which stays in the user's cache."""
    return ensure_environment(DIGITS / "requirements.lock", print) / "bin" / "python"


@pytest.mark.parametrize("given", ["spark", "stream", "tensorflow"])
def test_an_example_for_tensorflowonspark_trains(run: Run, tmp_path: Path, tensorflow: Path, given: str) -> None:
    """The accuracy is that of the saved model, with which TFParallel predicts; the example fails below 0.9."""
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model", "--input", given)
    assert "test accuracy 0.9" in run(DIGITS / "train.py", *arguments, python=tensorflow, brought="digits.py")


def test_an_example_of_a_pipeline_fits_and_transforms(run: Run, tmp_path: Path, tensorflow: Path) -> None:
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model")
    assert "test accuracy 0.9" in run(DIGITS / "pipeline.py", *arguments, python=tensorflow, brought="digits.py")


def test_tensors_have_the_names_that_keras_2_gives(run: Run, tmp_path: Path, tensorflow: Path) -> None:
    assert said_by(run(PROGRAMS / "keras_names.py", tmp_path, python=tensorflow))["sums"] == [3.0, 7.0]


def test_records_are_a_data_source(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "tfrecords.py", tmp_path))
    assert said["schema"] == "struct<id:bigint,image:binary,name:string,weights:array<double>>"
    assert said["rows"] == 30
    assert said["same"]
    assert said["again"] == 30
