"""Tests what a master that takes over knows, waits for and does, and that downtime counts for no deadline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from howdah.master.app import CONFIRM_EVERY_S, CONFIRMED_S
from howdah.master.decisions.actions import (
    Commit,
    CommitDone,
    Finish,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    StartRecorded,
    StatusReceived,
    Tick,
)
from howdah.master.decisions.heartbeat_timeouts import FENCE_S, TAKEOVER_S
from howdah.master.decisions.step import step
from howdah.master.recovery import replay
from howdah.master.state import GangState, Stage
from howdah.spec import Deadline, Exit, JobSpec, Outcome, Output, Preflight, Role, State, TaskId, Timeouts
from howdah.spec.events import (
    CancelRequested,
    ContainerEnded,
    Ended,
    GangRestarted,
    JobFinished,
    JobStarted,
    Joined,
    Noted,
    Started,
    TimeLost,
    TrackerRunsFound,
    WorldFormed,
)
from howdah.spec.message import message
from howdah.testing import Gang, job
from howdah.wire.messages import CheckReport, Phase, Status

W0, W1 = (TaskId("worker", index) for index in range(2))
LOST = Exit("lost", detail="node lost")


def workers(count: int, **changes: object) -> JobSpec:
    return replace(job(), roles={"worker": Role("train", replicas=count)}, **changes)  # type: ignore[arg-type]


def test_what_an_engine_kills_needs_no_fence() -> None:
    gang = Gang(workers(1))
    gang.grant("worker")
    log = [action.event for action in gang.actions_of(RecordEvent)]
    for fences in (True, False):
        state = GangState.for_job("job-1", gang.state.job)
        replay(state, log, gang.now, fences)
        assert state.tasks[W0].container is None, "nothing was heard from it"
        assert bool(state.tasks[W0].fenced_until) == fences


def test_a_restart_that_an_earlier_version_decided_is_not_decided_anew() -> None:
    """A failure once the chief had ended well."""
    role = Role("train", replicas=3)
    gang = Gang(replace(job(), roles={"worker": role}, success="chief", retries=2, timeouts=Timeouts(grace_s=60)))
    gang.form()
    gang.end("worker:0")
    gang.end("worker:1", Exit("exit", 1))
    log = [action.event for action in gang.actions_of(RecordEvent)]
    assert isinstance(log[-1], Ended)
    state = GangState.for_job("job-1", gang.state.job)
    decided = replay(state, [*log, GangRestarted(gang.now, 2, "worker:1 failed")], gang.now)
    assert (state.epoch, state.tasks[W0].epoch, state.stage) == (2, 2, Stage.FORMING)
    assert not [each for each in decided if isinstance(each, RecordEvent) and isinstance(each.event, GangRestarted)]


def test_a_start_is_recorded_once_with_all_that_is_known_of_it() -> None:
    gang = Gang(workers(1))
    gang.grant("worker")
    gang.join("worker:0")
    program = {
        "program_pid": 7,
        "program_python": "3.11 /usr/bin/python3",
        "program_gpus": ("0", "1"),
        "log_offset": 42,
    }
    gang.say("worker:0", Phase.RUNNING, ports={"main": 4000}, **program)
    gang.take_over()
    (started,) = [action.event for action in gang.actions_of(RecordEvent) if isinstance(action.event, Started)]
    assert (started.gpus, started.log_offset) == (("0", "1"), 42)


def test_a_task_without_a_container_may_have_had_an_unrecorded_one() -> None:
    gang = Gang(workers(1))
    gang.now += 5
    gang.take_over()
    assert gang.state.tasks[W0].fenced_until == gang.now + TAKEOVER_S + FENCE_S
    gang.grant("worker")
    for _ in range(4):
        gang.join("worker:0")
        assert gang.state.stage is Stage.FORMING
        gang.wait((TAKEOVER_S + FENCE_S) / 4 + 0.1)
    assert gang.state.stage is Stage.RUNNING


def test_a_container_that_may_never_have_been_started_goes_back() -> None:
    gang = Gang(workers(1))
    granted = gang.grant("worker")
    gang.take_over()
    assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == [granted.id]
    assert gang.actions_of(RequestContainers)[-1].count == 1


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
    assert len(gang.recorded(Noted)) == 1
    gang.take_over()
    assert gang.state.tasks[TaskId("late", 0)].stopped
    gang.wait(0.5)
    assert len(gang.recorded(Noted)) == 1


def test_a_fence_lasts_as_long_as_no_master_ran() -> None:
    gang = Gang(workers(1, retries=1))
    gang.form()
    gang.feed(ContainerEnded(gang.now, "c1", LOST))
    gang.grant("worker")
    gang.say("worker:0", Phase.HELLO)
    assert gang.state.tasks[W0].fenced_until == gang.now + FENCE_S
    gang.now += 10
    gang.take_over()
    assert gang.state.tasks[W0].fenced_until == gang.now + FENCE_S


def test_no_executor_is_silent_because_no_master_ran() -> None:
    gang = Gang(workers(2))
    gang.form()
    gang.now += 100
    gang.take_over()
    gang.wait(5)
    assert not gang.recorded(Ended)


def test_a_gang_whose_world_was_not_written_down_starts_again_with_a_new_member() -> None:
    gang = Gang(workers(2))
    gang.grant("worker")
    gang.join("worker:0")
    known = len(gang.actions_of(RecordEvent))
    gang.grant("worker")
    gang.join("worker:1")
    gang.run("worker:0")
    gang.take_over(lost=len(gang.actions_of(RecordEvent)) - known)
    gang.sequences.clear()
    gang.run("worker:0")
    gang.grant("worker")
    gang.join("worker:1")
    (again,) = gang.recorded(GangRestarted)
    assert (again.epoch, again.reason) == (2, "the master before this one had started the tasks again, with others")


def test_time_in_which_the_master_stood_still_makes_no_executor_silent_and_ends_no_fence() -> None:
    gang = Gang(workers(2, retries=1))
    gang.form()
    gang.feed(ContainerEnded(gang.now, "c2", LOST))
    fenced = gang.state.tasks[W1].fenced_until
    gang.now += 60
    gang.feed(TimeLost(gang.now, 60.0))
    gang.wait(0.5)
    assert [event.task for event in gang.recorded(Ended)] == [W1]
    assert gang.state.tasks[W1].fenced_until == fenced + 60


def test_an_end_that_is_written_is_not_decided_again() -> None:
    gang = Gang(workers(1, outputs=(Output("file:///out", "model"),)))
    gang.form()
    gang.end("worker:0", made=(0,))
    gang.feed(CommitDone(gang.now, ("file:///out",)))
    assert len(gang.recorded(JobFinished)) == 1
    gang.take_over()
    gang.wait(1.0)
    assert len(gang.actions_of(Commit)) == 1
    assert len(gang.recorded(JobFinished)) == 1
    assert [finish.outcome.state for finish in gang.actions_of(Finish)] == [State.SUCCEEDED] * 2


@pytest.mark.parametrize("keep", [True, False])
def test_an_end_that_is_in_the_log_is_final(keep: bool) -> None:
    """The master before this one was killed when the log had the end, and the engine had not heard of it."""
    gang = Gang(workers(1, outputs=(Output("/out"),)))
    gang.form()
    gang.end("worker:0", Exit("exit", 0 if keep else 1), made=(0,) if keep else ())
    gang.feed(CommitDone(gang.now, ("/out",) if keep else ()))
    gang.take_over()
    assert gang.state.stage is Stage.DONE
    assert gang.state.outcome == gang.outcome
    assert [action.keep for action in gang.actions_of(Commit)] == [keep]
    assert len(gang.actions_of(Finish)) == 2, "the engine is told once more"
    gang.feed(CommitDone(gang.now, error="there is nothing to commit any more"))
    assert len(gang.recorded(JobFinished)) == 1


def test_a_job_that_a_master_gave_up_does_not_go_on() -> None:
    """One that failed itself has written the end while programs ran."""
    gang = Gang(workers(1))
    gang.form()
    given_up = Outcome(State.FAILED, "the master failed: the engine refused an ask")
    gang.did.append(RecordEvent(JobFinished(gang.now, given_up)))
    gang.take_over()
    assert gang.outcome == given_up
    assert gang.state.stage is Stage.DONE


def test_programs_that_were_started_after_pair_tests_count_as_started() -> None:
    """The tests began when a fence was over, with the time: the log has their results alone."""
    gang = Gang(workers(2, preflight=Preflight(("all",))))
    for _ in range(2):
        gang.grant("worker")
    for task in (W0, W1):
        gang.state.tasks[task].fenced_until = gang.now + 5
    gang.did = [gang_started_with_fences(gang), *gang.did[1:]]
    for task in (W0, W1):
        gang.say(str(task), Phase.JOINED, ports={"main": 1}, pair_port=2, checks=(CheckReport(seconds=1.0),))
    gang.wait(6)
    for task, other in ((W0, W1), (W1, W0)):
        report = CheckReport(epoch=1, seconds=2.0, passed=(str(other),))
        gang.say(str(task), Phase.JOINED, ports={"main": 1}, pair_port=2, checks=(CheckReport(), report))
    assert gang.recorded(WorldFormed)
    gang.take_over()
    assert gang.state.stage is Stage.RUNNING
    assert all(task.formed for task in gang.state.tasks.values())
    assert len(gang.recorded(WorldFormed)) == 1
    assert not gang.state.formations


def gang_started_with_fences(gang: Gang) -> RecordEvent:
    """The start of a job whose earlier attempts may still run for a while."""
    (started,) = gang.recorded(JobStarted)
    return RecordEvent(replace(started, fenced_until=started.time + 5))


def test_what_was_decided_because_a_limit_was_passed_stays_decided() -> None:
    """A cancel that comes while outputs are removed is in the log before the end: the next master must not take it for
    what ended the job."""
    gang = Gang(workers(1, timeouts=Timeouts(gang_s=60.0), outputs=(Output("/out"),)))
    gang.wait(61)
    assert gang.state.stage is Stage.COMMITTING
    gang.feed(CancelRequested(gang.now, "alice"))
    decided = gang.state.outcome
    gang.take_over()
    assert (gang.state.stage, gang.state.outcome) == (Stage.COMMITTING, decided)
    assert decided is not None
    assert decided.state is State.FAILED


def test_programs_whose_start_could_not_be_written_never_start() -> None:
    """The log was away for too long and came back: it says that programs start, and that they don't."""
    gang = Gang(workers(1))
    gang.grant("worker")
    gang.did += step(gang.state, StatusReceived(gang.now, joined_status()))
    gang.did += step(gang.state, StartRecorded(gang.now, 1, "no DataNode answers"))
    gang.take_over()
    assert gang.state.stage is Stage.STOPPING
    assert gang.state.outcome is not None
    assert gang.state.outcome.state is State.FAILED


def joined_status() -> Status:
    return Status(
        task="worker:0", attempt=1, epoch=1, sequence=1, phase=Phase.JOINED, host="host", pid=1, ports={"main": 4000}
    )


def test_a_master_that_was_replaced_may_have_renewed_leases_after_the_takeover_began() -> None:
    """It looks at the log every second, and counts on what it saw for two."""
    gang = Gang(workers(2, retries=1))
    gang.form()
    gang.take_over()
    assert gang.state.tasks[W0].heard_at == gang.now + TAKEOVER_S
    gang.feed(ContainerEnded(gang.now, "c1", LOST))
    assert gang.state.tasks[W0].fenced_until == gang.now + TAKEOVER_S + FENCE_S
    assert CONFIRM_EVERY_S + CONFIRMED_S <= TAKEOVER_S


def test_a_world_that_is_not_in_the_log_did_not_form() -> None:
    """What kept it from forming, tests of pairs for one, may not be in the log, either."""
    gang = Gang(workers(2))
    gang.form()
    log = [
        event
        for event in (action.event for action in gang.actions_of(RecordEvent))
        if not isinstance(event, WorldFormed)
    ]
    again = GangState.for_job("job-1", gang.state.job)
    replay(again, log[: log.index(gang.recorded(Joined)[-1]) + 1], gang.now)
    assert [*again.formations] == [1]
    assert not any(task.formed for task in again.tasks.values())
    step(again, Tick(gang.now + FENCE_S + TAKEOVER_S))
    assert all(task.formed for task in again.tasks.values())


def test_a_run_of_a_tracker_is_recorded_once_whoever_is_the_master() -> None:
    gang = Gang(workers(1))
    gang.form()
    gang.say("worker:0", Phase.RUNNING, program_pid=7, tracker_runs=("http://a/1",))
    gang.take_over()
    gang.say("worker:0", Phase.RUNNING, program_pid=7, tracker_runs=("http://a/1", "http://a/2"))
    gang.say("worker:0", Phase.RUNNING, program_pid=7, tracker_runs=("http://a/1", "http://a/2"))
    assert [event.urls for event in gang.recorded(TrackerRunsFound)] == [("http://a/1",), ("http://a/2",)]


def test_what_an_older_executor_says_of_a_tracker_is_recorded_without_secrets() -> None:
    gang = Gang(workers(1))
    gang.form()
    told = ("http://a/1?token=x", "http://ann:pw@a/2", "http://a/1")
    gang.say("worker:0", Phase.RUNNING, program_pid=7, tracker_runs=told)
    gang.say("worker:0", Phase.RUNNING, program_pid=7, tracker_runs=told)
    assert [event.urls for event in gang.recorded(TrackerRunsFound)] == [("http://a/1",)]


def test_a_warning_is_recorded_once_whoever_is_the_master() -> None:
    gang = Gang(workers(1))
    gang.form()
    lost = message("checkpoints could not be stored in {uri}: {reason}", uri="hdfs://n/ck", reason="no space")
    gang.say("worker:0", Phase.RUNNING, program_pid=7, warnings=(lost,))
    gang.say("worker:0", Phase.RUNNING, program_pid=7, warnings=(lost,), yields={"a": "1"})
    gang.take_over()
    gang.say("worker:0", Phase.RUNNING, program_pid=7, warnings=(lost, "another"), yields={"a": "1"})
    assert [event.text for event in gang.recorded(Noted)].count(f"worker:0: {lost}") == 1
    assert gang.recorded(Noted)[-1].text == "worker:0: another"
    assert gang.state.warnings == 2
