"""Tests sending event files while they grow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from howdah.checkpoints.event_file_sync import Sent, send_event_files
from howdah.master.decisions.executor_orders import _event_file_sync
from howdah.spec import Board, JobSpec, Role, TaskId, uris
from howdah.wire.helper_messages import EventFileSyncRequest

EVENTS = "events.out.tfevents.1"


class Copied:
    def __init__(self, directory: Path) -> None:
        self.here, self.there = directory / "here", directory / "there"
        self.here.mkdir()
        self.sent: Sent = {}
        self.since_ms = 0

    def again(self) -> dict[str, bytes]:
        request = EventFileSyncRequest(
            str(self.here), uris.of_local(self.there), self.sent, True, "job-1", self.since_ms
        )
        reply = send_event_files(request)
        self.sent, self.problem, self.told = dict(reply.sent), reply.error, reply.told
        return {
            str(path.relative_to(self.there)): path.read_bytes() for path in self.there.rglob("*") if path.is_file()
        }


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    return Copied(tmp_path)


def test_only_what_is_new_of_an_event_file_is_sent(copied: Copied) -> None:
    events = copied.here / "run" / EVENTS
    events.parent.mkdir()
    events.write_bytes(b"one")
    assert copied.again() == {f"run/{EVENTS}": b"one"}
    (copied.there / "run" / EVENTS).write_bytes(b"ONE")  # what is there is not written again
    with events.open("ab") as file:
        file.write(b"two")
    assert copied.again() == {f"run/{EVENTS}": b"ONEtwo"}
    assert copied.again() == {f"run/{EVENTS}": b"ONEtwo"}


@pytest.mark.parametrize("there", [b"", b"one", b"onet", b"onetwo", b"onetwothree", b"onetwothreefour", None])
def test_what_a_helper_sent_before_it_was_ended_is_not_sent_twice(copied: Copied, there: bytes | None) -> None:
    events = copied.here / EVENTS
    events.write_bytes(b"onetwo")
    copied.again()
    with events.open("ab") as file:
        file.write(b"three")
    copied.there.joinpath(EVENTS).unlink()
    if there is not None:
        copied.there.joinpath(EVENTS).write_bytes(there)
    assert copied.again() == {EVENTS: b"onetwothree"}


def test_what_is_no_event_file_or_has_shrunk_is_sent_whole(copied: Copied) -> None:
    (copied.here / "config.txt").write_bytes(b"long text")
    (copied.here / EVENTS).write_bytes(b"onetwo")
    copied.again()
    (copied.here / "config.txt").write_bytes(b"longer text than before")
    (copied.here / EVENTS).write_bytes(b"new")
    assert copied.again() == {"config.txt": b"longer text than before", EVENTS: b"new"}


def test_hidden_files_and_links_stay_here(copied: Copied) -> None:
    (copied.here / ".hidden").write_bytes(b"x")
    (copied.here / ".ipynb").mkdir()
    (copied.here / ".ipynb" / EVENTS).write_bytes(b"x")
    (copied.here / EVENTS).symlink_to("/etc/passwd")
    assert copied.again() == {}


def test_what_could_not_be_sent_is_told_and_sent_later(copied: Copied) -> None:
    copied.there.write_bytes(b"a file is in the way")
    (copied.here / EVENTS).write_bytes(b"one")
    copied.again()
    assert "there" in copied.problem
    assert copied.sent == {}
    copied.there.unlink()
    assert copied.again() == {EVENTS: b"one"}
    assert not copied.problem


def test_what_was_there_before_the_job_is_kept_once(copied: Copied) -> None:
    (copied.there / "run").mkdir(parents=True)
    (copied.there / "run/a").write_bytes(b"theirs")
    (copied.here / "run").mkdir()
    (copied.here / "run/a").write_bytes(b"mine")
    kept = ".howdah-before-job-1/run/a"
    assert copied.again() == {"run/a": b"mine", kept: b"theirs"}
    assert str(copied.told).startswith("run/a in file:")
    copied.sent = {}  # another try
    (copied.here / "run/a").write_bytes(b"mine again")
    assert copied.again() == {"run/a": b"mine again", kept: b"theirs"}
    assert copied.told == ""


def test_what_the_job_itself_has_sent_is_not_kept(copied: Copied) -> None:
    """A task that goes on in another container remembers nothing."""
    for name, second in (("theirs", 99), ("mine", 101)):
        (copied.there / "run").mkdir(parents=True, exist_ok=True)
        (copied.there / "run" / name).write_bytes(b"before")
        os.utime(copied.there / "run" / name, (second, second))
    (copied.here / "run").mkdir()
    for name in ("theirs", "mine"):
        (copied.here / "run" / name).write_bytes(b"now")
    copied.since_ms = 100_000
    assert copied.again() == {"run/theirs": b"now", "run/mine": b"now", ".howdah-before-job-1/run/theirs": b"before"}
    assert str(copied.told).startswith("run/theirs in file:")


@pytest.mark.parametrize(
    ("tasks", "task", "uri"),
    [
        ("", "worker:1", "hdfs://n/b/worker-1"),
        ("", "ps:0", "hdfs://n/b/ps-0"),
        ("chief", "worker:0", "hdfs://n/b"),
        ("chief", "worker:1", ""),
        ("worker:1", "worker:1", "hdfs://n/b"),
        ("ps", "ps:0", "hdfs://n/b"),
        ("worker", "worker:1", "hdfs://n/b/worker-1"),
        ("worker", "ps:0", ""),
    ],
)
def test_where_it_goes(tasks: str, task: str, uri: str) -> None:
    roles = {"worker": Role("t", replicas=2), "ps": Role("t")}
    job = JobSpec(roles, board=Board("hdfs://n/b", local="logs", tasks=tasks))
    order = _event_file_sync(job, TaskId.parse(task), "job-1", 7.5)
    assert order is not None
    assert (order.path, order.uri, order.job, order.since_ms) == ("logs", uri, "job-1", 7_500)
