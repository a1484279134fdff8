"""Measures how fast Spark feeds a program, beside reading alone and beside TensorFlowOnSpark, and how soon a cluster
starts, fails and ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.report import Report, ratios
from bench.rivals import tensorflowonspark
from bench.temp_home import LIMIT_S, temp_home
from howdah.config.settings import variable_of
from howdah.sandbox import SparkSandbox

ROWS, ROUNDS = 12_000, 3
RIVAL_ROWS, RIVAL_ROUNDS, RIVAL_TURNS = 4_000, 2, 2
OF_ARROW, OF_ROWS, OF_RIVAL, OF_RIVALS_START = 0.7, 0.9, 20.0, 0.5
RIVALS_EXECUTORS = {"spark.executor.cores": "1", "spark.cores.max": "2"}
"""TensorFlowOnSpark wants one task in each executor, and as many executors as nodes."""
MODULE = Path(__file__).parents[1] / "distributions" / "tensorflowonspark" / "src"
MAX_ERROR_S, MAX_STOP_S = 5.0, 1.0
_LABELS = {
    "frame": "DataFrame to a program",
    "arrow": "mapInArrow that throws its batches away",
    "rdd": "RDD to a program",
    "rows": "an RDD's rows read alone",
}


def measure(report: Report) -> None:
    """Feed one program on two workers, in turns with the reading alone."""
    with temp_home() as home, SparkSandbox(home / "spark") as sandbox:
        found = _run_ours(sandbox, home)
        rival = tensorflowonspark()
        if rival:
            _compare(report, found, *_run_in_turns(rival, sandbox, home))
    for width in ("784", "16"):
        rates = found[width]
        for name, label in _LABELS.items():
            report.figure(f"{width} numbers: {label}", rates[name], "rows/s")
        frame = report.figure("DataFrame ÷ mapInArrow", ratios(rates["frame"], rates["arrow"]), "x")
        report.target(f"DataFrame of {width} numbers ÷ mapInArrow", frame, OF_ARROW, at_least=True)
        rows = report.figure("RDD ÷ its rows alone", ratios(rates["rdd"], rates["rows"]), "x")
        report.target(f"RDD of {width} numbers ÷ its rows alone", rows, OF_ROWS, at_least=True)
    report.figure("start of a cluster of two", found["start"])
    report.target("an error in the driver", report.figure("an error in the driver", found["error"]), MAX_ERROR_S, "s")
    report.target("shutdown", report.figure("shutdown", found["stop"]), MAX_STOP_S, "s")


def _compare(report: Report, found: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Report one program for TensorFlowOnSpark, run with its own module and with howdah's."""
    for width in ("784", "16"):
        them = report.figure(f"{width} numbers: RDD, TensorFlowOnSpark", theirs[width], "rows/s")
        us = report.figure(f"{width} numbers: RDD, the same program on howdah", ours[width], "rows/s")
        frames = sum(found[width]["frame"]) / len(found[width]["frame"])
        print(f"  {width} numbers: the same program on howdah ÷ TensorFlowOnSpark: {us / them:.1f}")
        report.target(f"DataFrame of {width} numbers ÷ TensorFlowOnSpark", frames / them, OF_RIVAL, at_least=True)
    start = report.figure("start to the last function's call, TensorFlowOnSpark", theirs["starts"])
    mine = report.figure("start to the last function's call, howdah", ours["starts"])
    report.target("start ÷ TensorFlowOnSpark's", mine / start, OF_RIVALS_START)
    report.figure("shutdown, TensorFlowOnSpark", theirs["stops"])
    report.figure("shutdown, the same program on howdah", ours["stops"])


def _run_in_turns(rival: str, sandbox: SparkSandbox, home: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run one program with the rival's module and with howdah's in turns; return what each has measured."""
    sides: tuple[dict[str, list[float]], dict[str, list[float]]] = ({}, {})
    for turn in range(RIVAL_TURNS):
        for number, (side, python) in enumerate(zip(sides, (rival, sys.executable), strict=True)):
            directory = home / f"calls-{turn}-{number}"
            directory.mkdir()
            arguments = [str(RIVAL_ROWS), str(RIVAL_ROUNDS), str(directory)]
            path = "" if number == 0 else MODULE
            said = _run(sandbox, home, "tensorflowonspark_feeding.py", arguments, python, path, **RIVALS_EXECUTORS)
            for name, values in said.items():
                side.setdefault(name, []).extend(values)
    return sides


def _run_ours(sandbox: SparkSandbox, home: Path) -> dict[str, Any]:
    return _run(sandbox, home, "feeding.py", [str(ROWS), str(ROUNDS)], sys.executable, "")


def _run(
    sandbox: SparkSandbox, home: Path, name: str, arguments: list[str], python: str, path: Path | str, **more: str
) -> dict[str, Any]:
    """Return what a program prints as JSON."""
    printed = start_program(sandbox, home, name, arguments, python, path, **more)
    found: dict[str, Any] = json.loads(printed.rpartition("SAID ")[2].splitlines()[0])
    return found


def start_program(
    sandbox: SparkSandbox, home: Path, name: str, arguments: list[str], python: str, path: Path | str = "", **more: str
) -> str:
    """Run a program on Spark with this Python and PYTHONPATH, and `more` properties; return what it prints."""
    environment = {**os.environ, **sandbox.env(), variable_of("spark.home"): str(home / "jobs")}
    environment |= {"PYSPARK_DRIVER_PYTHON": python, "PYSPARK_PYTHON": python, "PYTHONPATH": str(path)}
    properties = {"spark.executor.cores": "4", "spark.executor.memory": "2g", "spark.driver.memory": "1g"}
    properties |= ({"spark.executorEnv.PYTHONPATH": str(path)} if path else {}) | more
    words = [word for key, value in properties.items() for word in ("--conf", f"{key}={value}")]
    program = str(Path(__file__).with_name("spark_programs") / name)
    command = [f"{sandbox.home}/bin/spark-submit", *words, program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60 * LIMIT_S)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}")
    return done.stdout
