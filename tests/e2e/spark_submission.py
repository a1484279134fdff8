"""Runs programs by spark-submit on a sandbox of Spark, and says what those must print that run on several versions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.sandbox import SparkSandbox

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).with_name("spark_programs")
DIGITS = ROOT / "examples" / "tensorflowonspark-digits"
INSTALLED = f"{ROOT / 'distributions' / 'tensorflowonspark' / 'src'}:{ROOT / 'src'}"
"""Where both sides find the module tensorflowonspark and howdah, as if they were installed."""
LIMIT_S = 600
Run = Callable[..., str]


def submitter(spark: SparkSandbox, directory: Path) -> Run:
    """Return a function that runs a program by spark-submit, on two executors of two cores, and returns what it prints.

    Environments stay in the user's own cache, for they are big; nodes see them there."""

    def submit(program: Path, *arguments: object, python: Path | None = None, brought: str = "") -> str:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in ("HOWDAH_HOME", "HADOOP_CONF_DIR")},
            **spark.env(),
            "XDG_STATE_HOME": str(directory / "state"),
            "HOWDAH_SHARED_PATHS": "/",
            "HOWDAH_SPARK_HOME": str(directory / "jobs"),
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
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            environment["TMPDIR"] = temporary
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=directory
            )
            left = [path.name for path in Path(temporary).glob("howdah-*")]
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
        assert not left
        return done.stdout

    return submit


def said_by(printed: str) -> dict[str, Any]:
    """Return what a program has printed after the word SAID."""
    line = next(line for line in printed.splitlines() if line.startswith("SAID "))
    found: dict[str, Any] = json.loads(line.removeprefix("SAID "))
    return found


def check_tensorflowonspark(said: dict[str, Any]) -> None:
    """Check what tensorflowonspark_api.py has said."""
    assert said["nodes"] == [["ps", 0, 0], ["chief", 0, 1], ["worker", 0, 2], ["worker", 1, 3]]
    assert said["tf_config"] == {"type": "chief", "index": 0}
    assert said["argv"] == ["program", "--flag"]
    assert sum(said["sums"]) == 10 * sum(range(100)) + sum(range(10))
    assert said["inferred"] == [number * number for number in range(100)]
    assert said["taken"] == [100, 100]
    assert said["tensorboard"].startswith("http://127.")
    assert said["tensorboard port"], said["tensorboard"]
    beside_driver = [number >= 10**12 for number in said["containers"]]  # no number of a task of Spark is so high
    assert beside_driver == [True, False, False]
    assert sorted(said["parallel"]) == [0, 1]
    assert said["loaded"] == [[1, 1.5, "a", [1, 2]], [2, 2.5, "b", [3, 4]], [None, None, "c", [5, 6]]]
    assert "broken on purpose" in said["error"]
    assert said["usable"] == 45


def check_distributor(said: dict[str, Any]) -> None:
    """Check what distributor.py has said."""
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
