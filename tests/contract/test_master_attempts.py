"""Tests that a master which its engine ends, with its helpers, writes no end of the job and returns no container."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from howdah.engines import AttemptOver
from howdah.errors import EngineRejected
from howdah.executor.process.process_tree import children
from howdah.master.app import CLAIM_S, ENGINE_SILENT_S, JobMaster, MasterIdentity
from howdah.master.event_log import EventLog
from howdah.master.owned_file import LogOwnerChanged
from howdah.master.state import Stage
from howdah.outputs.commit import reserve, temporary_directory
from howdah.spec import Board, Container, Exit, JobSpec, Output, Role, StagedJob, State, event_lines, uris
from howdah.spec.codec import encode
from howdah.spec.events import AllocationLost, BoardChanged, Event, TookOver, Used
from howdah.storage.factory import filesystem
from howdah.testing import FakeAllocator
from howdah.wire import auth
from howdah.wire.connection import MasterConnection, WireError
from howdah.wire.messages import Phase, Status

KEY = b"k" * 32
LIMIT_S = 120.0
NO_BOARD = Board()


class First(FakeAllocator):
    """Of an engine that starts another master when one ends."""

    restarts = True


class Second(First):
    """Of a master that takes over; `ends` are containers that are gone."""

    attempt = 2
    ends: ClassVar[dict[str, Exit]] = {}

    async def adopt(self, containers: object) -> Mapping[str, Exit]:
        return self.ends


class Attempt:
    """One attempt of the master of a job of one worker with an output."""

    def __init__(self, directory: Path, allocator: type[FakeAllocator], files: str, board: Board) -> None:
        self.directory, self.output = directory, directory / "out"
        spec = JobSpec({"worker": Role("train")}, outputs=(Output(self.output.as_uri(), "model"),), board=board)
        staged = StagedJob(spec, home=directory.as_uri())
        self.identity = MasterIdentity("job-1", "fake", files or directory.as_uri(), "127.0.0.1", staged, KEY, {})
        (directory / "key").write_text("key")
        reserve(spec, "job-1")
        self.master = JobMaster(self.identity, allocator, again_s=0.1)
        self.running = asyncio.ensure_future(self.master.run())

    async def until(self, holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not holds():
            assert not self.running.done(), self.running.exception()
            assert time.monotonic() < deadline, "it did not become so"
            await asyncio.sleep(0.002)

    async def say(self, sequence: int, phase: Phase, **fields: object) -> None:
        """The executor posts its status."""
        assert self.master.context is not None
        name = auth.executor_principal("worker:0", 1)
        status = Status(
            task="worker:0",
            attempt=1,
            epoch=1,
            sequence=sequence,
            phase=phase,
            host="127.0.0.1",
            pid=7,
            ports={"main": 4000},
            **fields,
        )
        with MasterConnection(self.master.context.url, name, auth.derive(KEY, name)) as connection:
            await asyncio.to_thread(connection.call, "POST", "/v1/executor", encode(status))

    async def run_to(self, phase: Phase) -> None:
        await self.until(lambda: self.master.state.containers)
        await self.say(1, Phase.JOINED)
        await self.say(2, Phase.RUNNING, program_pid=9)
        if phase is Phase.ENDED:
            await self.end(3)

    async def end(self, sequence: int) -> None:
        """The program ended well, and what it made is uploaded."""
        part = Path(uris.path(temporary_directory("job-1", 0, self.output.as_uri()))) / "worker-0.1"
        part.mkdir(parents=True, exist_ok=True)
        (part / "made").write_text("model")
        done = Exit("exit", 0)
        await self.say(sequence, Phase.ENDED, program_pid=9, exit=done, uploaded=(part.as_uri(),))

    @property
    def allocator(self) -> FakeAllocator:
        assert isinstance(self.master.allocator, FakeAllocator)
        return self.master.allocator

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of the events in the log, without samples."""
        return [type(event).__name__ for event in self.events if not isinstance(event, Used)]

    @property
    def events(self) -> list[Event]:
        """Return the events in the log."""
        return list(event_lines.read_lines((self.directory / "events.jsonl").read_text().splitlines()))


@contextlib.asynccontextmanager
async def attempt(
    directory: Path, allocator: type[FakeAllocator] = First, files: str = "", board: Board = NO_BOARD
) -> AsyncIterator[Attempt]:
    """`files` is the URI of the job's directory, if it is not to be `directory`."""
    running = Attempt(directory, allocator, files, board)
    try:
        yield running
    finally:
        running.running.cancel()
        with contextlib.suppress(asyncio.CancelledError, AttemptOver, EngineRejected, LogOwnerChanged):
            await running.running
        await running.master.close()


def play(act: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(act(), LIMIT_S)

    asyncio.run(whole())


def helpers() -> list[int]:
    """Processes of ours that put outputs in their places."""
    found = []
    for pid in children(os.getpid()):
        with contextlib.suppress(OSError):
            if b"howdah.outputs.commit" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_an_attempt_that_is_over_leaves_everything_as_it_is(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.RUNNING)
            assert first.master.context is not None
            kept = http.client.HTTPConnection(first.master.context.host, first.master.context.port)
            kept.connect()
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver, match=r"^signal SIGTERM$"):
                await first.running
            assert first.kinds[-1] == "AllocationLost"
            assert first.allocator.outcome is None, "the engine is told nothing"
            assert first.allocator.released == []
            assert (tmp_path / "key").exists()
            with pytest.raises(WireError):
                await first.say(3, Phase.RUNNING, program_pid=9)
            kept.close()
        async with attempt(tmp_path, Second) as second:
            await second.until(lambda: second.master.registered)
            await second.say(4, Phase.RUNNING, program_pid=9)
            await second.end(5)
            assert (await second.running).state is State.SUCCEEDED
            assert second.kinds.count("Started") == 1, "nothing was started again"
            assert not (tmp_path / "key").exists()

    play(act)


@pytest.mark.parametrize("show", [True, False])
def test_the_tensorboard_of_an_earlier_master_has_ended(tmp_path: Path, show: bool) -> None:
    """Its container is not kept, and nobody is shown a link that leads nowhere."""
    board = Board("hdfs://n/runs", show=show)

    starting = ["starting"] if show else []

    async def act() -> None:
        async with attempt(tmp_path, board=board) as first:
            await first.run_to(Phase.RUNNING)
            await first.until(lambda: [first.master.log.view.tensorboard.state] == (starting or [""]))
            first.master.log.append(BoardChanged(time.time(), "open", "h1", 7))
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver):
                await first.running
        async with attempt(tmp_path, Second, board=board) as second:
            await second.until(lambda: second.master.registered)
            if show:
                await second.until(lambda: second.master.tensorboard.containers)
            told = [event for event in second.events if isinstance(event, BoardChanged)]
            assert [event.state for event in told] == [*starting, "open", "ended", *starting]
            assert {event.detail for event in told} == {"", "another master took over"}
            await second.say(4, Phase.RUNNING, program_pid=9)
            await second.end(5)
            assert (await second.running).state is State.SUCCEEDED

    play(act)


def test_an_attempt_that_is_over_refuses_actions(tmp_path: Path) -> None:
    """What it said yes to, nobody would do."""

    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.RUNNING)
            first.master.state.handed_over = True
            assert first.master.context is not None
            client = MasterConnection(first.master.context.url, auth.CLIENT, auth.derive(KEY, auth.CLIENT))
            with client, pytest.raises(WireError):
                await asyncio.to_thread(client.call, "POST", "/v1/actions/cancel", {})
            with pytest.raises(WireError):
                await first.say(3, Phase.RUNNING, program_pid=9)

    play(act)


class Unheard(First):
    """Of an engine that may have started another master."""

    def may_be_replaced(self) -> bool:
        return True


def test_a_master_that_may_be_replaced_renews_leases_while_it_owns_the_log(tmp_path: Path) -> None:
    """Where the log can't be looked at, nobody knows."""
    files = f"memory://attempts/{tmp_path.name}-{time.monotonic_ns()}"

    async def act() -> None:
        filesystem(files).mkdirs(f"{files}/events.jsonl")  # something is in its way
        async with attempt(tmp_path, Unheard, files) as first:
            await first.until(lambda: first.master.state.containers)
            with pytest.raises(WireError, match="another master may have taken over") as refused:
                await first.say(1, Phase.JOINED)
            assert refused.value.status == 503
            filesystem(files).delete(f"{files}/events.jsonl")
            await first.until(first.master.api.is_the_master)
            await first.say(2, Phase.JOINED)
            took_over = TookOver(time.time(), 2)
            await EventLog(files).take_over(lambda: took_over)
            with pytest.raises(LogOwnerChanged):
                await first.running

    play(act)


def test_a_helper_that_was_killed_has_not_decided_how_the_job_ended(tmp_path: Path) -> None:
    """What is sent to the master's process group ends its helpers, too, and these perhaps first."""

    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.ENDED)
            await first.until(helpers)
            os.kill(helpers()[0], signal.SIGTERM)
            assert (await first.running).state is State.SUCCEEDED
            assert (first.output / "worker-0" / "made").read_text() == "model"

    play(act)


def test_a_helper_ends_with_the_attempt_and_the_next_one_starts_another(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.ENDED)
            await first.until(helpers)
            os.kill(helpers()[0], signal.SIGSTOP)  # it is in the midst of it
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver):
                await first.running
            deadline = time.monotonic() + LIMIT_S
            while helpers():
                assert time.monotonic() < deadline, "it was not killed"
                await asyncio.sleep(0.01)
            assert "JobFinished" not in first.kinds
        async with attempt(tmp_path, Second) as second:
            assert (await second.running).state is State.SUCCEEDED
            assert second.kinds.count("Committed") == 1

    play(act)


def test_an_end_that_is_written_is_final(tmp_path: Path) -> None:
    """The engine was not told of it before the attempt was over. People were: what they have done since with the
    output is theirs to do."""

    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.ENDED)
            assert (await first.running).state is State.SUCCEEDED
        first.output.rename(tmp_path / "moved")
        async with attempt(tmp_path, Second) as second:
            assert (await second.running).state is State.SUCCEEDED
            assert second.allocator.outcome is not None
            assert second.allocator.outcome.state is State.SUCCEEDED
            assert second.allocator.released == [*second.master.state.containers]
            assert (second.kinds.count("Committed"), second.kinds.count("JobFinished")) == (1, 1)
            assert not second.output.exists(), "nothing is made in its place"

    play(act)


def test_containers_that_are_gone_are_held_against_no_task(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.RUNNING)
            (container,) = first.master.state.containers
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver):
                await first.running
        gone = type("Gone", (Second,), {"ends": {container: Exit("withdrawn", detail="taken back")}})
        async with attempt(tmp_path, gone) as second:
            outcome = await second.running
            assert outcome.diagnostics.startswith("worker:0 on node1: taken back; nothing starts again")
            assert second.master.state.node_failures == []

    play(act)


@pytest.mark.parametrize("kills", [True, False])
def test_what_an_engine_has_killed_is_not_waited_for(tmp_path: Path, kills: bool) -> None:
    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.RUNNING)
            (container,) = first.master.state.containers
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver):
                await first.running
        ends = {container: Exit("withdrawn", detail="killed")}
        gone = type("Gone", (Second,), {"ends": ends, "kills_what_is_gone": kills})
        async with attempt(tmp_path, gone) as second:
            await second.running
            (task,) = second.master.state.tasks.values()
            assert (task.fenced_until == 0.0) == kills

    play(act)


def test_an_engine_that_tells_nothing_withdraws_all(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.until(lambda: first.master.context)
            assert first.master.context is not None
            allocator = await FakeAllocator.open(first.master.context)
            ends = await allocator.adopt([Container("c1", "n1", "worker"), Container("c2", "n2", "worker")])
            assert {id_: exit.cause for id_, exit in ends.items()} == {"c1": "withdrawn", "c2": "withdrawn"}

    play(act)


class Refused(First):
    """Of an engine that refuses everything once `refuses` is set."""

    refuses = False

    async def poll(self) -> list[Event]:
        while not self._news.qsize():
            if self.refuses:
                raise EngineRejected("no such queue")
            await asyncio.sleep(0.002)
        return await super().poll()


def test_what_is_being_committed_is_the_jobs_end_whatever_goes_wrong_beside_it(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path, Refused) as first:
            await first.run_to(Phase.ENDED)
            await first.until(lambda: first.master.state.stage is Stage.COMMITTING)
            first.allocator.refuses = True  # type: ignore[attr-defined]
            assert (await first.running).state is State.SUCCEEDED
            assert (first.output / "worker-0" / "made").read_text() == "model"
            assert first.kinds.count("JobFinished") == 1

    play(act)


def test_an_engine_that_refuses_ends_a_job_that_runs(tmp_path: Path) -> None:
    async def act() -> None:
        async with attempt(tmp_path, Refused) as first:
            await first.run_to(Phase.RUNNING)
            first.allocator.refuses = True  # type: ignore[attr-defined]
            with pytest.raises(EngineRejected, match="no such queue"):
                await first.running

    play(act)


class Silent(First):
    """Of an engine that has not answered for a while, and has not given this master up by that alone."""

    def silent_s(self) -> float:
        return ENGINE_SILENT_S + 1


def test_a_master_that_was_cut_off_notices_the_other_owner_of_the_log_without_writing(tmp_path: Path) -> None:
    files = f"memory://attempts/{tmp_path.name}-{time.monotonic_ns()}"

    async def act() -> None:
        async with attempt(tmp_path, Silent, files) as first:
            await first.until(lambda: first.master.state.containers)
            assert await first.master.log.flush()
            await EventLog(files).take_over(lambda: TookOver(time.time(), 2))
            with pytest.raises(LogOwnerChanged):
                await first.running

    play(act)


def test_the_time_of_a_slow_claim_of_the_log_is_added_to_all_deadlines(tmp_path: Path) -> None:
    """The master before may have renewed leases until it was done."""

    async def act() -> None:
        async with attempt(tmp_path) as first:
            await first.run_to(Phase.RUNNING)
            first.master.apply(AllocationLost(time.time(), "signal SIGTERM"))
            with pytest.raises(AttemptOver):
                await first.running
        async with attempt(tmp_path, Second) as second:
            take_over = second.master.log.take_over

            async def slowly(event: Callable[[], TookOver]) -> list[Event]:
                events = await take_over(event)
                await asyncio.sleep(2 * CLAIM_S)
                return events

            second.master.log.take_over = slowly  # type: ignore[method-assign]
            await second.until(lambda: second.master.registered)
            assert second.kinds[-2:] == ["TookOver", "TimeLost"]

    play(act)
