"""Tests the allocator of Slurm by the allocators' contract, in real allocations: this process plays the batch step."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.engines import MasterContext, PendingReason
from howdah.engines.slurm.allocator import SlurmAllocator
from howdah.engines.slurm.batch_script import OUTPUT
from howdah.engines.slurm.commands import SlurmCommands
from howdah.engines.slurm.shapes import components
from howdah.sandbox import SlurmSandbox
from howdah.spec import JobSpec, Resources, Role, uris
from howdah.testing.allocator_contract import LIMIT_S, AllocatorContract, Driver, drive, staged_job


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


def allocate(job: JobSpec, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the number of a batch job with what `job` needs; the variables of its batch step are ours from now on."""
    parts = [[*shape.job_options(count), "--no-kill"] for shape, count in components(job).items()]
    options = [word for part in parts for word in (":", *part)][1:]
    script = f"#!/bin/bash\nenv -0 > {directory}/env.new; mv {directory}/env.new {directory}/env; exec sleep 600\n"
    number = SlurmCommands().submit(["--output=/dev/null", *options], script)
    deadline = time.monotonic() + 90
    while not (directory / "env").exists():
        assert time.monotonic() < deadline, "Slurm did not start the allocation"
        time.sleep(0.1)
    for entry in (directory / "env").read_bytes().decode().split("\0"):
        name, _, value = entry.partition("=")
        if name.startswith("SLURM"):
            monkeypatch.setenv(name, value)
    return number


def context_of(job: JobSpec, directory: Path) -> MasterContext:
    home = directory / "home"
    jobs = home / "jobs" / "slurm-1"
    jobs.mkdir(parents=True)
    return MasterContext("slurm-1", staged_job(home, job), jobs.as_uri(), "127.0.0.1", 1)


@pytest.fixture
def job() -> JobSpec:
    return JobSpec({"worker": Role("", 3, Resources(256)), "ps": Role("", 1, Resources(256))})


@pytest.fixture
def context(
    slurm: SlurmSandbox, job: JobSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MasterContext]:
    number = allocate(job, tmp_path, monkeypatch)
    yield context_of(job, tmp_path)
    SlurmCommands().cancel(number)


class SlurmContract(AllocatorContract):
    """Slurm says in the batch step's output why it ends the step."""

    implementation = SlurmAllocator

    def take_master_away(self, context: MasterContext) -> None:
        output = Path(uris.path(context.staged.home), OUTPUT, os.environ["SLURM_JOB_ID"])
        output.parent.mkdir(exist_ok=True)
        output.write_text("slurmstepd: error: *** JOB 5 ON n1 CANCELLED AT 2026-11-24T10:00:00 DUE TO JOB REQUEUE ***")


class TestPlainJob(SlurmContract):
    """All places are alike: one component."""


class TestHeterogeneousJob(SlurmContract):
    """Places of two shapes."""

    @pytest.fixture
    def job(self) -> JobSpec:
        return JobSpec({"worker": Role("", 3, Resources(256)), "ps": Role("", 1, Resources(256, vcores=2))})


def test_a_fourth_worker_comes_from_a_job_of_its_own(context: MasterContext) -> None:
    async def play(driver: Driver) -> tuple[int | None, list[str]]:
        await driver.get("worker", 3)
        await driver.get("ps", 1)
        (extra,) = await driver.get("worker", 1)
        await driver.launch(extra, "exit 5")
        await driver.until(lambda: driver.ended(extra), "the end of an extra container")
        ended = driver.ended(extra)
        assert ended is not None
        names = subprocess.run(["squeue", "-ho", "%j"], capture_output=True, text=True, check=True).stdout.split()
        return ended.exit.code, names

    code, names = drive(SlurmAllocator, context, play)
    assert code == 5
    running = subprocess.run(["squeue", "-ht", "R", "-o", "%j"], capture_output=True, text=True, check=True).stdout
    assert "howdah-" not in running, names


def test_it_tells_why_slurm_gives_no_more(context: MasterContext) -> None:
    async def play(driver: Driver) -> list[str]:
        found: list[PendingReason] = []
        driver.allocator.request("worker", 60)
        deadline = time.monotonic() + LIMIT_S
        while not found:
            assert time.monotonic() < deadline, "no reason"
            driver.events += await driver.allocator.poll()
            found = await driver.allocator.pending_reasons(context.staged.job, {"worker": 57})
        driver.allocator.request("worker", 0)
        return [str(each.sentence) for each in found]

    reasons = drive(SlurmAllocator, context, play)
    assert all(re.match(r"worker: Slurm: (Resources|Priority) \(partition", reason) for reason in reasons), reasons
