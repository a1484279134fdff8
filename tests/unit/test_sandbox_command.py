"""Tests `howdah sandbox` where Hadoop and Spark are up: what it advises, what it stops, what it prints for a shell."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from howdah.cli.sandbox import sandbox
from howdah.errors import SpecError
from howdah.sandbox import Sandbox, SparkSandbox
from howdah.sandbox.hadoop_record import HadoopRecord
from howdah.sandbox.process import Process
from howdah.sandbox.shape import Ports
from howdah.sandbox.spark import SparkRecord, SparkShape


@pytest.fixture(autouse=True)
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Record a ResourceManager alone and a Spark of one worker; their daemons are programs that do nothing."""
    monkeypatch.setenv("HOWDAH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOWDAH_LANGUAGE", "en")
    hadoop, spark = Sandbox(nodes=0, hdfs=False), SparkSandbox(shape=SparkShape(nodes=1))
    ports = Ports(*range(1, 1 + len(Ports.__dataclass_fields__)))  # type: ignore[attr-defined]
    for box in (hadoop, spark):
        box.run_dir.mkdir(parents=True)
        (box.run_dir / "lock").touch()
    with subprocess.Popen(["sleep", "600"]) as one, subprocess.Popen(["sleep", "600"]) as other:
        daemons = [Process.from_pid(each.pid) for each in (one, other)]
        assert daemons[0] is not None
        assert daemons[1] is not None
        HadoopRecord(hadoop.shape, ports, "java", 17, "jars", {"rm": daemons[0]}).save(hadoop.run_dir)
        SparkRecord(
            spark.shape, (1, 2, 3, 4), "/opt/a spark", "java", {"master": daemons[1], "worker1": daemons[1]}
        ).save(spark.run_dir)
        yield
        one.kill()
        other.kill()


def test_hadoop_alone_is_stopped() -> None:
    done = CliRunner().invoke(sandbox, ["down", "--hadoop"])
    assert "sandbox is down" in done.stdout
    assert Sandbox.open() is None
    assert SparkSandbox.open() is not None
    CliRunner().invoke(sandbox, ["down"])
    assert SparkSandbox.open() is None


def test_the_advice_for_another_shape_stops_hadoop_alone() -> None:
    with pytest.raises(SpecError, match="`howdah sandbox down --hadoop` first"):
        Sandbox(nodes=2).up()


def test_a_shell_reads_the_values_as_they_are() -> None:
    done = CliRunner().invoke(sandbox, ["env"])
    line = next(line for line in done.stdout.splitlines() if "SPARK_HOME" in line)
    assert shlex.split(line) == ["export", "SPARK_HOME=/opt/a spark"]
