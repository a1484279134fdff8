"""Tests that an event log begins with the file that the submission before has begun: a new one takes half a second."""

from __future__ import annotations

import asyncio
import itertools
import os
import time

import pytest

from howdah.api.async_tasks import cancel_all
from howdah.errors import EngineUnavailable
from howdah.master.event_log import EventLog
from howdah.master.owned_file import AppendedFile, LogOwnerChanged
from howdah.spec import JobSpec, Role, uris
from howdah.spec.event_lines import read_log
from howdah.spec.events import Event, JobStarted
from howdah.storage import begun_files
from howdah.storage.begun_files import BEGUN_LOG
from howdah.storage.factory import filesystem
from howdah.storage.filesystem import Sink
from howdah.storage.fsspec_adapter import FsspecFileSystem

NEW_S, AGAIN_S, LIMIT_S = 0.5, 0.02, 10.0
_numbers = itertools.count()


class SlowToCreate(FsspecFileSystem):
    """In memory, with HDFS's times on a clock of its own: `spent_s`. `fault` comes after the next rename is done."""

    spent_s, fault = 0.0, ""

    def create(self, uri: str, mode: int = 0o644) -> Sink:
        self.spent_s += NEW_S
        return super().create(uri, mode)

    def append(self, uri: str, data: bytes) -> None:
        self.spent_s += AGAIN_S if self.exists(uri) else NEW_S
        super().append(uri, data)

    def rename(self, old: str, new: str, overwrite: bool = False) -> None:
        super().rename(old, new, overwrite)
        if self.fault and uris.name(old) == BEGUN_LOG:
            fault, self.fault = self.fault, ""
            raise EngineUnavailable(fault)


@pytest.fixture
def home() -> str:
    return f"memory://begun/{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def files(home: str) -> SlowToCreate:
    found = SlowToCreate(home)
    found.mkdirs(home)
    return found


def submitted(files: SlowToCreate, home: str, job: str) -> AppendedFile:
    """The event log of a job that was submitted: its master has written nothing."""
    directory = f"{home}/jobs/{job}"
    files.mkdirs(directory)
    begun_files.give_begun_log(files, home, directory)
    return AppendedFile(f"{directory}/events.jsonl", "event log", files, f"{directory}/{BEGUN_LOG}")


def test_the_start_of_programs_waits_for_no_new_file(files: SlowToCreate, home: str) -> None:
    for job in ("job-1", "job-2", "job-3"):
        log = submitted(files, home, job)
        before = files.spent_s
        log.append(b"one\n")
        log.append(b"two\n")
        assert files.spent_s - before == pytest.approx(2 * AGAIN_S)
        assert files.read_bytes(log.uri) == b"\none\ntwo\n"
        assert log.known == len(files.read_bytes(log.uri))


def test_only_the_first_submission_begins_a_log_of_its_own(files: SlowToCreate, home: str) -> None:
    begun = []
    for job in ("job-1", "job-2", "job-3"):
        before = files.spent_s
        submitted(files, home, job)
        begun.append(round((files.spent_s - before) / NEW_S))
    assert begun == [2, 1, 1]


def test_no_two_jobs_get_the_same_file(files: SlowToCreate, home: str) -> None:
    first, second = submitted(files, home, "job-1"), submitted(files, home, "job-2")
    first.append(b"of the first\n")
    second.append(b"of the second\n")
    assert files.read_bytes(first.uri) == b"\nof the first\n"
    assert files.read_bytes(second.uri) == b"\nof the second\n"


def test_a_submission_goes_on_without_it(files: SlowToCreate, home: str) -> None:
    files.fault = "no answer of the NameNode"
    log = submitted(files, home, "job-1")
    assert files.fault == "no answer of the NameNode", "the first has nothing to take"
    submitted(files, home, "job-2")
    assert files.fault == ""
    files.delete(f"{uris.parent(log.uri)}/{BEGUN_LOG}")
    log.append(b"one\n")
    assert files.read_bytes(log.uri) == b"one\n"


def test_a_lost_answer_makes_no_other_master(files: SlowToCreate, home: str) -> None:
    log = submitted(files, home, "job-1")
    files.fault = "no answer of the NameNode"
    with pytest.raises(EngineUnavailable):
        log.append(b"one\n")
    log.append(b"one\n")
    log.append(b"two\n")
    assert files.read_bytes(log.uri) == b"\none\ntwo\n"


def test_a_master_that_finds_the_log_of_another_writes_nothing(files: SlowToCreate, home: str) -> None:
    log = submitted(files, home, "job-1")
    late = AppendedFile(log.uri, "event log", files, f"{uris.parent(log.uri)}/{BEGUN_LOG}")
    log.append(b"one\n")
    with pytest.raises(LogOwnerChanged):
        late.append(b"another\n")
    assert files.read_bytes(log.uri) == b"\none\n"


def test_no_events_before_the_first_line(files: SlowToCreate, home: str) -> None:
    log = submitted(files, home, "job-1")
    log.append(b'{"kind":"Noted","time":1.0,"text":"one"}\n')
    assert [type(event).__name__ for event in read_log(log.read().decode().splitlines())] == ["Noted"]


class FrozenLoop(asyncio.SelectorEventLoop):
    """A loop on which no time passes: nothing happens because it is due."""

    def time(self) -> float:
        return 0.0


def test_the_first_event_is_written_at_once(home: str) -> None:
    """So that the file is there, and known to the master, when the gang has formed."""
    job = JobSpec(roles={"worker": Role("true")}, name="job")
    begin: Event = JobStarted(1.0, id="job-1", engine="fake", user="u", job=job)

    async def work() -> None:
        log = EventLog(home)
        writing = asyncio.create_task(log.flush_forever())
        await asyncio.sleep(0)
        log.append(begin)
        deadline = time.monotonic() + LIMIT_S
        while not filesystem(home).exists(f"{home}/events.jsonl"):
            assert time.monotonic() < deadline, "JobStarted waits for its turn"
            await asyncio.to_thread(time.monotonic)
        await cancel_all(lambda: [] if writing.done() else [writing])
        log.close()

    loop = FrozenLoop()
    try:
        loop.run_until_complete(work())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
