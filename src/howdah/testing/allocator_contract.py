"""The suite that every allocator passes: inherit `AllocatorContract` in a test module and provide `context`.

    class TestMyAllocator(AllocatorContract):
        implementation = MyAllocator

The fixture `context` gives a MasterContext of a job with the roles `worker` (3 replicas) and `ps` (1), which fit the
engine together, and with two staged files: `greeting.txt`, whose content is "hello", and the archive `tools`, in which
a file `tools.txt` has the content "tools". Containers must run on this machine, with this machine's temporary
directory. A subclass may say more of its engine, for the tests that need it: `environment`, `wait_counted`,
`take_master_away`, `lost_node`.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from howdah.engines import Allocator, ContainerPreferences, Launch, MasterContext
from howdah.spec import Container, JobSpec, Outcome, Resources, Role, StagedFile, StagedJob, State, TaskId, plugins
from howdah.spec.codec import decode, encode, to_json
from howdah.spec.events import Allocated, AllocationLost, CancelRequested, ContainerEnded, Event
from howdah.testing.launch_server import serve_launches

T = TypeVar("T")
Play = Callable[["Driver"], Awaitable[T]]
LIMIT_S = 90.0
"""The most seconds that the suite waits for anything."""
MAX_POLLS = 3
"""Calls of `poll` after which a missing event counts as one that does not come."""
SECRET = "hush"  # noqa: S105 - not one


class Driver:
    """Uses an allocator as a master does, and keeps all of its events."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.events: list[Event] = []
        self.attempts = 0

    async def until(self, enough: Callable[[], object], what: str = "it", limit: float | None = None) -> None:
        """Poll until `enough` holds; `what` describes it in a failure's message."""
        limit = LIMIT_S if limit is None else limit
        deadline = time.monotonic() + limit
        while not enough():
            assert time.monotonic() < deadline, f"{what}: not within {limit} s; events were {self.events}"
            self.events += await self.allocator.poll()

    async def poll_on(self) -> None:
        """Poll for a while, so that events that should not come could come."""
        for _ in range(MAX_POLLS):
            self.events += await self.allocator.poll()

    @property
    def granted(self) -> list[Container]:
        """Return all containers that were granted, in order."""
        return [event.container for event in self.events if isinstance(event, Allocated)]

    def ends(self, container: Container) -> list[ContainerEnded]:
        """Return the reported ends of a container."""
        found = (event for event in self.events if isinstance(event, ContainerEnded))
        return [event for event in found if event.container_id == container.id]

    def ended(self, container: Container) -> ContainerEnded | None:
        """Return the reported end of a container; None if there is none yet."""
        return next(iter(self.ends(container)), None)

    async def get(self, role: str, count: int = 1, preferences: ContainerPreferences | None = None) -> list[Container]:
        """Return `count` more containers of `role`."""
        before = len(self.granted)
        self.allocator.request(role, count, *([preferences] if preferences is not None else []))
        await self.until(lambda: len(self.granted) >= before + count, f"{count} more containers of {role}")
        return self.granted[before:]

    async def launch(self, container: Container, line: str, **rest: Any) -> None:
        """Run a shell line in a container; `rest` are further fields of Launch."""
        self.attempts += 1
        command = ("/bin/sh", "-c", line)
        await self.allocator.launch(container, Launch(TaskId(container.role, 0), self.attempts, command, **rest))

    async def run(self, line: str, **rest: Any) -> ContainerEnded:
        """Run a shell line in a new container; return its end."""
        (container,) = await self.get("worker")
        await self.launch(container, line, **rest)
        await self.until(lambda: self.ended(container), f"the end of {line!r}")
        ended = self.ended(container)
        assert ended is not None
        return ended


def drive(implementation: type[Allocator], context: MasterContext, play: Play[T]) -> T:
    """Open an allocator, let `play` use it, and unregister."""

    async def whole() -> T:
        async with serve_launches(context) as served:
            allocator = await implementation.open(served)
            try:
                return await play(Driver(allocator))
            finally:
                await allocator.unregister(Outcome(State.SUCCEEDED))

    return asyncio.run(whole())


def write_tools(archive: Path) -> None:
    """Write the archive `tools`, a .tar.gz, which a context needs."""
    with tarfile.open(archive, "w:gz") as tar:
        entry = tarfile.TarInfo("tools.txt")
        entry.size = len("tools")
        tar.addfile(entry, io.BytesIO(b"tools"))


def staged_job(directory: Path, job: JobSpec | None = None, **fields: Any) -> StagedJob:
    """Stage in `directory` the files that a context needs; return their job, which without `job` has three workers and
    a ps of 256 MiB. `fields` are more of its fields."""
    asked = Resources(256)
    job = job or JobSpec({"worker": Role("", 3, asked), "ps": Role("", 1, asked)})
    (directory / "greeting.txt").write_text("hello")
    write_tools(directory / "tools.tar.gz")
    files = (
        StagedFile("greeting.txt", (directory / "greeting.txt").as_uri()),
        StagedFile("tools", (directory / "tools.tar.gz").as_uri(), "archive"),
    )
    return StagedJob(job, directory.as_uri(), files, **fields)


@contextlib.contextmanager
def program() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield a shell line that runs until it is killed, and a function that returns whether it runs.

    The program holds a FIFO open. Its process number would not identify it if containers have process numbers of their
    own.
    """
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o777)
        fifo = Path(directory, "runs")
        os.mkfifo(fifo)
        fifo.chmod(0o666)

        def runs() -> bool:
            with contextlib.suppress(OSError):
                os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))  # ENXIO if nobody has it open
                return True
            return False

        yield f"exec sleep 600 <> {fifo}", runs


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {LIMIT_S} s"
        await asyncio.sleep(0.05)


class AllocatorContract:
    """The tests of an allocator: a subclass sets `implementation` and provides `context`."""

    implementation: type[Allocator]

    def play(self, context: MasterContext, play: Play[T]) -> T:
        """Let `play` use a new allocator."""
        return drive(self.implementation, context, play)

    def environment(self) -> dict[str, str]:
        """Return the variables of a master's process."""
        return dict(os.environ)

    def wait_counted(self, containers: list[Container]) -> None:
        """Return when the engine itself counts these containers as running: some engines take back other containers
        when a master is killed. The default does not wait."""

    def take_master_away(self, context: MasterContext) -> None:
        """Let the engine take the place of the master away, so that another master follows, as `signalled` finds it.
        Nothing is to be done if the signal alone shows this."""

    def lost_node(self, node: str) -> AbstractContextManager[None] | None:
        """Cut off a node inside the context; three more workers must have room on the others. Return None if the
        cluster itself grants no place on a lost node, or if a test cannot cut off a node."""
        return None

    # What is granted

    def test_a_gang_of_two_roles_is_granted(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[Container]:
            driver.allocator.request("worker", 3)
            driver.allocator.request("ps", 1)
            await driver.until(lambda: len(driver.granted) == 4, "a gang of four")
            return driver.granted

        granted = self.play(context, play)
        assert sorted(container.role for container in granted) == ["ps", "worker", "worker", "worker"]
        assert len({container.id for container in granted}) == 4, "ids of containers must differ"
        for container in granted:
            wanted = context.staged.job.roles[container.role].resources
            assert container.resources.memory_mib >= wanted.memory_mib
            assert container.resources.vcores >= wanted.vcores
            assert container.node, "a container must name its node"

    def test_a_request_is_absolute(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> int:
            driver.allocator.request("worker", 3)
            driver.allocator.request("worker", 1)
            await driver.until(lambda: driver.granted, "a container")
            await driver.poll_on()
            return len(driver.granted)

        assert self.play(context, play) == 1, "a request replaces the earlier one of its role"

    def test_a_withdrawn_request_is_not_granted(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> list[Container]:
            driver.allocator.request("worker", 2)
            driver.allocator.request("worker", 0)
            await driver.poll_on()
            return driver.granted

        assert self.play(context, play) == [], "a request of 0 withdraws the earlier one"

    def test_preferred_memory_is_granted(self, context: MasterContext) -> None:
        wanted = context.staged.job.roles["worker"].resources.memory_mib * 2
        more = ContainerPreferences(memory_mib=wanted)

        async def play(driver: Driver) -> Container:
            return (await driver.get("worker", 1, more))[0]

        granted = self.play(context, play)
        assert granted.resources.memory_mib >= wanted, "ContainerPreferences.memory_mib replaces the role's memory"

    def test_an_avoided_host_is_not_granted(self, context: MasterContext) -> None:
        if self.implementation.one_machine:
            return  # there is no other host to take

        async def play(driver: Driver) -> tuple[str, str]:
            (first,) = await driver.get("worker")
            driver.allocator.release(first.id)
            (second,) = await driver.get("worker", 1, ContainerPreferences(avoid=(first.node,)))
            return first.node, second.node

        first, second = self.play(context, play)
        assert first != second, f"{first} was granted, which ContainerPreferences.avoid names"

    # What runs in a container

    def test_an_exit_code_is_reported(self, context: MasterContext) -> None:
        ended = self.play(context, lambda driver: driver.run("exit 3"))
        assert (ended.exit.cause, ended.exit.code) == ("exit", 3)

    def test_a_good_end_is_reported(self, context: MasterContext) -> None:
        assert self.play(context, lambda driver: driver.run("exit 0")).exit.ok

    def test_a_killed_program_is_no_lost_node(self, context: MasterContext) -> None:
        exit = self.play(context, lambda driver: driver.run("kill -KILL $$")).exit
        assert not exit.ok
        assert exit.cause in ("signal", "exit"), f"SIGKILL of the program was reported as {exit.cause!r}"

    def test_a_launch_brings_variables_secrets_and_files(self, context: MasterContext) -> None:
        steps = {
            'test "$X_GREETING" = "good  day"': "Launch.environment does not arrive unchanged",
            f'grep -q {SECRET} "$HOWDAH_CREDENTIALS"': "Launch.secrets do not arrive in the file that "
            "HOWDAH_CREDENTIALS names",
            f"! env | grep -q {SECRET}": "a secret is in the environment, which other processes can read",
            'cd "${HOWDAH_WORK_DIR:-.}"': "HOWDAH_WORK_DIR is no directory",
            'test "$(cat greeting.txt)" = hello': "a staged file is not in the working directory",
            'test "$(cat tools/tools.txt)" = tools': "a staged archive is not unpacked in the working directory",
        }
        given = {"environment": {"X_GREETING": "good  day"}, "secrets": {"howdah.secret.TOKEN": SECRET.encode()}}
        self.run_steps(context, steps, given)

    def test_a_launch_may_bring_other_files_than_the_job(self, context: MasterContext) -> None:
        steps = {
            'cd "${HOWDAH_WORK_DIR:-.}"': "HOWDAH_WORK_DIR is no directory",
            "test ! -e greeting.txt": "Launch.files replaces the files of the job, and greeting.txt is none of them",
        }
        self.run_steps(context, steps, {"files": ()})

    def run_steps(self, context: MasterContext, steps: Mapping[str, str], given: Mapping[str, Any]) -> None:
        """Run shell lines one after the other in a container; fail with the output of the first one that is wrong."""
        line = "; ".join(f"{step} || exit {number}" for number, step in enumerate(steps, 11))
        exit = self.play(context, lambda driver: driver.run(f"{line}; exit 42", **given)).exit
        assert exit.code is not None, f"the launch failed: {exit}"
        assert exit.code >= 11, f"the launch failed: {exit}"
        assert exit.code == 42, list(steps.values())[exit.code - 11]

    # What becomes of a container

    def test_a_released_container_is_killed_and_its_end_is_reported_once(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            with program() as (line, runs):
                (container,) = await driver.get("worker")
                await driver.launch(container, line)
                await eventually(runs, "the start of a program")
                driver.allocator.release(container.id)
                await driver.until(lambda: driver.ended(container), "the end of a released container")
                await eventually(lambda: not runs(), "the end of the program in a released container")
            await driver.get("worker", 3)  # its room is free again, for a whole new gang
            await driver.poll_on()
            assert len(driver.ends(container)) == 1, f"the end was reported {len(driver.ends(container))} times"

        self.play(context, play)

    def test_an_end_is_reported_once(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> int:
            ended = await driver.run("exit 5")
            await driver.poll_on()
            return sum(isinstance(event, ContainerEnded) for event in driver.events if event != ended) + 1

        assert self.play(context, play) == 1, "the end of a container was reported again"

    def test_a_container_can_be_released_unused(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            for container in await driver.get("worker", 3):
                driver.allocator.release(container.id)
            await driver.get("worker", 3)

        self.play(context, play)

    def test_releasing_twice_does_no_harm(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            (container,) = await driver.get("worker")
            driver.allocator.release(container.id)
            driver.allocator.release(container.id, "lost")
            driver.allocator.release("nosuch")

        self.play(context, play)

    def test_a_place_that_was_lost_is_not_granted_again(self, context: MasterContext) -> None:
        self.release_on_lost_node(context, "lost")

    def test_a_place_that_was_silent_is_not_granted_again(self, context: MasterContext) -> None:
        self.release_on_lost_node(context, "silent")

    def release_on_lost_node(self, context: MasterContext, cause: str) -> None:
        """Lose a node, release the container there, and assert that no other one is granted there."""

        async def play(driver: Driver) -> None:
            (container,) = await driver.get("worker")
            if (lost := self.lost_node(container.node)) is None:
                return
            with lost:
                driver.allocator.release(container.id, cause)
                nodes = [other.node for other in await driver.get("worker", 3)]
                assert container.node not in nodes, f"{container.node} was granted after a release as {cause!r}"

        self.play(context, play)

    # The end of a master

    def test_a_signal_is_no_cancellation_where_another_master_follows(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> tuple[Event, bool]:
            self.take_master_away(context)
            return driver.allocator.signalled("SIGTERM"), driver.allocator.restarts

        event, restarts = self.play(context, play)
        assert isinstance(event, (AllocationLost, CancelRequested)), f"`signalled` answers {event}"
        if restarts:
            assert isinstance(event, AllocationLost), "nobody has cancelled the job, and SIGTERM ended it"
            assert event.comes_back, "another master follows, and `comes_back` denies it"

    def test_unregister_leaves_no_program(self, context: MasterContext) -> None:
        async def play(driver: Driver) -> None:
            (container,) = await driver.get("worker")
            await driver.launch(container, line)
            await eventually(runs, "the start of a program")

        with program() as (line, runs):
            self.play(context, play)
            asyncio.run(eventually(lambda: not runs(), "the end of a program after unregister"))

    def test_a_master_that_takes_over_hears_what_became_of_every_container(self, context: MasterContext) -> None:
        """One runs on, one ends by itself while no master is there, one was never known to the engine."""
        with program() as (line, runs):
            first, second = self.left_by_a_killed_master(context, line, runs)

            async def takeover(served: MasterContext) -> None:
                allocator = await self.implementation.open(served)
                driver = Driver(allocator)
                try:
                    unknown = replace(second, id=f"{second.id}9")
                    ends = await allocator.adopt([first, second, unknown])
                    assert unknown.id in ends, "a container that the engine does not know was adopted"
                    assert ends[unknown.id].cause == "withdrawn"
                    assert ends[unknown.id].detail, "the end of a container that is gone must say why"
                    if second.id not in ends:  # the engine has not heard of it yet
                        await driver.until(lambda: driver.ended(second), "the end of a container that has ended")
                    ended = driver.ended(second)
                    exit = ended.exit if ended else ends[second.id]
                    assert exit.cause in ("withdrawn", "exit", "signal"), "it is not the node's fault"
                    assert first.id not in ends, "a container that runs was not adopted"
                    await driver.poll_on()
                    assert driver.ended(first) is None, "a container that runs was reported as ended"
                    assert runs(), "taking over killed a program"
                    allocator.release(first.id)
                    await driver.until(lambda: driver.ended(first), "the end of an adopted container")
                    await eventually(lambda: not runs(), "the end of the program in an adopted container")
                    await driver.get("worker", 3)  # the room of all is free again
                finally:
                    await allocator.unregister(Outcome(State.SUCCEEDED))

            async def serve_and_take_over() -> None:
                async with serve_launches(context) as served:
                    await takeover(served)

            asyncio.run(serve_and_take_over())

    def left_by_a_killed_master(self, context: MasterContext, line: str, runs: Callable[[], bool]) -> list[Container]:
        """Return two containers of `worker` of a master that ran in a process of its own. The first runs `line`, and
        `runs` tells whether it does; the second ends when that master is gone."""
        known = to_json({**vars(context), "staged": encode(context.staged), "launches": None})
        target = f"{self.implementation.__module__}:{self.implementation.__qualname__}"
        variables = {**self.environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with tempfile.TemporaryDirectory() as directory:
            Path(directory).chmod(0o777)
            fifo = Path(directory, "master")
            os.mkfifo(fifo)
            fifo.chmod(0o666)
            arguments = [sys.executable, "-m", __name__, target, known, line, str(fifo)]
            with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=variables) as master:
                assert master.stdout is not None
                found = master.stdout.readline()  # when the second program runs
                containers = [decode(Container, each) for each in json.loads(found or b"[]")]
                if found:
                    asyncio.run(eventually(runs, "the start of a program"))
                    self.wait_counted(containers)
                master.kill()
        assert found, "the master that was to be killed ended by itself"
        return containers


async def _leave_containers(target: str, known: str, line: str, fifo: str) -> None:
    """Get two containers and launch programs in both; the second program reads `fifo` until this process has ended.
    Then wait to be killed."""
    implementation: type[Allocator] = plugins.load(target)
    fields = json.loads(known)
    context = MasterContext(**{**fields, "staged": decode(StagedJob, fields["staged"])})
    async with serve_launches(context) as served:
        driver = Driver(await implementation.open(served))
        containers = await driver.get("worker", 2)
        await driver.launch(containers[0], line)
        await driver.launch(containers[1], f"cat {fifo}; exit 3")
        # This waits for the program: a container that polls for its program must have got it.
        with await asyncio.to_thread(Path(fifo).open, "wb"):
            print(to_json([encode(each) for each in containers]), flush=True)
            await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(_leave_containers(*sys.argv[1:5]))
