"""Tests clusters that a real notebook kernel starts: the table below the cell, and the stop button."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook_kernel import Message, NotebookKernel, started, text_of

from howdah.sandbox import SparkSandbox

STOP_LIMIT_S = 60
START = """
from pyspark.sql import SparkSession
from howdah.spark import Cluster
spark = SparkSession.builder.config("spark.cores.max", "4").config("spark.executor.memory", "512m").getOrCreate()

def add(context):
    while context.feed().next_batch(10):
        pass

def slow(context):
    import time
    while context.feed().next_batch(10):
        time.sleep(1)
"""
TRAIN = """
with Cluster.run(spark, add, roles=2) as cluster:
    print("rows", cluster.train(spark.sparkContext.parallelize(range(100), 4)))
"""
TRAIN_LONG = """
cluster = Cluster.run(spark, slow, roles=2)
print("feeds now")
cluster.train(spark.sparkContext.parallelize(range(10**6), 4).map(lambda number: [float(number)] * 1000))
"""
GO_ON = """
print(cluster.outcome.state.value, spark.sparkContext.parallelize(range(10), 2).sum())
with Cluster.run(spark, add, roles=2) as again:
    pass
print(again.outcome.state.value)
"""


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def kernel(spark: SparkSandbox, tmp_path: Path) -> Iterator[NotebookKernel]:
    variables = {**os.environ, **spark.env(), "HOWDAH_HOME": str(tmp_path / "howdah")}
    variables |= {"HOWDAH_SPARK_HOME": str(tmp_path / "jobs"), "HOWDAH_SHARED_PATHS": "/"}
    python = Path(spark.home, "python")
    path = ":".join(map(str, [python, *python.glob("lib/py4j-*.zip")]))
    variables |= {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    with started(variables, tmp_path) as kernel:
        yield kernel


def test_a_cell_shows_a_table_and_its_interruption_stops_the_cluster_alone(kernel: NotebookKernel) -> None:
    assert kernel.run(START).error == ""
    done = kernel.run(TRAIN)
    assert done.error == "", done.traceback
    assert "rows 100" in done.printed
    tables = [text for text in done.displayed if "worker:0" in text]
    assert any("worker:1" in table and "RUNNING" in table for table in tables), done.displayed
    assert "SUCCEEDED" in tables[-1]

    interrupted: list[float] = []

    def interrupt(message: Message) -> None:
        if "feeds now" in text_of(message) and not interrupted:
            interrupted.append(time.monotonic())
            kernel.interrupt()

    assert kernel.run(TRAIN_LONG, interrupt).error == "KeyboardInterrupt"
    assert time.monotonic() - interrupted[0] < STOP_LIMIT_S
    done = kernel.run("import time\nwhile cluster.outcome is None: time.sleep(0.1)\n" + GO_ON)
    assert done.error == "", done.traceback
    assert "CANCELLED 45" in done.printed
    assert "SUCCEEDED" in done.printed
