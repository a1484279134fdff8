"""Tests a job whose directory is on an object store, with a real server of its protocol."""

from __future__ import annotations

import asyncio
import json
import os
import time
import urllib.request
from pathlib import Path

import fsspec
import pytest
from test_master_attempts import Second, attempt, play

from howdah.api import metric_series
from howdah.api.recorded_log import RecordedLog
from howdah.client.recorded_events import recorded_events
from howdah.engines import cleanup
from howdah.errors import StagingError
from howdah.history.directory_scan import Scanner
from howdah.history.index import Index
from howdah.master.event_log import EventLog
from howdah.master.owned_file import LogOwnerChanged
from howdah.spec import JobReport, JobSpec, Outcome, Role, StagedJob, State
from howdah.spec.codec import encode
from howdah.spec.events import Event, JobFinished, JobStarted, Noted, TookOver
from howdah.storage.factory import filesystem
from howdah.storage.segmented_log import find_log
from howdah.wire.messages import Phase

pytestmark = pytest.mark.usefixtures("s3")
SPEC = JobSpec({"worker": Role("train")}, name="on an object store")


@pytest.fixture
def home() -> str:
    return f"s3://howdah/{os.urandom(4).hex()}"


def kinds(directory: str) -> list[str]:
    report = JobReport("job-1", "", State.RUNNING, "fake", directory=directory)
    return [type(event).__name__ for event in recorded_events(report)]


def names(directory: str) -> list[str]:
    return [entry.uri.rpartition("/")[2] for entry in filesystem(directory).children(directory) if not entry.is_dir]


async def flush(log: EventLog, *events: Event) -> None:
    for event in events:
        log.append(event)
        assert await log.flush(0.0)


def test_each_flush_is_a_new_object_and_the_end_merges_them(home: str) -> None:
    async def act() -> None:
        log = EventLog(home)
        await flush(log, JobStarted(1.0, "job-1", "fake", "u", SPEC), *(Noted(2.0 + n, str(n)) for n in range(3)))
        assert names(home) == ["events-000001.jsonl", "events-000002.jsonl", "events-000003.jsonl", "events.jsonl"]
        await flush(log, *(Noted(9.0 + n, str(n)) for n in range(40)))
        await flush(log, JobFinished(99.0, Outcome(State.SUCCEEDED)))
        await log.finish()
        assert names(home) == ["events-000000-000044.jsonl", "events.jsonl"]

    asyncio.run(act())
    assert kinds(home) == ["JobStarted", *["Noted"] * 43, "JobFinished"]


def test_two_masters(home: str) -> None:
    async def act() -> None:
        old, new = EventLog(home), EventLog(home)
        await flush(old, JobStarted(1.0, "job-1", "fake", "u", SPEC), Noted(2.0, "one"))
        took_over = TookOver(3.0, 2)
        assert len(await new.take_over(lambda: took_over)) == 3
        with pytest.raises(LogOwnerChanged):
            await old.confirm()
        old.append(Noted(4.0, "of the old one"))
        with pytest.raises(LogOwnerChanged):
            await old.flush()
        await flush(new, Noted(5.0, "two"))
        assert await new.confirm()

    asyncio.run(act())
    assert kinds(home) == ["JobStarted", "Noted", "TookOver", "Noted"]


def test_a_whole_master_and_the_one_after_it(home: str, tmp_path: Path) -> None:
    """Its event log, its metrics, and its address."""

    async def act() -> None:
        async with attempt(tmp_path, files=home) as first:
            await first.run_to(Phase.RUNNING)
            await first.master.log.flush()
            first.running.cancel()
        async with attempt(tmp_path, Second, files=home) as second:
            await second.until(lambda: second.master.registered)
            assert "master.json" in names(home)
            await second.say(4, Phase.RUNNING, program_pid=9)
            await second.end(5)
            assert (await second.running).state is State.SUCCEEDED

    play(act)
    found = kinds(home)
    assert found[0] == "JobStarted"
    assert found[-1] == "JobFinished"
    assert found.count("TookOver") == 1
    log = find_log(filesystem(home), f"{home}/events.jsonl")
    assert log is not None
    assert len(log.segments) == 1
    assert list(metric_series.read(home))


def test_readers_go_on_where_they_stopped(home: str, tmp_path: Path) -> None:
    directory = f"{home}/jobs/fake-1"
    log, recorded = EventLog(directory), RecordedLog("fake-1", directory, filesystem(home))
    index = Index(tmp_path / "index")
    assert index.claim()
    scanner = Scanner(index, [home])

    async def write(*events: Event) -> None:
        await flush(log, *events)

    def read() -> list[object]:
        recorded.apply(recorded.read())
        scanner.scan()
        return [recorded.view.state, len(recorded.lines)]

    async def act() -> None:
        await write(JobStarted(time.time(), "fake-1", "fake", "u", SPEC))
        assert read() == [State.PENDING, 1]
        await write(*(Noted(time.time(), str(n)) for n in range(40)))
        assert read()[1] == 41
        await write(JobFinished(time.time(), Outcome(State.SUCCEEDED)))
        await log.finish()
        assert read() == [State.SUCCEEDED, 42]
        assert recorded.read() is None
        assert index.connection.execute("SELECT id, state FROM job").fetchall() == [("fake-1", "SUCCEEDED")]

    asyncio.run(act())
    index.close()


def test_the_end_of_a_job_whose_master_was_killed_is_written(home: str) -> None:
    files, directory = filesystem(home), f"{home}/jobs/fake-1"

    async def act() -> None:
        await flush(EventLog(directory), JobStarted(1.0, "fake-1", "fake", "u", SPEC), Noted(2.0, "one"))

    asyncio.run(act())
    files.write_bytes(f"{directory}/job.json", json.dumps(encode(StagedJob(SPEC, home=home))).encode())
    report = JobReport("fake-1", "", State.FAILED, "fake", diagnostics="killed", finished=3.0, directory=directory)
    for _ in range(2):
        cleanup.finish_ended_job(files, report, "")
    assert kinds(directory) == ["JobStarted", "Noted", "JobFinished"]


def test_a_bucket_that_does_not_exist_is_not_made() -> None:
    files, directory = filesystem("s3://howdha/home"), "s3://howdha/home/jobs/job-1"
    files.mkdirs(directory)
    with pytest.raises(StagingError, match="bucket does not exist"):
        files.write_bytes(f"{directory}/job.json", b"{}")
    assert not fsspec.filesystem("s3").exists("s3://howdha")


def test_a_signed_url_is_read_without_credentials(home: str) -> None:
    files, uri = filesystem(home), f"{home}/a file"
    files.write_bytes(uri, b"content")
    url = files.signed_url(uri, 7 * 86400)
    assert "X-Amz-Signature" in url, "version 2 of S3's signatures is refused by newer buckets"
    with urllib.request.urlopen(url, timeout=60) as answer:
        assert answer.read() == b"content"
    with pytest.raises(StagingError, match="has no signed URLs"):
        filesystem("file:///tmp").signed_url("file:///tmp/a", 60)
