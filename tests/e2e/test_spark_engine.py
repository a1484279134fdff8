"""Tests the engine `spark` on a real Spark of two workers: the contracts, and what its jobs survive."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from clusters import processes, read
from detached_master import DetachedMaster
from submitted_job import until

from howdah.client.engine_registry import settings_for
from howdah.client.submit import prepare
from howdah.engines import Engine, MasterContext
from howdah.engines.spark import engine as spark_engine
from howdah.engines.spark.allocator import SparkAllocator
from howdah.sandbox import SparkSandbox
from howdah.spec import JobSpec, Resources, Role
from howdah.testing.allocator_contract import AllocatorContract, staged_job
from howdah.testing.engine_contract import EngineContract, variables


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module", autouse=True)
def _settings(spark: SparkSandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let this process and its children find Spark."""
    base = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**spark.env(), "HOWDAH_HOME": str(base), "HOWDAH_SPARK_HOME": str(base / "jobs")}.items():
            environment.setenv(name, value)
        environment.delenv("HADOOP_CONF_DIR", raising=False)
        yield


class TestSparkEngine(EngineContract):
    name = "spark"

    def other_user(self, base: Path) -> AbstractContextManager[None]:
        return variables(dict.fromkeys(("HOWDAH_HOME", "HOWDAH_SPARK_HOME"), str(base / "other")))

    def without_masters(self, base: Path) -> AbstractContextManager[None]:
        return variables({"PATH": str(base)})  # there is no bash

    def test_a_job_that_waits_says_what_spark_has(self, engine: Engine, base: Path) -> None:
        spec = JobSpec({"worker": Role(("true",), resources=Resources(256, vcores=64))})
        prepared = prepare(spec, base, {"engine": self.name}, lambda _: None)
        job_id = engine.submit(prepared.plan, prepared.secrets)
        try:
            said = until(lambda: engine.pending_reasons(job_id, spec, {"worker": 1}), "a reason")
            assert said[0].facts["text"].startswith("Spark has 0 executors with 0 cores"), said
        finally:
            engine.cancel(job_id)

    def test_a_job_that_is_cancelled_while_spark_starts_leaves_no_driver(self, engine: Engine, base: Path) -> None:
        prepared = self.prepare_job("true", base)
        job_id = engine.submit(prepared.plan, prepared.secrets)

        def has_driver() -> bool:
            return any(f"{job_id}/driver.sock".encode() in read(pid, "cmdline") for pid in processes())

        until(has_driver, "spark-submit")
        engine.cancel(job_id)
        began = time.monotonic()
        until(lambda: not has_driver(), "the end of Spark's driver")
        assert time.monotonic() - began < 100, "it waited the two minutes in which another master could come"


@pytest.fixture(scope="module")
def driver(spark: SparkSandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start one driver for all tests, because each JVM takes seconds; its executors are there from the start."""
    directory = tmp_path_factory.mktemp("driver")
    properties = {"spark.executor.cores": "8", "spark.executor.memory": "512m", "spark.driver.memory": "512m"}
    properties |= {"spark.task.maxFailures": "1000", "spark.executor.resource.gpu.amount": "4"}
    conf = [word for name, value in properties.items() for word in ("--conf", f"{name}={value}")]
    program = Path(spark_engine.__file__).with_name("driver.py")
    command = [f"{spark.home}/bin/spark-submit", *conf, str(program), str(directory / "socket")]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        until((directory / "socket").exists, "Spark's driver")
        yield directory / "socket"
        process.terminate()
        process.wait(60)


class TestSparkAllocator(DetachedMaster, AllocatorContract):
    implementation = SparkAllocator

    @pytest.fixture
    def context(self, driver: Path, tmp_path: Path) -> MasterContext:
        settings = settings_for({"engine": "spark"}).values
        job_id = f"spark-{os.urandom(4).hex()}"
        staged = staged_job(tmp_path, settings=settings)
        options = {"spark": {"driver_socket": str(driver), "conf": ["spark.dynamicAllocation.enabled=false"]}}
        staged = dataclasses.replace(staged, job=dataclasses.replace(staged.job, engines=options))
        return MasterContext(job_id, staged, tmp_path.as_uri(), "127.0.0.1", 1)
