"""Tests Spark's own cluster for trying, `local-cluster[…]`, whose executors are processes without a master to start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_submission import INSTALLED, PROGRAMS, said_by

from howdah.sandbox.spark_install import spark_home
from howdah.storage.content_cache import local_directory

HOWDAH = str(Path(sys.executable).with_name("howdah"))
CACHE = local_directory()
MASTER = "local-cluster[2,2,2048]"
JOB = """
name: two-roles
roles:
  ps: {replicas: 1, command: "echo the ps", resources: {memory: 256MiB}}
  worker: {replicas: 2, command: "echo a worker", resources: {memory: 256MiB}}
"""
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    left_out = ("HADOOP_CONF_DIR", "SPARK_CONF_DIR", "XDG_STATE_HOME")
    home = {"HOWDAH_HOME": str(tmp_path / "home"), "SPARK_HOME": str(spark_home(CACHE, print)), "HOWDAH_LANGUAGE": "en"}
    return {name: value for name, value in os.environ.items() if name not in left_out} | home


def test_a_job_file_with_two_roles_runs_there(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    settings = {"HOWDAH_SPARK_MASTER": MASTER, "HOWDAH_SPARK_HOME": str(tmp_path / "jobs")}

    def howdah(*words: str, **more: str) -> str:
        command = [HOWDAH, *words]
        variables = environment | settings | more
        done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        return done.stdout + done.stderr

    said = howdah("run", "--on", "spark", "job.yaml")
    assert "SUCCEEDED" in said, said
    assert "a worker" in howdah("logs", "@last", "worker:1")
    refused = howdah("run", "--on", "spark", "job.yaml", HOWDAH_SPARK_MASTER="local-cluster[1,2,2048]")
    assert "3 cores are needed at the same time, and local-cluster[1,2,2048] has 2" in refused


def test_a_program_feeds_a_cluster_there_without_any_setting(environment: dict[str, str], tmp_path: Path) -> None:
    """The home is then below the user's own one, which the job's master and its follower must both find."""
    variables = environment | {"PYTHONPATH": INSTALLED, "HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable}
    del variables["HOWDAH_HOME"]
    submit = [f"{variables['SPARK_HOME']}/bin/spark-submit", "--master", MASTER, "--conf", "spark.executor.cores=2"]
    command = [*submit, str(PROGRAMS / "sums.py"), str(tmp_path)]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-6000:]
    said = said_by(done.stdout)
    assert (said["rows"], said["rows of a frame"], said["doubled"], said["frame"]) == (20000, 1000, True, True)
    assert "ValueError: this is what is wrong" in said["error"]
