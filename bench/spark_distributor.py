"""Measures how soon Spark's TorchDistributor and howdah's call a function on two nodes, and bring it a DataFrame."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.report import Report, ratios
from bench.rivals import torch_distributor
from bench.spark import start_program
from bench.temp_home import temp_home
from howdah.sandbox import SparkSandbox

ROWS, ROUNDS = 20_000, 3
MAX_START, MIN_LOADER = 0.6, 2.0


def measure(report: Report) -> None:
    """Run both in turns, in one application, with the same Python of the nodes."""
    python = torch_distributor()
    if python is None:
        return
    with temp_home() as home, SparkSandbox(home / "spark") as sandbox:
        programs = str(Path(__file__).with_name("spark_programs"))
        arguments = [str(ROWS), str(ROUNDS)]
        more = {"spark.pyspark.python": python, "spark.pyspark.driver.python": sys.executable}
        printed = start_program(sandbox, home, "distributors.py", arguments, sys.executable, programs, **more)
    found = json.loads(printed.rpartition("SAID ")[2].splitlines()[0])
    theirs, ours = found["pyspark"], found["howdah"]
    report.figure("call → function called on both nodes, TorchDistributor", theirs["start"])
    report.figure("call → function called on both nodes, howdah", ours["start"])
    start = report.figure("start ÷ TorchDistributor's", ratios(ours["start"], theirs["start"]), "x")
    report.target("start ÷ TorchDistributor's", start, MAX_START)
    report.figure("call → last row of 784 numbers, TorchDistributor", theirs["rows"], "rows/s")
    report.figure("call → last row of 784 numbers, howdah", ours["rows"], "rows/s")
    rows = report.figure("rows ÷ TorchDistributor's", ratios(ours["rows"], theirs["rows"]), "x")
    report.target("rows ÷ TorchDistributor's loader", rows, MIN_LOADER, at_least=True)
