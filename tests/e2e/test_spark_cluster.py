"""Tests that programs on a real Spark start clusters, feed them, and hear of every failure."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.sandbox import SparkSandbox
from howdah.staging.virtual_environments import ensure_environment

PROGRAMS = Path(__file__).with_name("spark_programs")
ROOT = Path(__file__).parents[2]
INSTALLED = str(ROOT / "distributions" / "tensorflowonspark" / "src")
"""Where both sides find the module tensorflowonspark, as if it was installed."""
DIGITS = ROOT / "examples" / "tensorflowonspark-digits"
LIMIT_S = 600
Run = Callable[..., str]


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def run(spark: SparkSandbox, tmp_path: Path) -> Run:
    """Give a function that runs a program by spark-submit, on two executors of two cores, and returns what it prints.

    Environments stay in the user's own cache, for they are big; nodes see them there."""

    def submit(program: Path, *arguments: object, python: Path | None = None, brought: str = "") -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")},
            **spark.env(),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "HOWDAH_SHARED_PATHS": "/",
            "HOWDAH_SPARK_HOME": str(tmp_path / "jobs"),
            "PYTHONPATH": INSTALLED,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        if python is not None:
            environment["PYSPARK_PYTHON"] = str(python)
        properties = {"spark.executor.cores": "2", "spark.cores.max": "4", "spark.executor.memory": "512m"}
        properties["spark.executorEnv.PYTHONPATH"] = INSTALLED
        words = [word for name, value in properties.items() for word in ("--conf", f"{name}={value}")]
        words += ["--py-files", str(program.with_name(brought))] if brought else []
        command = [f"{spark.home}/bin/spark-submit", *words, str(program), *map(str, arguments)]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        return done.stdout

    return submit


def said_by(printed: str) -> dict[str, Any]:
    """Return what a program has printed after the word SAID."""
    line = next(line for line in printed.splitlines() if line.startswith("SAID "))
    found: dict[str, Any] = json.loads(line.removeprefix("SAID "))
    return found


def test_programs_are_fed_and_failures_are_heard(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "sums.py", tmp_path))
    assert (said["rows"], said["rows of a frame"]) == (20000, 1000)
    assert sum(rows for rows, _ in said["sums"]) == 21000
    assert sum(total for _, total in said["sums"]) == 2 * sum(range(10000)) + sum(range(1000))
    assert said["streamed"] == [f"{place} {number}" for place in ("first", "second") for number in range(3)]
    assert said["doubled"]
    assert said["frame"]
    assert "worker:1" in said["error"]
    assert "ValueError: this is what is wrong" in said["error"]
    assert said["rows of a program that stops"] < 32000
    assert said["usable"] == 45


def test_programs_for_tensorflowonspark_run_unchanged(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "tensorflowonspark_api.py", tmp_path))
    assert said["nodes"] == [["ps", 0, 0], ["chief", 0, 1], ["worker", 0, 2], ["worker", 1, 3]]
    assert said["tf_config"] == {"type": "chief", "index": 0}
    assert said["argv"] == ["program", "--flag"]
    assert sum(said["sums"]) == 10 * sum(range(100))
    assert said["inferred"] == [number * number for number in range(100)]
    assert said["taken"] == [100, 100]
    assert said["tensorboard"].startswith("http://127.")
    beside_driver = [number >= 10**12 for number in said["containers"]]  # no number of a task of Spark is so high
    assert beside_driver == [True, False, False]
    assert sorted(said["parallel"]) == [0, 1]
    assert said["loaded"] == [[1, 1.5, "a", [1, 2]], [2, 2.5, "b", [3, 4]], [None, None, "c", [5, 6]]]
    assert "broken on purpose" in said["error"]
    assert said["usable"] == 45


def test_functions_are_called_on_executors(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "distributor.py", tmp_path))
    assert (said["run"], said["all"], said["decorated"], said["beside the driver"]) == (6, [5, 6], [4, 8], 7)
    assert said["error"] == "this is what is wrong"
    assert re.search(r"in worker:1 on \S+:\nTraceback", said["traceback"]), said["traceback"]
    assert said["seconds until the error"] < 60
    assert said["error at once"] == "KeyError: 'at once'"
    assert [sum(column) for column in zip(*said["sums"], strict=True)] == [1000, sum(range(1000))]
    assert said["of an empty frame"] == [[0, 0], [0, 0]]
    assert said["no GPUs"] == "RuntimeError: 'spark.task.resource.gpu.amount' was unset, so gpu usage is unavailable."
    assert "SpecError: function: cannot be sent: its variable 'frame' is a pyspark.sql" in said["closes over a frame"]
    assert (said["program"], said["ran"], said["usable"]) == (None, "ran", 45)


def test_an_estimator_works_in_pipelines_and_cross_validation(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "estimator.py", tmp_path))
    assert (said["columns"][-1], said["rows"], said["loaded"]) == ("prediction", 200, [2, True])
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


@pytest.mark.parametrize("given", ["spark", "tensorflow"])  # streams are in the test before
def test_an_example_for_tensorflowonspark_trains(run: Run, tmp_path: Path, tensorflow: Path, given: str) -> None:
    """The accuracy is that of the saved model, with which TFParallel predicts; the example fails below 0.9."""
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model", "--input", given)
    assert "test accuracy 0.9" in run(DIGITS / "train.py", *arguments, python=tensorflow, brought="digits.py")


def test_an_example_of_a_pipeline_fits_and_transforms(run: Run, tmp_path: Path, tensorflow: Path) -> None:
    arguments = (ROOT / "examples" / "data" / "digits", tmp_path / "model")
    assert "test accuracy 0.9" in run(DIGITS / "pipeline.py", *arguments, python=tensorflow, brought="digits.py")


def test_records_are_a_data_source(run: Run, tmp_path: Path) -> None:
    said = said_by(run(PROGRAMS / "tfrecords.py", tmp_path))
    assert said["schema"] == "struct<id:bigint,image:binary,name:string,weights:array<double>>"
    assert said["rows"] == 30
    assert said["same"]
    assert said["again"] == 30
