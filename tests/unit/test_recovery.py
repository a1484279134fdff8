"""What a master that takes over knows, waits for and does; and that time in which none ran counts for nobody."""

from __future__ import annotations

from dataclasses import replace

from howdah.master import actions as a
from howdah.master.state import FENCE_S, Stage
from howdah.spec import Deadline, Exit, JobSpec, Output, Role, State, TaskId
from howdah.spec import events as e
from howdah.testing import Gang, job
from howdah.wire.messages import Phase

W0, W1 = (TaskId("worker", index) for index in range(2))
LOST = Exit("lost", detail="node lost")


def workers(count: int, **changes: object) -> JobSpec:
    return replace(job(), roles={"worker": Role("train", replicas=count)}, **changes)  # type: ignore[arg-type]


def test_a_task_without_a_container_may_have_had_one_that_nobody_wrote_down() -> None:
    gang = Gang(workers(1))
    gang.now += 5
    gang.take_over()
    assert gang.state.tasks[W0].fenced_until == gang.now + FENCE_S
    gang.grant("worker")
    for _ in range(4):
        gang.join("worker:0")
        assert gang.state.stage is Stage.FORMING
        gang.wait(FENCE_S / 4 + 0.1)
    assert gang.state.stage is Stage.RUNNING


def test_a_container_that_may_never_have_been_started_goes_back() -> None:
    gang = Gang(workers(1))
    granted = gang.grant("worker")
    gang.take_over()
    assert [release.container_id for release in gang.of(a.Release)] == [granted.id]
    assert gang.of(a.Ask)[-1].count == 1


def test_what_was_decided_by_time_is_decided_once() -> None:
    late = Role("x", replicas=2, deadline=Deadline(("worker",), 10.0, "stop"))
    gang = Gang(replace(job(), roles={"worker": Role("train"), "late": late}))
    for role in ("worker", "late", "late"):
        gang.grant(role)
    for task in ("worker:0", "late:0", "late:1"):
        gang.join(task)
    for task in ("worker:0", "late:0", "late:1"):
        gang.run(task)
    gang.end("worker:0")
    for _ in range(3):
        gang.run("late:0")
        gang.run("late:1")
        gang.wait(4)
    assert len(gang.recorded(e.Noted)) == 1
    gang.take_over()
    assert gang.state.tasks[TaskId("late", 0)].stopped
    gang.wait(0.5)
    assert len(gang.recorded(e.Noted)) == 1


def test_a_fence_lasts_as_long_as_no_master_ran() -> None:
    gang = Gang(workers(1, retries=1))
    gang.form()
    gang.feed(e.ContainerEnded(gang.now, "c1", LOST))
    gang.grant("worker")
    gang.say("worker:0", Phase.HELLO)
    assert gang.state.tasks[W0].fenced_until == gang.now + FENCE_S
    gang.now += 10
    gang.take_over()
    assert gang.state.tasks[W0].fenced_until == gang.now + FENCE_S


def test_nobody_is_silent_because_no_master_ran() -> None:
    gang = Gang(workers(2))
    gang.form()
    gang.now += 100
    gang.take_over()
    gang.wait(5)
    assert not gang.recorded(e.Ended)


def test_a_gang_whose_world_was_not_written_down_starts_again_with_a_new_member() -> None:
    gang = Gang(workers(2))
    gang.grant("worker")
    gang.join("worker:0")
    known = len(gang.of(a.Record))
    gang.grant("worker")
    gang.join("worker:1")
    gang.run("worker:0")
    gang.take_over(lost=len(gang.of(a.Record)) - known)
    gang.sequences.clear()
    gang.run("worker:0")
    gang.grant("worker")
    gang.join("worker:1")
    (again,) = gang.recorded(e.GangRestarted)
    assert (again.epoch, again.reason) == (2, "the master before this one had started the tasks again, with others")


def test_time_in_which_the_master_stood_still_makes_nobody_silent_and_ends_no_fence() -> None:
    gang = Gang(workers(2, retries=1))
    gang.form()
    gang.feed(e.ContainerEnded(gang.now, "c2", LOST))
    fenced = gang.state.tasks[W1].fenced_until
    gang.now += 60
    gang.feed(e.TimeLost(gang.now, 60.0))
    gang.wait(0.5)
    assert [event.task for event in gang.recorded(e.Ended)] == [W1]
    assert gang.state.tasks[W1].fenced_until == fenced + 60


def test_an_end_that_is_written_is_not_decided_again() -> None:
    gang = Gang(workers(1, outputs=(Output("file:///out", "model"),)))
    gang.form()
    gang.end("worker:0", made=(0,))
    gang.feed(a.CommitDone(gang.now, ("file:///out",)))
    assert len(gang.recorded(e.JobFinished)) == 1
    gang.take_over()
    gang.wait(1.0)
    assert len(gang.of(a.Commit)) == 1
    assert len(gang.recorded(e.JobFinished)) == 1
    assert [finish.outcome.state for finish in gang.of(a.Finish)] == [State.SUCCEEDED] * 2
