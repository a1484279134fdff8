"""Tests the event log while its file system is unavailable for some time, or full."""

from __future__ import annotations

import asyncio
import os
import time
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
