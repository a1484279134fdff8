"""Tests the allocator of Slurm where the commands of Slurm are a script: how it tells why a step has ended, and that it
loses neither events nor places while Slurm does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fake_slurm import FakeSlurm

from howdah.engines import MasterContext
from howdah.engines.shared_home import CONTAINERS, container_directory
from howdah.engines.slurm.allocator import SlurmAllocator
from howdah.engines.slurm.commands import LIMIT_S, SlurmCommands
from howdah.spec import Container, JobSpec, Outcome, Resources, Role, State, uris
from howdah.spec.events import AllocationLost, ContainerEnded, LossAnnounced, Noted
from howdah.testing.allocator_contract import Driver, Play, drive, eventually, staged_job
from howdah.wire.launch_messages import Greeting

T = TypeVar("T")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n1,n2")
    monkeypatch.setenv("SLURM_TASKS_PER_NODE", "1,2")
    slurm = FakeSlurm(tmp_path / "slurm", monkeypatch)
    slurm.say_jobs("7 RUNNING n1,n2")
    slurm.say("probe", "0")
    return slurm


@pytest.fixture
def context(slurm: FakeSlurm, tmp_path: Path) -> MasterContext:
    jobs = tmp_path / "home" / "jobs" / "slurm-7"
    jobs.mkdir(parents=True)
    staged = staged_job(tmp_path / "home", JobSpec({"worker": Role("", 3, Resources(256))}))
    return MasterContext("slurm-7", staged, jobs.as_uri(), "127.0.0.1", 1)


class QuickAllocator(SlurmAllocator):
    """Looks more often, so that what should not come is not waited for longer than needed."""

    def __init__(self, context: MasterContext) -> None:
        super().__init__(context, look_s=0.1, job_end_wait_s=0.1)


def play(context: MasterContext, act: Play[T]) -> T:
    return drive(QuickAllocator, context, act)


def runs_with(words: str) -> bool:
    """Return whether a process has some words among its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            if words.encode() in path.read_bytes():
                return True
    return False


async def exists(driver: Driver, path: Path) -> None:
    await driver.until(path.exists, str(path))


async def launched(driver: Driver, slurm: FakeSlurm, count: int) -> list[Container]:
    """Return containers whose steps run: those of the attempts 1, 2, …"""
    containers = await driver.get("worker", count)
    for attempt, container in enumerate(containers, 1):
        (slurm.state / "pid-worker-0").unlink(missing_ok=True)
        await driver.launch(container, "true")
        await exists(driver, slurm.state / "pid-worker-0")
        assert driver.attempts == attempt
    return containers


def test_so_many_steps_start_at_once_that_the_master_still_answers(
    context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand commands that start at once take all processors of the node that the master is on."""
    monkeypatch.setattr("howdah.engines.slurm.allocator.AT_ONCE", 1)
    monkeypatch.setattr("howdah.engines.slurm.allocator.STARTING_S", 1000.0)

    async def act(driver: Driver) -> None:
        allocator = driver.allocator
        assert isinstance(allocator, SlurmAllocator)
        first, second, third = await driver.get("worker", 3)
        await driver.launch(first, "true")
        later = [asyncio.ensure_future(driver.launch(container, "true")) for container in (second, third)]
        await driver.poll_on()
        assert not any(launch.done() for launch in later)
        allocator.release(second.id)  # it never starts, and keeps nobody waiting

        def all_started() -> bool:
            for container in (first, third):  # whichever has the turn
                allocator.greeted(container.id, Greeting("n1"))
            return all(launch.done() for launch in later)

        await driver.until(all_started, "the others' start")
        await exists(driver, slurm.state / "pid-worker-0")

    play(context, act)


def test_a_step_that_says_nothing_keeps_others_waiting_for_a_while(
    context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.engines.slurm.allocator.AT_ONCE", 1)
    monkeypatch.setattr("howdah.engines.slurm.allocator.STARTING_S", 0.2)

    async def act(driver: Driver) -> None:
        first, second = await driver.get("worker", 2)
        began = time.monotonic()
        await driver.launch(first, "true")
        await driver.launch(second, "true")
        assert time.monotonic() - began >= 0.2

    play(context, act)


class TestKilledStep:
    """Srun says that a signal has ended a step."""

    @pytest.mark.parametrize(
        ("probe", "squeue", "cause"),
        [
            ("0", "7 RUNNING n1,n2", "signal"),
            ("1", "7 RUNNING n1,n2", "lost"),
            ("1", "", "withdrawn"),
            ("1", "down", "signal"),
        ],
    )
    def test_whether_its_node_answers_tells_the_cause(
        self, context: MasterContext, slurm: FakeSlurm, probe: str, squeue: str, cause: str
    ) -> None:
        async def act(driver: Driver) -> tuple[str, int]:
            (container,) = await launched(driver, slurm, 1)
            slurm.say("probe", probe)
            slurm.say_jobs(*filter(None, [squeue])) if squeue != "down" else slurm.say("down", "")
            slurm.say("end-worker-0", "137")
            await driver.until(lambda: driver.ended(container), "the end")
            ended = driver.ended(container)
            assert ended is not None
            driver.allocator.request("worker", 3)
            await driver.poll_on()
            return ended.exit.cause, len(driver.granted)

        # The place on a node that may be dead is not given again.
        assert play(context, act) == (cause, 3 if cause == "lost" else 4)

    def test_without_room_for_more_steps_it_is_told_all_the_same(
        self, context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SLURMD_NODENAME", "n1")
        for name in ("guard", "probe"):
            (Path(uris.path(context.directory)) / f"{name}.log").mkdir()

        async def act(driver: Driver) -> str:
            (container,) = await launched(driver, slurm, 1)
            slurm.say("end-worker-0", "137")
            await driver.until(lambda: driver.ended(container), "the end")
            ended = driver.ended(container)
            assert ended is not None
            said = next(str(event.text) for event in driver.events if isinstance(event, Noted))
            assert said.endswith("Is a directory: '" + uris.path(context.directory) + "/guard.log'; trying again")
            return ended.exit.cause

        assert play(context, act) == "signal"

    def test_a_place_whose_node_is_back_is_given_again_when_slurm_has_room_there(
        self, context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Slurm may count what ran there as running: a step that takes nothing begins, and a container's never does."""
        monkeypatch.setattr("howdah.engines.slurm.allocator.SUSPECTS_S", 0.1)
        slurm.say("nodes", "n1 mixed\nn2 mixed\n")

        async def act(driver: Driver) -> int:
            container, *_ = await launched(driver, slurm, 3)
            slurm.say("room", "1")
            driver.allocator.release(container.id, "silent")
            driver.allocator.request("worker", 1)
            await driver.poll_on()
            before = len(driver.granted)
            slurm.say("room", "0")
            await driver.until(lambda: len(driver.granted) == 4, "the place")
            return before

        assert play(context, act) == 3

    def test_a_preempted_job_leaves_once(
        self, context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("howdah.engines.slurm.allocator.UNREGISTER_LIMIT_S", 0.1)

        async def act(driver: Driver) -> list[str]:
            await launched(driver, slurm, 2)
            slurm.say("job-7", "JobId=7 PreemptTime=2026-01-01T00:00:00 EndTime=2026-01-01T00:01:00\n")
            slurm.say("hang-scontrol", "")
            slurm.say("end-worker-0", "143")
            await driver.until(lambda: slurm.calls("scontrol").count("show job --oneliner 7") == 2, "both to ask")
            (slurm.state / "hang-scontrol").unlink()
            await driver.until(lambda: any(isinstance(event, AllocationLost) for event in driver.events))
            await driver.poll_on()
            return [type(event).__name__ for event in driver.events[2:]]

        assert play(context, act) == ["AllocationLost"]
        assert (slurm.state.parent / "home/jobs/slurm-7/requeue").exists()

    def test_a_preempted_extra_job_is_no_end_of_the_job(self, context: MasterContext, slurm: FakeSlurm) -> None:
        async def act(driver: Driver) -> list[str]:
            await driver.get("worker", 3)
            driver.allocator.request("worker", 1)
            await exists(driver, slurm.state / "script-101")
            slurm.say_jobs("7 RUNNING n1,n2", "101 RUNNING n3")
            await driver.until(lambda: len(driver.granted) == 4)
            await driver.launch(driver.granted[-1], "true")
            slurm.say("job-101", "JobId=101 PreemptTime=2026-01-01T00:00:00 EndTime=2026-01-01T00:01:00\n")
            (slurm.state.parent / "home/jobs/slurm-7/keepers/101.ending").touch()
            await driver.until(lambda: any(isinstance(event, LossAnnounced) for event in driver.events))
            slurm.say("end-worker-0", "143")
            await driver.until(lambda: driver.ended(driver.granted[-1]))
            announced = [event for event in driver.events if isinstance(event, LossAnnounced)]
            assert [(each.container_id, each.within_s) for each in announced] == [(driver.granted[-1].id, 1.0)]
            return [event.exit.cause for event in driver.events if isinstance(event, ContainerEnded)]

        assert play(context, act) == ["preempted"]
        assert "--quiet 101" in slurm.calls("scancel")


def test_a_step_that_no_record_tells_of_does_not_run_on(context: MasterContext, slurm: FakeSlurm) -> None:
    job = slurm.state.parent / "home/jobs/slurm-7"

    async def block_record(container: Container) -> None:
        directory = container_directory(job, container.id)
        while not directory.exists():
            await asyncio.sleep(0)
        (directory / "step.json.new").mkdir()

    async def act(driver: Driver) -> None:
        (container,) = await driver.get("worker", 1)
        blocking = asyncio.create_task(block_record(container))
        with pytest.raises(IsADirectoryError):
            await driver.launch(container, "true")
        await blocking
        step = f"--chdir={container_directory(job, container.id)}"
        await eventually(lambda: not runs_with(step), "the end of the step")

    play(context, act)


def test_ends_are_told_while_slurm_does_not_answer(context: MasterContext, slurm: FakeSlurm) -> None:
    async def act(driver: Driver) -> None:
        (container, *_) = await launched(driver, slurm, 3)
        driver.allocator.request("worker", 1)
        await exists(driver, slurm.state / "script-101")
        slurm.say("hang-squeue", "")
        asked = len(slurm.calls("squeue"))
        try:
            waiting = driver.until(lambda: len(slurm.calls("squeue")) > asked, "a question to Slurm")
            await asyncio.wait_for(waiting, LIMIT_S / 2)
            slurm.say("end-worker-0", "3")
            await asyncio.wait_for(driver.until(lambda: driver.ended(container), "the end"), LIMIT_S / 2)
        finally:
            (slurm.state / "hang-squeue").unlink()

    play(context, act)


def test_what_slurm_refuses_is_not_asked_for_all_the_time(context: MasterContext, slurm: FakeSlurm) -> None:
    async def act(driver: Driver) -> int:
        await driver.get("worker", 3)
        slurm.say("refused", "")
        driver.allocator.request("worker", 1)
        await driver.until(lambda: slurm.calls("sbatch"))
        await driver.poll_on()
        await driver.poll_on()
        return len(slurm.calls("sbatch"))

    assert play(context, act) == 1


def test_taking_over_invents_no_place(context: MasterContext, slurm: FakeSlurm) -> None:
    """Of what earlier masters have started in extra jobs, nothing runs any more."""
    containers = slurm.state.parent / "home/jobs/slurm-7" / CONTAINERS
    for number, run in enumerate(("0", "5"), 50):
        record: dict[str, Any] = {"number": str(number), "node": "n9", "role": "worker", "extra_id": str(number)}
        record |= {"process": json.dumps([2**22, 1, "/nowhere"]), "directory": "/nowhere", "run": run}
        (containers / str(number)).mkdir(parents=True)
        (containers / str(number) / "step.json").write_text(json.dumps(record))

    async def act(driver: Driver) -> int:
        await driver.allocator.adopt(())
        driver.allocator.request("worker", 5)
        await driver.poll_on()
        return len(driver.granted)

    assert play(context, act) == 3
    assert not list(containers.glob("*/step.json"))


def test_nothing_is_started_after_the_end(
    context: MasterContext, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm answers the last question when the master has begun to leave."""
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    guard = str(slurm.state.parent / "home/jobs/slurm-7/keepers/end-0")
    slurm.say("hang-sbatch", "")

    async def act(driver: Driver) -> None:
        await eventually(lambda: runs_with(guard), "the guard")
        driver.allocator.request("worker", 4)
        await driver.until(lambda: slurm.calls("sbatch"), "a question to Slurm")
        container = driver.granted[0]
        await driver.launch(container, "true")
        await exists(driver, slurm.state / "pid-worker-0")
        leaving = asyncio.create_task(driver.allocator.unregister(Outcome(State.SUCCEEDED)))
        step = str(container_directory(slurm.state.parent / "home/jobs/slurm-7", container.id))
        await eventually(lambda: not runs_with(f"--chdir={step}"), "the end of the step")
        (slurm.state / "hang-sbatch").unlink()
        await leaving
        await eventually(lambda: not runs_with(guard), "the end of the guard")

    play(context, act)
    assert slurm.calls("scancel")[-1] == "--quiet 101", "what was submitted meanwhile"


def test_a_node_that_slurm_keeps_for_another_job_is_up(slurm: FakeSlurm) -> None:
    slurm.say("nodes", "n1 planned\nn2 mixed\nn3 down*\nn4 idle*\nn5 reserved\nn6 drained\n")
    assert SlurmCommands().nodes_up() == {"n1", "n2", "n5"}
