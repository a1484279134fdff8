"""Tests the event log while its file system is unavailable for some time, or full."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.api.async_tasks import cancel_all
from howdah.master.event_log import EventLog
from howdah.spec import Outcome, State
from howdah.spec.event_lines import read_lines
from howdah.spec.events import Event, JobFinished, Noted, WorldFormed
from howdah.storage.factory import filesystem


@pytest.fixture
def blocked() -> str:
    """A directory where something else is in the way of the log, which goes when that is deleted."""
    uri = f"memory://logs/{os.getpid()}-{time.monotonic_ns()}"
    filesystem(uri).mkdirs(f"{uri}/events.jsonl")
    return uri


def texts(events: list[Event]) -> list[str]:
    return [event.text.partition(",")[0] for event in events if isinstance(event, Noted)]


def test_watchers_are_notified_and_no_event_is_lost(blocked: str) -> None:
    async def work() -> None:
        log = EventLog(blocked)
        log.append(Noted(1.0, "one"))
        await log.flush(limit_s=0.0)
        await log.flush(limit_s=0.0)
        told = ["one", "the event log cannot be written for now"]
        assert [record["text"].partition(",")[0] for record in log.records] == told
        filesystem(blocked).delete(f"{blocked}/events.jsonl")
        await log.flush()
        await log.flush()
        assert texts(
            list(read_lines(filesystem(blocked).read_bytes(f"{blocked}/events.jsonl").decode().splitlines()))
        ) == [*told, "the event log is whole again"]

    asyncio.run(work())


def test_the_end_is_the_last_that_is_told(blocked: str) -> None:
    async def work() -> None:
        log = EventLog(blocked)
        log.append(JobFinished(1.0, Outcome(State.SUCCEEDED)))
        await log.flush(limit_s=0.0)
        assert [record["kind"] for record in log.records] == ["JobFinished"]

    asyncio.run(work())


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes meanwhile."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with contextlib.redirect_stderr(io.StringIO()):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_of_this_machine_loses_no_event(tmp_path: Path) -> None:
    """Nor one of which a part had room: as many as a buffer holds several times."""

    async def work() -> None:
        log = EventLog(tmp_path.as_uri())
        log.append(Noted(1.0, "before"))
        with full_disk(100):
            for number in range(200):
                log.append(Noted(2.0, f"{number}, {'x' * 100}"))
            assert not await log.flush(limit_s=0.0)
        assert await log.flush()
        log.append(JobFinished(3.0, Outcome(State.SUCCEEDED)))
        log.close()
        found = list(read_lines((tmp_path / "events.jsonl").read_text().splitlines()))
        numbers, notes = [str(number) for number in range(200)], texts(found)
        assert notes[:201] == ["before", *numbers]
        assert notes[201:] == ["the event log cannot be written for now", "the event log is whole again"]
        assert isinstance(found[-1], JobFinished)

    asyncio.run(work())


@pytest.mark.parametrize("turns", range(6))
def test_writing_ends_though_something_was_decided_just_then(turns: int, tmp_path: Path) -> None:
    async def work() -> None:
        log = EventLog(f"file://{tmp_path}")
        writing = asyncio.create_task(log.flush_forever())
        for _ in range(5):
            await asyncio.sleep(0)
        log.append(WorldFormed(1.0, 1))
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.wait_for(cancel_all(lambda: [] if writing.done() else [writing]), 60)
        log.close()

    asyncio.run(work())
