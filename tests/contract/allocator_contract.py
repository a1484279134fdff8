"""Provides the tests that every allocator must pass; the tests of each allocator inherit them.

A subclass gives a fixture `context`: a MasterContext of a job with roles `worker` (3 replicas) and `ps` (1), which fits
the engine, and one staged file `greeting.txt` with the content "hello".
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from howdah.engines import Allocator, Launch, MasterContext
from howdah.spec import Container, Outcome, State, TaskId
from howdah.spec.events import Allocated, ContainerEnded, Event

T = TypeVar("T")
Play = Callable[["Driver"], Awaitable[T]]
LIMIT_S = 120.0


class Driver:
    """Calls an allocator as a master does, and keeps all events."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.events: list[Event] = []
        self.attempts = 0

    async def until(self, enough: Callable[[], object], limit: float = LIMIT_S) -> None:
        deadline = time.monotonic() + limit
        while not enough():
            assert time.monotonic() < deadline, f"not within {limit} s: {self.events}"
            self.events += await self.allocator.poll()

    @property
    def granted(self) -> list[Container]:
        return [event.container for event in self.events if isinstance(event, Allocated)]

    def ended(self, container: Container) -> ContainerEnded | None:
        found = (event for event in self.events if isinstance(event, ContainerEnded))
        return next((event for event in found if event.container_id == container.id), None)

    async def get(self, role: str, count: int = 1) -> list[Container]:
        """Request and return `count` more containers of `role`."""
        before = len(self.granted)
        self.allocator.request(role, count)
        await self.until(lambda: len(self.granted) >= before + count)
        return self.granted[before:]

    async def launch(self, container: Container, line: str, **rest: dict[str, object]) -> None:
        self.attempts += 1
        command = ("/bin/sh", "-c", line)
        launch = Launch(TaskId(container.role, 0), self.attempts, command, **rest)  # type: ignore[arg-type]
        await self.allocator.launch(container, launch)

    async def run(self, line: str, **rest: dict[str, object]) -> ContainerEnded:
        """Run a shell line in a new container and return its end."""
        (container,) = await self.get("worker")
        await self.launch(container, line, **rest)
        await self.until(lambda: self.ended(container))
        ended = self.ended(container)
        assert ended is not None
        return ended


def drive(implementation: type[Allocator], context: MasterContext, play: Play[T]) -> T:
    """Open an allocator, run `play` with it, and unregister."""

    async def whole() -> T:
        allocator = await implementation.open(context)
        try:
            return await play(Driver(allocator))
        finally:
            await allocator.unregister(Outcome(State.SUCCEEDED))

    return asyncio.run(whole())


class AllocatorContract:
    """Inherit, set `implementation` and the engine's `name`, and provide `context`."""

    implementation: type[Allocator]
    name: str

    def play(self, context: MasterContext, play: Play[T]) -> T:
        return drive(self.implementation, context, play)

    def test_a_gang_of_two_roles_is_granted(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[Container]:
            driver.allocator.request("worker", 3)
            driver.allocator.request("ps", 1)
            await driver.until(lambda: len(driver.granted) == 4)
            return driver.granted

        granted = self.play(context, play)
        assert sorted(container.role for container in granted) == ["ps", "worker", "worker", "worker"]
        assert len({container.id for container in granted}) == 4
        for container in granted:
            wanted = context.staged.job.roles[container.role].resources
            assert container.resources.memory_mib >= wanted.memory_mib
            assert container.resources.vcores >= wanted.vcores
            assert container.node

    def test_a_request_is_absolute(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> int:
            driver.allocator.request("worker", 3)
            driver.allocator.request("worker", 1)
            await driver.until(lambda: driver.granted)
            driver.events += await driver.allocator.poll()
            return len(driver.granted)

        assert self.play(context, play) == 1

    def test_a_withdrawn_request_is_not_granted(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[Container]:
            driver.allocator.request("worker", 2)
            driver.allocator.request("worker", 0)
            driver.events += await driver.allocator.poll()
            return driver.granted

        assert self.play(context, play) == []

    def test_an_exit_code_is_reported(self, context: MasterContext) -> None:
        ended = self.play(context, lambda driver: driver.run("exit 3"))
        assert (ended.exit.cause, ended.exit.code) == ("exit", 3)

    def test_a_good_end_is_reported(self, context: MasterContext) -> None:
        assert self.play(context, lambda driver: driver.run("exit 0")).exit.ok

    def test_a_launch_brings_variables_secrets_and_files(self, context: MasterContext) -> None:
        line = (
            'test "$X_GREETING" = "good  day" || exit 11; '
            'grep -q hush "${HOWDAH_CREDENTIALS:-$HADOOP_TOKEN_FILE_LOCATION}" || exit 12; '
            'cd "${HOWDAH_WORK_DIR:-.}" && test "$(cat greeting.txt)" = hello || exit 13; exit 42'
        )
        given = {"environment": {"X_GREETING": "good  day"}, "secrets": {"howdah.secret.TOKEN": b"hush"}}
        assert self.play(context, lambda driver: driver.run(line, **given)).exit.code == 42

    def test_what_runs_in_a_released_container_is_killed(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            (container,) = await driver.get("worker")
            await driver.launch(container, "sleep 600")
            driver.allocator.release(container.id)
            # Its room is free again, long before it would have ended: a whole new gang fits.
            await driver.get("worker", 3)

        self.play(context, play)

    def test_a_container_can_be_released_unused(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            for container in await driver.get("worker", 3):
                driver.allocator.release(container.id)
            await driver.get("worker", 3)

        self.play(context, play)

    def test_a_master_that_takes_over_hears_what_became_of_every_container(self, context: MasterContext) -> None:
        """One runs on, one ends by itself while no master is there, one was never known to the engine."""
        first, second = self.left_by_a_killed_master(context)

        async def takeover() -> None:
            allocator = await self.implementation.open(context)
            driver = Driver(allocator)
            try:
                unknown = replace(second, id=f"{second.id}9")
                ends = await allocator.adopt([first, second, unknown])
                assert ends[unknown.id].cause == "withdrawn"
                assert ends[unknown.id].detail
                if second.id not in ends:  # the engine has not heard of it yet
                    await driver.until(lambda: driver.ended(second))
                ended = driver.ended(second)
                exit = ended.exit if ended else ends[second.id]
                assert exit.cause in ("withdrawn", "exit", "signal"), "it is not the node's fault"
                assert first.id not in ends
                driver.events += await allocator.poll()
                assert driver.ended(first) is None
                allocator.release(first.id)
                await driver.get("worker", 3)  # the room of all is free again
            finally:
                await allocator.unregister(Outcome(State.SUCCEEDED))

        asyncio.run(takeover())

    def left_by_a_killed_master(self, context: MasterContext) -> list[Container]:
        """Two containers of `worker` that a master in a process of its own had; the second ends when that is gone."""
        source = (
            "import asyncio, os, pickle, sys; sys.path[:0] = sys.argv[1:2]\n"
            "from allocator_contract import Driver\n"
            "from howdah.master.__main__ import find_allocator\n"
            "async def main():\n"
            "    context = pickle.loads(bytes.fromhex(sys.argv[2]))\n"
            "    driver = Driver(await find_allocator(sys.argv[3]).open(context))\n"
            "    containers = await driver.get('worker', 2)\n"
            "    await driver.launch(containers[0], 'sleep 600')\n"
            "    line = f'while kill -0 {os.getpid()}; do sleep 0.1; done; exit 3'\n"
            "    await driver.launch(containers[1], line)\n"
            "    print(pickle.dumps(containers).hex(), flush=True)\n"
            "    await asyncio.sleep(600)\n"
            "asyncio.run(main())\n"
        )
        here, held = str(Path(__file__).parent), pickle.dumps(context).hex()
        arguments = [sys.executable, "-c", source, here, held, self.name]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=self.environment()) as master:
            assert master.stdout is not None
            line = master.stdout.readline()
            master.kill()
        assert line, "the master that was to be killed ended by itself"
        found: list[Container] = pickle.loads(bytes.fromhex(line.decode()))
        return found

    def environment(self) -> dict[str, str]:
        """Return the environment of a master's process."""
        return dict(os.environ)

    def test_releasing_twice_does_no_harm(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            (container,) = await driver.get("worker")
            driver.allocator.release(container.id)
            driver.allocator.release(container.id)
            driver.allocator.release("nosuch")

        self.play(context, play)
