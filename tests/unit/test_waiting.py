"""Tests what is recorded, and said, of a job that waits for containers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest

from howdah.api.serializers import job as described
from howdah.cli.progress_lines import event_line
from howdah.engines.pending_reasons import PendingReason
from howdah.errors import EngineUnavailable
from howdah.master import waiting
from howdah.spec import JobSpec, Outcome, Resources, Role, State
from howdah.spec.events import CancelRequested, Event, JobFinished, JobStarted, Waiting
from howdah.spec.fold import fold
from howdah.testing import FakeAllocator, Gang

T = TypeVar("T")
JOB = JobSpec({"worker": Role("w", replicas=3, resources=Resources(memory_mib=100, growth=0.5))}, retries=1)


class Telling(FakeAllocator):
    """An allocator that says why it has not granted containers."""

    reasons: list[PendingReason]
    asked: list[tuple[int, Mapping[str, int]]]

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        self.asked.append((job.roles["worker"].resources.memory_mib, dict(missing)))
        if not self.reasons:
            raise EngineUnavailable("nobody answers")
        return self.reasons


def done(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 20))


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Telling:
    for name in ("CHECK_S", "FIRST_S", "EVERY_S", "CHANGED_S", "SHARE"):
        monkeypatch.setattr(waiting, name, 0.0)
    made = Telling.__new__(Telling)
    made.reasons, made.asked = [PendingReason("queue-pending", {"count": 2, "queue": "q"})], []
    return made


async def recorded(gang: Gang, allocator: Telling, *until: int) -> list[Waiting]:
    """Return what is recorded until there are so many records; between two numbers a container is granted."""
    found: list[Event] = []
    task = asyncio.create_task(waiting.record_waits(gang.state, allocator, found.append))
    for number in until:
        while len(found) < number:
            await asyncio.sleep(0)
            assert not task.done()
        gang.grant("worker")
    task.cancel()
    return [event for event in found if isinstance(event, Waiting)]


def test_each_change_is_recorded_once(allocator: Telling) -> None:
    found = done(recorded(Gang(JOB), allocator, 1, 2, 3))
    assert [event.missing for event in found] == [{"worker": 3}, {"worker": 2}, {"worker": 1}]
    assert len({event.since for event in found}) == 1
    assert found[0].reasons == ("2 jobs wait in queue q",)
    assert event_line(found[1]) == "still waiting for containers: 2 × worker: 2 jobs wait in queue q"


def test_that_nothing_is_missing_any_more_is_recorded(allocator: Telling) -> None:
    gang = Gang(JOB)

    async def until_all_are_there() -> list[Event]:
        found: list[Event] = []
        task = asyncio.create_task(waiting.record_waits(gang.state, allocator, found.append))
        while not found:
            await asyncio.sleep(0)
        for _ in range(3):
            gang.grant("worker")
        while len(found) < 2:
            await asyncio.sleep(0)
        task.cancel()
        return found

    last = done(until_all_are_there())[-1]
    assert isinstance(last, Waiting)
    assert (last.missing, event_line(last)) == ({}, "")


def test_the_next_master_records_that_the_wait_is_over(allocator: Telling) -> None:
    gang, found = Gang(JOB), list[Event]()
    gang.form()

    async def until_it_is_over() -> None:
        before = Waiting(5.0, 2.0, {"worker": 1}, ("no room",))
        task = asyncio.create_task(waiting.record_waits(gang.state, allocator, found.append, before))
        while not found:
            await asyncio.sleep(0)
        task.cancel()

    done(until_it_is_over())
    assert [event.missing for event in found if isinstance(event, Waiting)] == [{}]


def test_of_a_job_that_stops_nothing_is_recorded(allocator: Telling) -> None:
    gang, found = Gang(JOB), list[Event]()
    gang.feed(CancelRequested(2.0, "me"))
    assert not gang.state.open
    done(waiting.record_waits(gang.state, allocator, found.append))
    assert found == []


def test_an_engine_that_does_not_say_why_keeps_nothing_from_being_recorded(allocator: Telling) -> None:
    allocator.reasons = []
    (found,) = done(recorded(Gang(JOB), allocator, 1))
    assert (found.missing, found.reasons) == ({"worker": 3}, ())
    assert event_line(found) == "still waiting for containers: 3 × worker"


def test_an_engine_with_a_fault_ends_no_job(allocator: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(self: Telling, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        raise KeyError("queue")

    monkeypatch.setattr(Telling, "pending_reasons", faulty)
    (found,) = done(recorded(Gang(JOB), allocator, 1))
    assert (found.missing, found.reasons) == ({"worker": 3}, ())


def test_after_a_long_wait_changes_are_recorded_soon(allocator: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "EVERY_S", 3600.0)
    monkeypatch.setattr(waiting, "CHANGED_S", 0.0)
    found = done(recorded(Gang(JOB), allocator, 1, 2, 3))
    assert [event.missing for event in found] == [{"worker": 3}, {"worker": 2}, {"worker": 1}]


def test_a_second_wait_is_recorded_soon(allocator: Telling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "EVERY_S", 3600.0)
    monkeypatch.setattr(waiting, "CHANGED_S", 3600.0)
    gang, found = Gang(JOB), list[Event]()

    async def until_it_waits_again() -> None:
        task = asyncio.create_task(waiting.record_waits(gang.state, allocator, found.append))
        while not found:
            await asyncio.sleep(0)
        pending, gang.state.pending_tasks = gang.state.pending_tasks, {}
        while len(found) < 2:
            await asyncio.sleep(0)
        gang.state.pending_tasks = pending
        while len(found) < 3:
            await asyncio.sleep(0)
        task.cancel()

    done(until_it_waits_again())
    assert [bool(event.missing) for event in found if isinstance(event, Waiting)] == [True, False, True]


def test_the_engine_is_asked_for_what_is_asked_for_after_a_restart(allocator: Telling) -> None:
    gang = Gang(JOB)
    gang.state.restarted["worker"] = 2
    done(recorded(gang, allocator, 1))
    assert allocator.asked[0] == (200, {"worker": 3})


def test_the_page_has_it_while_the_job_waits_and_not_afterwards() -> None:
    waits = Waiting(9.0, 2.0, {"worker": 3}, ("no room",))
    view = fold([JobStarted(1.0, "job-1", "yarn", "me", JOB), waits])
    assert described(view, {}, 10.0)["waiting"] == {"since": 2.0, "missing": {"worker": 3}, "reasons": ["no room"]}
    assert fold([Waiting(10.0)], view).waiting is None
    fold([waits, JobFinished(11.0, Outcome(State.CANCELLED))], view)
    assert described(view, {}, 12.0)["waiting"] is None


def test_what_has_not_changed_is_not_recorded_again(allocator: Telling) -> None:
    async def until_asked_often() -> list[Event]:
        found: list[Event] = []
        task = asyncio.create_task(waiting.record_waits(Gang(JOB).state, allocator, found.append))
        while len(allocator.asked) < 5:
            await asyncio.sleep(0)
        task.cancel()
        return found

    assert len(done(until_asked_often())) == 1
