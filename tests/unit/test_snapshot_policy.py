"""Tests snapshots of running programs: when the master begins one, which tasks it asks, and when it counts."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.executor.io.log_tail import LogTail
from howdah.master.decisions.actions import Commit, DiscardSnapshot, PublishSnapshot, RecordEvent, SnapshotPublished
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.master.snapshots import snapshot_policy
from howdah.spec import Exit, JobSpec, Output, Save, StagedJob, State, TaskId
from howdah.spec.events import ContainerEnded, SaveDone, SaveFailed, SaveRequested, SaveStarted
from howdah.spec.fold import fold
from howdah.testing import Gang, job
from howdah.wire.messages import Phase, SnapshotOrder, SnapshotReport, Status

OUT = "hdfs://nn/out"


def gang(spec: JobSpec | None = None, **save: Any) -> Gang:
    made = Gang(spec or job(outputs=(Output(OUT, save=Save(**save)),)))
    made.form()
    return made


def orders(of: Gang, task: str) -> tuple[SnapshotOrder, ...]:
    return snapshot_policy.orders(of.state, of.state.tasks[TaskId.parse(task)])


def ask(of: Gang, by: str = "alice") -> None:
    of.feed(SaveRequested(of.now, by))


def report(of: Gang, task: str, number: int, **fields: Any) -> None:
    told = SnapshotReport(number=number, **{"done": True, "files": 1, "bytes": 5, "total": 2, **fields})
    of.say(task, Phase.RUNNING, ports={"main": 4000}, program_pid=7, snapshots=(told,))


def finish_snapshot(of: Gang, **answer: Any) -> None:
    """The executors make the snapshot that is being made, and it is published."""
    for number in {order.number for order in (*orders(of, "worker:0"), *orders(of, "worker:1"))}:
        for task in ("worker:0", "worker:1"):
            report(of, task, number)
    of.feed(SnapshotPublished(of.now, 0, **answer))


def test_a_copy_is_made_by_every_task_and_counts_when_all_are_done() -> None:
    it = gang()
    ask(it)
    assert [event.tasks for event in it.recorded(SaveStarted)] == [2]
    first, second = orders(it, "worker:0")[0], orders(it, "worker:1")[0]
    assert first.uri == first.final.replace("/out.saved/", "/out.saved/.howdah-job-1-0-saves/")
    assert first.final.endswith("/worker-0")
    assert second.final.endswith("/worker-1")
    assert orders(it, "ps:0") == ()
    report(it, "worker:0", first.number)
    assert not it.actions_of(PublishSnapshot)
    report(it, "worker:1", first.number)
    publish = it.actions_of(PublishSnapshot)[0]
    assert (publish.final + "/worker-0", publish.to) == (first.final, f"{OUT}.saved/")
    it.feed(SnapshotPublished(it.now, 0))
    done = it.recorded(SaveDone)[0]
    assert (done.files, done.bytes, done.total) == (2, 10, 4)
    assert orders(it, "worker:0") == ()


def test_copies_are_made_by_interval_one_at_a_time() -> None:
    it = gang(every_s=60.0)
    alive(it, 59)
    assert not it.recorded(SaveStarted)
    alive(it, 130)
    assert [event.by for event in it.recorded(SaveStarted)] == ["interval"]
    finish_snapshot(it)
    alive(it, 1)
    assert [event.number for event in it.recorded(SaveStarted)] == [1, 2]


def alive(of: Gang, seconds: float) -> None:
    """Time passes, and everybody speaks."""
    for _ in range(int(seconds)):
        for task in of.state.tasks:
            of.say(str(task), Phase.RUNNING, ports={"main": 4000}, program_pid=7)
        of.wait(1.0)


def test_who_asks_while_one_is_made_gets_the_next() -> None:
    it = gang()
    ask(it)
    ask(it, "bob")
    ask(it, "carol")
    assert len(it.recorded(SaveStarted)) == 1
    assert snapshot_policy.number_of(it.state, 0) == 2
    it.now += 2
    finish_snapshot(it)
    assert [event.by for event in it.recorded(SaveStarted)] == ["alice", "bob"]


def test_no_copy_begins_while_another_is_made() -> None:
    it = gang()
    ask(it)
    alive(it, 3)
    ask(it, "bob")
    alive(it, 3)
    assert [event.by for event in it.recorded(SaveStarted)] == ["alice"]


def test_what_another_attempt_says_of_a_copy_does_not_count() -> None:
    it = gang(job(outputs=(Output(OUT, save=Save()),), retries=1))
    ask(it)
    it.feed(ContainerEnded(it.now, "c2", Exit("lost", detail="node lost")))
    it.grant("worker")
    for task in ("worker:0", "worker:1"):
        report(it, task, 1)
    assert not it.actions_of(PublishSnapshot)


def test_a_gang_that_asks_at_once_gets_one() -> None:
    it = gang()
    for task in ("worker:0", "worker:1"):
        it.say(task, Phase.RUNNING, ports={"main": 4000}, program_pid=7, requested_snapshots=1)
        it.now += 0.3
    it.wait(1.0)
    assert [event.by for event in it.recorded(SaveStarted)] == ["worker:0"]
    it.say("worker:0", Phase.RUNNING, ports={"main": 4000}, program_pid=7, requested_snapshots=1)
    finish_snapshot(it)
    it.wait(2.0)
    assert len(it.recorded(SaveStarted)) == 1


def test_a_problem_of_one_task_fails_the_copy_and_not_the_job() -> None:
    it = gang()
    ask(it)
    number = orders(it, "worker:0")[0].number
    report(it, "worker:0", number)
    report(it, "worker:1", number, problem="no space left")
    assert it.recorded(SaveFailed)[0].reason == "worker:1: no space left (1 of 2 tasks had made their part)"
    assert it.actions_of(DiscardSnapshot)
    assert orders(it, "worker:0") == ()
    assert it.state.open


def test_a_copy_that_takes_too_long_is_given_up() -> None:
    it = gang(limit_s=30.0)
    ask(it)
    alive(it, 92)
    assert "not done after" in it.recorded(SaveFailed)[0].reason
    assert it.state.open


def test_a_restart_gives_up_the_copy() -> None:
    it = gang(job(outputs=(Output(OUT),), retries=1))
    ask(it)
    it.end("worker:1", Exit("exit", 1))
    it.wait(0.5)
    assert "started again" in it.recorded(SaveFailed)[0].reason
    assert orders(it, "worker:0") == ()


def test_a_task_that_has_ended_makes_its_part_too() -> None:
    it = gang()
    it.end("worker:0")
    ask(it)
    assert len(orders(it, "worker:0")) == 1


def test_the_end_gives_up_what_grows_and_waits_for_what_is_published() -> None:
    it = gang(job(outputs=(Output(OUT), Output("hdfs://nn/two"))))
    ask(it)
    two = {order.number: order for order in orders(it, "worker:0")}
    published = min(two)
    for task in ("worker:0", "worker:1"):
        report(it, task, published)
    for task in ("worker:0", "worker:1"):
        it.end(task)
    it.end("ps:0", Exit("stopped"))
    assert [event.number for event in it.recorded(SaveFailed)] == [max(two)]
    assert not it.actions_of(Commit)
    it.feed(SnapshotPublished(it.now, 0))
    assert len(it.actions_of(Commit)) == 1


def test_an_incremental_copy_refers_to_the_last_complete_one() -> None:
    it = gang(incremental=True)
    ask(it)
    first = orders(it, "worker:0")[0]
    assert first.previous == ""
    it.now += 5
    finish_snapshot(it)
    ask(it)
    assert orders(it, "worker:0")[0].previous == first.final


def test_one_writer_saves_straight_into_the_copy() -> None:
    it = gang(job(outputs=(Output(OUT, tasks="worker:0", save=Save(to=f"{OUT}/interResult_")),)))
    ask(it)
    order = orders(it, "worker:0")[0]
    assert orders(it, "worker:1") == ()
    assert order.final[:-19] == f"{OUT}/interResult_"
    assert order.uri.startswith("hdfs://nn/.howdah-job-1-0-saves/")


def test_an_impossible_snapshot_is_refused_with_its_reason() -> None:
    assert "no program runs yet" in snapshot_policy.explain_refusal(Gang(job(outputs=(Output(OUT),))).state, -1)
    assert "no directory to copy for any output" in snapshot_policy.explain_refusal(gang(job()).state, -1)
    assert "for outputs.3" in snapshot_policy.explain_refusal(gang().state, 3)
    assert snapshot_policy.explain_refusal(gang().state, 0) == ""


def test_the_view_shows_them() -> None:
    it = gang(keep=1)
    ask(it)
    it.now += 3
    finish_snapshot(it)
    uri = it.recorded(SaveStarted)[0].uri
    ask(it)
    it.now += 3
    finish_snapshot(it, removed=(uri,))
    ask(it)
    view = fold(action.event for action in it.actions_of(RecordEvent))
    assert [(one.state, one.removed, one.done) for one in view.snapshots] == [
        (State.SUCCEEDED, True, 2),
        (State.SUCCEEDED, False, 2),
        (State.RUNNING, False, 0),
    ]


def test_a_master_that_takes_over_counts_on() -> None:
    it = gang(incremental=True)
    ask(it)
    it.now += 3
    finish_snapshot(it)
    uri = it.recorded(SaveStarted)[0].uri
    ask(it)
    it.take_over()
    it.now += 3
    ask(it, "bob")
    assert it.recorded(SaveStarted)[-1].number == 3
    assert orders(it, "worker:0")[0].previous == f"{uri}/worker-0"


def test_what_the_earlier_master_was_making_has_failed_and_what_waited_begins() -> None:
    it = gang()
    ask(it)
    it.now += 3
    ask(it, "bob")  # while the first is being made
    numbers = [event.number for event in it.recorded(SaveStarted)]
    assert (numbers, snapshot_policy.number_of(it.state, 0)) == ([1], 2)
    name = it.state.snapshots.names[0]
    it.take_over()
    (failed,) = it.recorded(SaveFailed)
    assert (failed.number, failed.reason) == (1, "another master took over while it was made")
    assert [action.temporary.rpartition("/")[2] for action in it.actions_of(DiscardSnapshot)] == [name]
    it.wait(1)
    started = it.recorded(SaveStarted)[-1]
    assert (started.number, started.by, started.tasks) == (2, "bob", 2)
    finish_snapshot(it)
    it.take_over()
    view = fold(action.event for action in it.actions_of(RecordEvent))
    assert [one.state for one in view.snapshots] == [State.FAILED, State.SUCCEEDED]


def test_orders_with_a_copy_are_news_until_the_executor_has_them() -> None:
    it = gang()
    spec = it.state.job
    director = OrderBuilder("job-1", StagedJob(spec, "file:///home"), None)  # type: ignore[arg-type]
    it.say("worker:0", Phase.RUNNING, ports={"main": 4000}, program_pid=7)
    task = it.state.tasks[TaskId("worker", 0)]
    status = Status(
        task="worker:0", attempt=task.attempt, epoch=task.epoch, sequence=99, phase=Phase.RUNNING, host="h", pid=1
    )
    before = director.orders(it.state, status).digest
    ask(it)
    assert director.orders(it.state, status).digest == f"{before}/1"


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        ((b"reporter save\n",), 1),
        ((b"howdah save \r\n",), 1),
        ((b"a\nreporter sa", b"ve\nreporter save\n"), 2),
        (tuple(bytes([byte]) for byte in b"x\nreporter save\nreporter save\n"), 2),
        ((b"please reporter save\n", b"reporter save now\n", b"reporter saves\n", b"reporter save"), 0),
        ((b"x" * 5000 + b"\nreporter save", b"\n" + b"y" * 5000), 1),
    ],
)
def test_a_program_asks_by_a_line_of_its_own(pieces: tuple[bytes, ...], count: int) -> None:
    tail = LogTail()
    for piece in pieces:
        tail.feed(piece)
    assert tail.snapshot_requests == count
