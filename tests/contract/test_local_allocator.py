"""Tests the local allocator: the allocator contract, its resource ledger, memory limits and GPUs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from howdah.engines import MasterContext
from howdah.engines.local.allocator import POLL_S, LocalAllocator
from howdah.engines.processes import processes_of_containers
from howdah.spec import JobSpec, Resources, Role, StagedFile, StagedJob
from howdah.spec.events import Noted
from howdah.supervisor.state import MachineState
from howdah.testing.allocator_contract import AllocatorContract, Driver, drive, write_tools

GROUPS = Path("/sys/fs/cgroup/memory")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 1 GiB, so that four containers of 256 MiB fill it."""
    for name, value in (("MEMORY_MIB", "1024"), ("VCORES", "8"), ("GPUS", "2")):
        monkeypatch.setenv(f"HOWDAH_LOCAL_{name}", value)


@pytest.fixture
def context(tmp_path: Path) -> MasterContext:
    return context_of(tmp_path, "job-a")


def context_of(home: Path, job_id: str, **resources: int) -> MasterContext:
    asked = Resources(**{"memory_mib": 256, **resources})
    job = JobSpec({"worker": Role("", 3, asked), "ps": Role("", 1, asked)})
    file = home / "cache" / "aa" / "aa00-greeting.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("hello")
    tools = file.with_name("aa01-tools.tar.gz")
    write_tools(tools)
    files = (StagedFile("greeting.txt", file.as_uri()), StagedFile("tools", tools.as_uri(), "archive"))
    staged = StagedJob(job, home.as_uri(), files)
    directory = home / "jobs" / job_id
    directory.mkdir(parents=True)
    return MasterContext(job_id, staged, directory.as_uri(), "127.0.0.1", 1)


def notes(driver: Driver) -> list[str]:
    return [event.text for event in driver.events if isinstance(event, Noted)]


class QuickAllocator(LocalAllocator):
    """Examines queue and containers more often, so that what should not come is not waited for longer than needed."""

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context, poll_s=0.1)


class TestLocalAllocator(AllocatorContract):
    implementation = QuickAllocator

    def environment(self) -> dict[str, str]:
        """This process outlives it, as the one does that starts the next master."""
        return {**os.environ, "HOWDAH_WARDEN": str(os.getpid())}


class TestSharing:
    def test_a_gang_waits_whole_until_it_fits(self, tmp_path: Path) -> None:
        async def play() -> list[str]:
            one = Driver(await LocalAllocator.open(context_of(tmp_path, "job-a")))
            two = Driver(await LocalAllocator.open(context_of(tmp_path, "job-b")))
            first = await one.get("worker", 3)
            two.allocator.request("worker", 2)
            two.events += await two.allocator.poll()
            two.events += await two.allocator.poll()
            assert two.granted == []
            one.allocator.release(first[0].id)
            await two.until(lambda: len(two.granted) == 2)
            return notes(two)

        assert asyncio.run(play()) == ["waiting for 512 MiB: 768 MiB of 1 GiB are used by job-a"]

    def test_first_come_first_served(self, tmp_path: Path) -> None:
        async def play() -> list[str]:
            drivers = [Driver(await LocalAllocator.open(context_of(tmp_path, f"job-{n}"))) for n in range(3)]
            held = await drivers[0].get("worker", 3)
            drivers[1].allocator.request("worker", 3)
            drivers[1].events += await drivers[1].allocator.poll()
            # It would fit beside the first, but the second has come before.
            drivers[2].allocator.request("worker", 1)
            drivers[2].events += await drivers[2].allocator.poll()
            assert drivers[2].granted == []
            # Who holds containers may replace one.
            await drivers[0].get("worker", 1)
            for container in held:
                drivers[0].allocator.release(container.id)
            await drivers[1].until(lambda: len(drivers[1].granted) == 3)
            return notes(drivers[2])

        assert asyncio.run(play()) == ["waiting behind job-1, which came first"]

    def test_gpus_are_dealt_out_exclusively(self, tmp_path: Path) -> None:
        async def play(driver: Driver) -> list[str]:
            containers = await driver.get("worker", 2)
            for container in containers:
                await driver.launch(container, 'echo "$CUDA_VISIBLE_DEVICES" > "$HOWDAH_WORK_DIR"/gpus')
            await driver.until(lambda: all(driver.ended(container) for container in containers))
            return sorted(path.read_text().strip() for path in tmp_path.glob("jobs/*/tasks/*/*/*/gpus"))

        assert drive(LocalAllocator, context_of(tmp_path, "job-a", gpus=1), play) == ["0", "1"]

    @pytest.mark.parametrize(("there", "seen"), [("4", ""), ("0", "node's")])
    def test_who_asked_for_none_sees_none_where_they_are_dealt_out(
        self, there: str, seen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOWDAH_LOCAL_GPUS", there)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "node's")

        async def play(driver: Driver) -> str:
            (container,) = await driver.get("worker", 1)
            await driver.launch(container, 'echo "$CUDA_VISIBLE_DEVICES" > "$HOWDAH_WORK_DIR"/gpus')
            await driver.until(lambda: driver.ended(container))
            (path,) = tmp_path.glob("jobs/*/tasks/*/*/*/gpus")
            return path.read_text().strip()

        assert drive(LocalAllocator, context_of(tmp_path, "job-a", gpus=0), play) == seen


class TestLimits:
    def test_more_memory_than_asked_for_is_named(self, tmp_path: Path) -> None:
        if not os.access(GROUPS, os.W_OK):
            pytest.skip("control groups cannot be written here")
        line = f"exec {sys.executable} -c 'x = bytearray(200 << 20)'"
        ended = drive(LocalAllocator, context_of(tmp_path, "job-a", memory_mib=64), lambda driver: driver.run(line))
        assert ended.exit.cause == "memory"
        assert ended.exit.detail == "killed by the kernel: used 64 MiB of 64 MiB"

    def test_a_killed_program_leaves_nothing(self, context: MasterContext) -> None:
        ended = drive(LocalAllocator, context, lambda driver: driver.run("(setsid sleep 600 &); kill -9 $$"))
        assert (ended.exit.cause, ended.exit.signal) == ("signal", signal.SIGKILL)
        assert list(processes_of_containers("job-a.")) == []

    def test_no_group_and_no_entry_stay_behind(self, context: MasterContext, tmp_path: Path) -> None:
        async def play(driver: Driver) -> list[str]:
            (container,) = await driver.get("worker")
            await driver.launch(container, "sleep 600")
            return held_groups(tmp_path, "job-a")

        groups = drive(LocalAllocator, context, play)
        assert not any(Path(group).exists() for group in groups if group)
        (entry,) = MachineState.for_home(str(tmp_path)).entries().values()
        assert (entry["held"], entry["left"]) == ({}, True)

    def test_an_end_is_seen_at_once(self, context: MasterContext, tmp_path: Path) -> None:
        """By a poll that waits already, before its time is over."""

        async def ends_within_the_poll(driver: Driver, number: int) -> bool:
            go = tmp_path / f"go-{number}"
            (container,) = await driver.get("worker")
            await driver.launch(container, f"until [ -e '{go}' ]; do sleep 0.01; done")
            while await driver.allocator.poll():  # what was said of its start
                pass
            poll = asyncio.ensure_future(driver.allocator.poll())
            await asyncio.sleep(0)
            begun = time.monotonic()
            go.touch()
            driver.events += await poll
            seen = driver.ended(container) is not None and time.monotonic() - begun < POLL_S / 2
            await driver.until(lambda: driver.ended(container))
            return seen

        async def play(driver: Driver) -> bool:
            for number in range(20):  # who else works here may have been first
                if await ends_within_the_poll(driver, number):
                    return True
            return False

        assert drive(LocalAllocator, context, play)


def held_groups(home: Path, job_id: str) -> list[str]:
    entry = MachineState.for_home(str(home)).entries()[job_id]
    return [held["group"] for held in entry["held"].values()]
