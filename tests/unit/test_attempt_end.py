"""Tests what a master decides when its engine ends its attempt, and what the next attempt finds."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from howdah.engines.yarn import exit_codes
from howdah.engines.yarn.diagnostics import attempt_end
from howdah.master.decisions.actions import (
    Action,
    Commit,
    CommitDone,
    HandOver,
    NoteNodeFailures,
    RecordEvent,
    ReleaseContainer,
    Tick,
)
from howdah.master.decisions.heartbeat_timeouts import FENCE_S
from howdah.master.event_log import EventLog
from howdah.master.journal import Journal
from howdah.master.owned_file import LogOwnerChanged
from howdah.master.state import Stage
from howdah.spec import Exit, Output, State, TaskId, event_lines
from howdah.spec.events import (
    AllocationLost,
    CancelRequested,
    ContainerEnded,
    GangRestarted,
    JobFinished,
    Noted,
    TookOver,
)
from howdah.storage.factory import filesystem
from howdah.testing import Gang, job
from howdah.wire.messages import Phase

WORKER = TaskId("worker", 0)


def lost(gang: Gang, comes_back: bool = True, within_s: float = 0.0) -> list[Action]:
    return gang.feed(AllocationLost(gang.now, "signal SIGTERM", comes_back, within_s))


def kinds_in_file(uri: str) -> list[str]:
    lines = filesystem(uri).read_bytes(f"{uri}/events.jsonl").decode().splitlines()
    return [type(event).__name__ for event in event_lines.read_lines(lines)]


def running(**changes: object) -> Gang:
    gang = Gang(job(**changes))
    gang.form()
    return gang


class TestHandingOver:
    def test_nothing_final_is_decided_and_nothing_more(self) -> None:
        gang = running()
        assert [type(action) for action in lost(gang)] == [RecordEvent, HandOver]
        container = gang.state.tasks[WORKER].container
        assert container is not None
        for event in (
            CancelRequested(gang.now, "me"),
            ContainerEnded(gang.now, container.id, Exit("lost")),
            Tick(gang.now + 1e6),
        ):
            assert gang.feed(event) == []
        assert gang.outcome is None
        assert gang.recorded(JobFinished) == []

    def test_the_next_master_goes_on_with_the_job(self) -> None:
        gang = running()
        lost(gang)
        gang.take_over()
        assert gang.state.open
        assert not gang.state.handed_over
        assert not gang.actions_of(ReleaseContainer)
        for number in range(2):
            gang.end(f"worker:{number}")
        gang.end("ps:0", Exit("stopped"))
        assert gang.outcome is not None
        assert gang.outcome.state is State.SUCCEEDED

    def test_outputs_that_were_being_committed_are_committed_by_the_next_master(self) -> None:
        gang = running(outputs=(Output("/out"),))
        for number in range(2):
            gang.end(f"worker:{number}", made=(0,))
        gang.end("ps:0", Exit("stopped"))
        assert gang.state.stage is Stage.COMMITTING
        lost(gang)
        assert gang.feed(CommitDone(gang.now, error="commit: the helper was killed")) == []
        gang.take_over()
        assert len(gang.actions_of(Commit)) == 2
        gang.feed(CommitDone(gang.now, ("/out",)))
        assert gang.outcome is not None
        assert gang.outcome.state is State.SUCCEEDED

    def test_a_job_that_was_to_be_cancelled_stays_so(self) -> None:
        gang = running()
        gang.feed(CancelRequested(gang.now, "alice"))
        lost(gang)
        gang.take_over()
        gang.wait(600)
        assert gang.outcome is not None
        assert (gang.outcome.state, gang.outcome.diagnostics) == (State.CANCELLED, "cancelled by alice")


class TestTheEnd:
    def test_where_no_master_follows_the_job_fails_for_this_reason(self) -> None:
        gang = running()
        lost(gang, comes_back=False, within_s=2.0)
        assert gang.state.stop_by == gang.now + 2.0
        gang.wait(3.0)
        assert gang.outcome is not None
        assert gang.outcome.state is State.FAILED
        assert gang.outcome.diagnostics == "the engine took the job's containers back: signal SIGTERM"

    def test_an_outcome_that_is_decided_stays(self) -> None:
        gang = running(outputs=(Output("/out"),))
        for number in range(2):
            gang.end(f"worker:{number}", made=(0,))
        lost(gang, comes_back=False)
        gang.end("ps:0", Exit("stopped"))
        gang.feed(CommitDone(gang.now, ("/out",)))
        assert gang.outcome is not None
        assert gang.outcome.state is State.SUCCEEDED

    def test_the_next_master_knows_of_it(self) -> None:
        """One that was killed before it could write the end down."""
        gang = running()
        lost(gang, comes_back=False)
        gang.take_over()
        gang.wait(600)
        assert gang.outcome is not None
        assert gang.outcome.state is State.FAILED


class TestWithdrawn:
    """A container that is gone at a takeover is nobody's fault."""

    def test_no_strike_and_no_retry(self) -> None:
        gang = running(retries=1)
        container = gang.state.tasks[WORKER].container
        assert container is not None
        gang.gone.add(container.id)
        lost(gang)
        gang.take_over()
        (again,) = gang.recorded(GangRestarted)
        assert again.reason.endswith("(not counted as a retry: withdrawn)")
        assert gang.state.retries_used == 0
        assert not gang.state.node_penalties
        assert not gang.state.node_failures
        assert not gang.actions_of(NoteNodeFailures)

    def test_its_program_may_still_run(self) -> None:
        gang = running(retries=1)
        container = gang.state.tasks[WORKER].container
        assert container is not None
        gang.gone.add(container.id)
        gang.take_over()
        assert gang.state.tasks[WORKER].fenced_until >= gang.now + FENCE_S

    def test_one_whose_files_are_gone_is_given_back(self) -> None:
        """Its executor is heard, and could start nothing there."""
        gang = running(retries=1)
        container = gang.state.tasks[WORKER].container
        assert container is not None
        gang.end(str(WORKER), Exit("withdrawn", code=75, detail="the node has removed the container's files"))
        assert [one.container_id for one in gang.actions_of(ReleaseContainer)] == [container.id]
        assert gang.recorded(GangRestarted)[-1].reason.endswith("(not counted as a retry: withdrawn)")
        assert gang.state.retries_used == 0
        assert not gang.actions_of(NoteNodeFailures)

    def test_before_the_gang_has_formed_it_is_replaced(self) -> None:
        gang = Gang(job())
        for role in ("ps", "worker", "worker"):
            gang.grant(role)
        gang.say("worker:0", Phase.HELLO)
        container = gang.state.tasks[WORKER].container
        assert container is not None
        gang.feed(ContainerEnded(gang.now, container.id, Exit("withdrawn")))
        assert gang.state.replacements == 1
        assert gang.state.open

    @pytest.mark.parametrize(
        ("status", "cause"),
        [
            (-100, "withdrawn"),
            (-101, "withdrawn"),
            (-106, "withdrawn"),
            (-107, "withdrawn"),
            (137, "withdrawn"),
            (143, "withdrawn"),
            (-104, "memory"),
            (-102, "preempted"),
            (75, "exit"),
        ],
    )
    def test_yarn_reports_an_end_that_no_executor_reported(self, status: int, cause: str) -> None:
        assert exit_codes.exit_without_master(status, "why").cause == cause


class TestLog:
    """Two masters that live at the same time, of which the old one is cut off from its engine, not from the files."""

    @pytest.fixture
    def uri(self) -> str:
        return f"memory://attempts/{os.getpid()}-{time.monotonic_ns()}"

    def test_the_old_one_can_not_write_first(self, uri: str) -> None:
        async def work() -> None:
            old, new = EventLog(uri), EventLog(uri)
            old.append(Noted(1.0, "one"))
            assert await old.confirm()
            took_over = TookOver(2.0, 2)
            assert await new.take_over(lambda: took_over) == [Noted(1.0, "one"), took_over]
            with pytest.raises(LogOwnerChanged):
                await old.confirm()
            old.append(Noted(3.0, "of the old one"))
            with pytest.raises(LogOwnerChanged):
                await old.flush()
            new.append(Noted(4.0, "two"))
            assert await new.confirm()
            kinds = ["Noted", "TookOver", "Noted"]
            assert kinds_in_file(uri) == kinds
            assert [record["kind"] for record in new.records] == kinds

        asyncio.run(work())

    def test_what_the_old_one_writes_while_it_is_read_is_not_lost(self, uri: str) -> None:
        async def work() -> None:
            old, new = EventLog(uri), EventLog(uri)
            old.append(Noted(1.0, "one"))
            assert await old.flush()

            def meanwhile() -> TookOver:
                """Between the reading and the claim, once."""
                if len(filesystem(uri).read_bytes(f"{uri}/events.jsonl").splitlines()) == 1:
                    filesystem(uri).append(f"{uri}/events.jsonl", event_lines.to_line(Noted(2.0, "two")).encode())
                return TookOver(3.0, 2)

            found = await new.take_over(meanwhile)
            assert [event.text for event in found if isinstance(event, Noted)] == ["one", "two"]
            assert [record["kind"] for record in new.records] == ["Noted", "Noted", "TookOver"]

        asyncio.run(work())

    def test_a_log_that_is_not_there_is_not_begun(self, uri: str) -> None:
        async def work() -> None:
            assert await EventLog(uri).take_over(lambda: TookOver(1.0, 2)) == []
            assert not filesystem(uri).exists(f"{uri}/events.jsonl")

        asyncio.run(work())

    def test_an_end_of_a_line_is_not_the_beginning_of_the_next(self, uri: str) -> None:
        async def work() -> None:
            filesystem(uri).write_bytes(
                f"{uri}/events.jsonl", event_lines.to_line(Noted(1.0, "one")).encode() + b'{"kind":"No'
            )
            found = await EventLog(uri).take_over(lambda: TookOver(2.0, 2))
            assert [type(event).__name__ for event in found] == ["Noted", "TookOver"]
            assert kinds_in_file(uri) == ["Noted", "TookOver"]

        asyncio.run(work())

    def test_journals_beside_the_log_are_the_next_ones_at_once(self, uri: str) -> None:
        async def work() -> None:
            old, new = Journal(f"{uri}/metrics.jsonl", "metrics"), Journal(f"{uri}/metrics.jsonl", "metrics")
            old.write("one\n")
            assert await old.flush()
            new.resume()
            old.write("two\n")
            with pytest.raises(LogOwnerChanged):
                await old.flush()
            new.write("three\n")
            assert await new.flush()
            assert filesystem(uri).read_bytes(f"{uri}/metrics.jsonl") == b"one\n\nthree\n"

        asyncio.run(work())


@pytest.mark.parametrize(
    ("diagnostics", "told"),
    [
        (
            "AM Container for appattempt_1795373605237_0017_000001 exited with  exitCode: -104\n"
            "Failing this attempt.Diagnostics: [2026-11-22 20:04:20.1]Container [pid=1] runs beyond physical memory "
            "limits. Current usage: 516.7 MB of 512 MB physical memory used; 1.1 GB of 1.1 GB virtual memory used. "
            "Killing container.\n",
            "killed by the node, used 516.7 MiB of 512 MiB",
        ),
        (
            "AM Container for appattempt_1795373605237_0015_000001 exited with  exitCode: -100\n"
            "Failing this attempt.Diagnostics: Container released on a *lost* nodeFor more detailed output, check the "
            "application tracking page: http://rm/cluster/app/application_1 Then click on links to logs.",
            "the container was given back or its node was lost: Container released on a *lost* node",
        ),
        ("Attempt failed by user.", "Attempt failed by user."),
        ("", ""),
    ],
)
def test_how_an_attempt_ended(diagnostics: str, told: str) -> None:
    assert attempt_end(diagnostics) == told
