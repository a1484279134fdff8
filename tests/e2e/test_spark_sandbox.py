"""Tests that the sandbox is a real Spark for whoever knows its address and its secret, and that it stops what it has
started."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailable, SpecError
from howdah.sandbox import SparkSandbox
from howdah.sandbox.process import with_variables
from howdah.sandbox.spark import SparkShape
from howdah.storage.content_cache import local_directory

HOWDAH = str(Path(sys.executable).with_name("howdah"))
CACHE = local_directory()
"""The user's cache, found before a test has a home of its own: Spark is fetched into it once."""
LIMIT_S = 600
SUM = """
from pyspark import SparkContext
context = SparkContext(appName="sum")
print("sum", context.parallelize(range(1000), 4).map(lambda number: 2 * number).sum(), flush=True)
context.stop()
"""
SLEEP = """
import os, pathlib, sys, time
from pyspark import SparkContext
path = sys.argv[1]
def run(_):
    pathlib.Path(path).write_text(str(os.getpid()))
    time.sleep(600)
SparkContext(appName="sleep").parallelize([1], 1).foreach(run)
"""

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSandbox]:
    shape = SparkShape(nodes=2, memory_mib=1500, vcores=2)
    with SparkSandbox(tmp_path_factory.mktemp("spark"), shape, cache=CACHE) as box:
        yield box


def submit(box: SparkSandbox, program: str, directory: Path, *arguments: str, **variables: str) -> list[str]:
    """Return the command that runs a program on the workers of the sandbox; `variables` are properties."""
    path = directory / "program.py"
    path.write_text(program)
    properties = [word for name, value in variables.items() for word in ("--conf", f"{name.replace('_', '.')}={value}")]
    return [f"{box.home}/bin/spark-submit", "--master", box.master_url, *properties, str(path), *arguments]


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s"
        time.sleep(0.2)


def runs(pid_file: Path) -> bool:
    try:
        return bool(Path("/proc", pid_file.read_text().strip(), "cmdline").read_bytes())
    except OSError:
        return False


def test_a_program_runs_on_the_workers(spark: SparkSandbox, tmp_path: Path) -> None:
    done = run(submit(spark, SUM, tmp_path), **spark.env())
    assert "sum 999000" in done.stdout, done.stderr[-2000:]
    worked = list(spark.run_dir.glob("work/*/app-*/*/stderr"))
    assert worked, "executors ran below the workers"


def test_only_this_user_has_the_secret(spark: SparkSandbox, tmp_path: Path) -> None:
    defaults = spark.run_dir / "conf" / "spark-defaults.conf"
    assert stat.S_IMODE(defaults.stat().st_mode) == 0o600
    lines = dict(line.split(" ", 1) for line in defaults.read_text().splitlines())
    assert lines["spark.authenticate"] == "true"
    for daemon in spark.status():
        assert daemon.pid is not None
        assert lines["spark.authenticate.secret"].encode() not in Path(f"/proc/{daemon.pid}/cmdline").read_bytes()
        assert daemon.address.startswith("127.0.0.")
    (tmp_path / "conf").mkdir()
    stranger = submit(spark, SUM, tmp_path, spark_driver_host="127.0.0.1", spark_ui_enabled="false")
    done = run(["timeout", "120", *stranger], SPARK_HOME=str(spark.home), SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert "sum 999000" not in done.stdout


def test_a_killed_worker_is_told_and_comes_back(spark: SparkSandbox, tmp_path: Path) -> None:
    program = submit(spark, SLEEP, tmp_path, str(tmp_path / "pid"))
    driver = subprocess.Popen(program, env={**os.environ, **spark.env()}, stderr=subprocess.DEVNULL)
    try:
        until(lambda: runs(tmp_path / "pid") or driver.poll() is not None, "a task of the program")
        assert runs(tmp_path / "pid"), "the program has ended"
        for name in spark.shape.worker_names:
            spark.stop(name, 9)
        assert not runs(tmp_path / "pid"), "what a worker has started ends with it"
        up = {daemon.name: daemon.up for daemon in spark.status()}
        assert up == {"master": True, "worker1": False, "worker2": False}
    finally:
        driver.kill()
        driver.wait()
    spark.up()
    assert spark.is_up()


def test_one_shape_at_a_time(spark: SparkSandbox) -> None:
    with pytest.raises(SpecError, match="down --spark"):
        SparkSandbox(spark.run_dir, SparkShape(nodes=1), cache=CACHE).up()
    with pytest.raises(SpecError, match="memory_mib: is 64, must be at least 1024"):
        SparkSandbox(shape=SparkShape(memory_mib=64))
    with pytest.raises(EngineUnavailable, match="sandbox up --spark"):
        SparkSandbox(spark.run_dir / "none").start("master")


def test_the_command_line(tmp_path: Path) -> None:
    home = {"HOWDAH_HOME": str(tmp_path), "HOWDAH_LANGUAGE": "en"}
    local = tmp_path / "cache"  # where this home keeps its cache
    local.mkdir()
    (local / f"spark-{SparkSandbox(cache=CACHE).version}").symlink_to(next(CACHE.glob("spark-*")))
    started = run([HOWDAH, "sandbox", "up", "--spark", "--nodes", "1", "--memory", "1500MiB"], **home)
    try:
        assert started.returncode == 0, started.stderr
        ready, _, command = started.stdout.strip().partition("to try it: ")
        assert ready.startswith("sandbox is up: Spark 4.")
        tried = run(["/bin/sh", "-c", command])
        assert "Pi is roughly 3.1" in tried.stdout, tried.stderr[-2000:]
        listed = run([HOWDAH, "sandbox", "status", "--json"], **home).stdout.splitlines()
        assert [(row["name"], row["up"]) for row in map(json.loads, listed)] == [("master", True), ("worker1", True)]
        assert "export SPARK_CONF_DIR=" in run([HOWDAH, "sandbox", "env"], **home).stdout
    finally:
        run([HOWDAH, "sandbox", "down", "--spark"], **home)
    assert not (tmp_path / "state" / "sandbox-spark").exists()
    assert with_variables({"HOWDAH_SANDBOX": f"{tmp_path}/state/sandbox-spark/"}) == []
