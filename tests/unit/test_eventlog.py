"""The event log where its file system is away for a while, or full."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from howdah.data.fs import filesystem
from howdah.master.eventlog import EventLog
from howdah.spec import Outcome, State
from howdah.spec import events as e


@pytest.fixture
def blocked() -> str:
    """A directory where something else is in the way of the log, which goes when that is deleted."""
    uri = f"memory://logs/{os.getpid()}-{time.monotonic_ns()}"
    filesystem(uri).mkdirs(f"{uri}/events.jsonl")
    return uri


def texts(events: list[e.Event]) -> list[str]:
    return [event.text.partition(",")[0] for event in events if isinstance(event, e.Noted)]


def test_those_who_watch_are_told_and_nothing_is_lost(blocked: str) -> None:
    async def work() -> None:
        log = EventLog(blocked)
        log.append(e.Noted(1.0, "one"))
        await log.flush(limit_s=0.0)
        await log.flush(limit_s=0.0)
        told = ["one", "the event log cannot be written for now"]
        assert [record["text"].partition(",")[0] for record in log.records] == told
        filesystem(blocked).delete(f"{blocked}/events.jsonl")
        await log.flush()
        await log.flush()
        assert texts(EventLog(blocked).restore()) == [*told, "the event log is whole again"]

    asyncio.run(work())


def test_the_end_is_the_last_that_is_told(blocked: str) -> None:
    async def work() -> None:
        log = EventLog(blocked)
        log.append(e.JobFinished(1.0, Outcome(State.SUCCEEDED)))
        await log.flush(limit_s=0.0)
        assert [record["kind"] for record in log.records] == ["JobFinished"]

    asyncio.run(work())
