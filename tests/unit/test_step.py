"""Tests the master's decisions: forming gangs, success, failure, restarts and the end."""

from __future__ import annotations

import pytest

from howdah.master.decisions.actions import (
    Action,
    Commit,
    CommitDone,
    FindCheckpoint,
    LaunchTask,
    ReleaseContainer,
    RequestContainers,
    StartRecorded,
    StatusReceived,
    Tick,
)
from howdah.master.decisions.heartbeat_timeouts import FENCE_S, greet_limit_s
from howdah.master.decisions.outputs import commit_request
from howdah.master.decisions.step import step
from howdah.master.state import GangState, Stage
from howdah.spec import Checkpoint, Exit, Output, Resources, Role, StagedFile, State, TaskId, Timeouts
from howdah.spec.events import (
    CancelRequested,
    CheckpointFound,
    ContainerEnded,
    Ended,
    GangReleased,
    GangRestarted,
    Greeted,
    JobStarted,
    Joined,
    Noted,
    TimeLost,
    WorldFormed,
)
from howdah.testing import OK, Gang, job
from howdah.wire.messages import Phase, Status

KILLED = Exit("memory", signal=9, detail="killed: used 9 GiB of 8 GiB")


def test_asks_for_every_role_and_launches_what_is_granted():
    gang = Gang(job())
    assert [(ask.role, ask.count) for ask in gang.actions_of(RequestContainers)] == [("ps", 1), ("worker", 2)]
    gang.grant("worker")
    assert [str(launch.task) for launch in gang.actions_of(LaunchTask)] == ["worker:0"]


def test_a_container_too_many_is_given_back():
    gang = Gang(job())
    gang.grant("ps")
    extra = gang.grant("ps")
    assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == [extra.id]


def test_the_world_forms_only_when_all_have_joined():
    gang = Gang(job())
    for role in ("ps", "worker", "worker"):
        gang.grant(role)
    gang.join("ps:0")
    gang.join("worker:0")
    assert gang.state.stage is Stage.FORMING
    gang.join("worker:1")
    assert gang.state.stage is Stage.RUNNING
    assert [member.address for member in gang.state.tasks[TaskId("worker", 0)].world.members_of("worker")] == [
        "host-worker:0:4000",
        "host-worker:1:4000",
    ]


def test_success_waits_for_the_tracked_and_stops_the_rest():
    gang = Gang(job())
    gang.form()
    gang.end("worker:0")
    assert gang.state.stage is Stage.RUNNING
    gang.end("worker:1")
    assert gang.state.stage is Stage.STOPPING
    gang.end("ps:0", Exit("stopped", signal=15))
    assert gang.outcome.state is State.SUCCEEDED
    assert not gang.recorded(Ended)[-1].counts


def test_the_chief_alone_may_decide():
    gang = Gang(job(success="chief"))
    gang.form()
    gang.end("worker:1")
    assert gang.state.stage is Stage.RUNNING
    gang.end("worker:0")
    assert gang.state.stage is Stage.STOPPING


def test_any_is_enough_when_the_job_says_so():
    gang = Gang(job(success="any"))
    gang.form()
    gang.end("worker:1")
    assert gang.state.stage is Stage.STOPPING


def test_a_failure_names_task_node_exit_and_lines():
    gang = Gang(job())
    gang.form()
    gang.end("worker:1", Exit("exit", 3, lines=("Traceback", "ValueError: no")))
    for task in ("worker:0", "ps:0"):
        gang.end(task, Exit("stopped", signal=15))
    outcome = gang.outcome
    assert (outcome.state, outcome.first, outcome.exit.lines[-1]) == (
        State.FAILED,
        TaskId("worker", 1),
        "ValueError: no",
    )
    assert outcome.diagnostics == "worker:1 on node3: exit code 3"


def test_a_killed_peer_heard_of_late_is_named_before_its_consequence():
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", Exit("exit", 1, lines=("Connection reset by peer",)))
    gang.feed(ContainerEnded(gang.now, "c3", KILLED))
    gang.end("ps:0", Exit("stopped", signal=15))
    assert gang.outcome.first == TaskId("worker", 1)
    assert "9 GiB of 8 GiB" in gang.outcome.diagnostics


def test_an_ignored_role_may_fail():
    roles = {"worker": Role("train"), "evaluator": Role("eval", on_failure="ignore", tracked=False)}
    gang = Gang(job(roles=roles))
    gang.form()
    gang.end("evaluator:0", Exit("exit", 1))
    assert gang.state.stage is Stage.RUNNING
    gang.end("worker:0")
    assert gang.outcome.state is State.SUCCEEDED


def test_a_retry_keeps_living_containers_and_replaces_the_dead():
    gang = Gang(job(retries=1))
    gang.form()
    gang.feed(ContainerEnded(gang.now, "c3", KILLED))
    assert (gang.state.stage, gang.state.epoch) == (Stage.FORMING, 2)
    assert (gang.actions_of(RequestContainers)[-1].role, gang.actions_of(RequestContainers)[-1].count) == ("worker", 1)
    gang.grant("worker")
    for task in ("ps:0", "worker:0", "worker:1"):
        gang.join(task)
    assert gang.state.stage is Stage.RUNNING
    assert gang.state.tasks[TaskId("worker", 1)].attempt == 2
    assert gang.state.tasks[TaskId("worker", 0)].attempt == 1


def test_what_speaks_of_an_old_epoch_is_not_listened_to():
    gang = Gang(job(retries=1))
    gang.form()
    gang.end("worker:1", Exit("exit", 1))
    gang.say("worker:0", Phase.ENDED, epoch=1, exit=OK, ports={"main": 1})
    assert gang.state.tasks[TaskId("worker", 0)].exit is None


def test_a_taken_port_forms_the_gang_anew_without_using_a_retry():
    gang = Gang(job(retries=1))
    gang.form()
    gang.end("worker:0", Exit("port", 1, detail="port 4000 was taken"))
    assert (gang.state.epoch, gang.state.retries_used) == (2, 0)


def test_half_a_gang_is_given_back_and_asked_for_again_later():
    gang = Gang(job(timeouts=Timeouts(hold_s=60)))
    gang.grant("worker")
    gang.wait(61)
    assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["c1"]
    released = gang.recorded(GangReleased)[0]
    assert "worker: 1 of 2" in released.reason
    asked = len(gang.actions_of(RequestContainers))
    late = gang.grant("worker")
    assert gang.actions_of(ReleaseContainer)[-1].container_id == late.id
    gang.wait(released.retry_in - 1)
    assert len(gang.actions_of(RequestContainers)) == asked
    gang.wait(2)
    assert [(ask.role, ask.count) for ask in gang.actions_of(RequestContainers)[asked:]] == [("ps", 1), ("worker", 2)]


def test_two_jobs_back_off_differently():
    waits = set()
    for name in ("job-1", "job-2"):
        gang = Gang(job())
        gang.state.id = name
        gang.grant("worker")
        gang.wait(61)
        waits.add(gang.recorded(GangReleased)[0].retry_in)
    assert len(waits) == 2


def test_nothing_granted_is_waited_for_until_the_deadline_only():
    gang = Gang(job(timeouts=Timeouts(gang_s=600)))
    gang.wait(599)
    assert gang.outcome is None
    gang.wait(2)
    assert "the gang was not complete after 600 s" in gang.outcome.diagnostics
    assert "worker: 0 of 2" in gang.outcome.diagnostics


def test_a_silent_executor_fails_the_job_and_its_container_is_given_back():
    gang = Gang(job())
    gang.form()
    for _ in range(3):
        gang.wait(8)
        gang.run("worker:0")
        gang.run("ps:0")
    assert gang.state.outcome.first == TaskId("worker", 1)
    assert gang.actions_of(ReleaseContainer)[0].container_id == "c3"


def test_what_the_cluster_did_to_a_gang_starts_it_again_and_uses_up_no_retry():
    gang, other = Gang(job(retries=1)), Gang(job(retries=1))
    for one in (gang, other):
        one.form()
        one.state.preflight.has_other_nodes = True
    for _ in range(2):
        gang.wait(8)
        gang.run("worker:0")
        gang.run("ps:0")
    other.feed(ContainerEnded(other.now, "c1", Exit("preempted", detail="preempted")))
    for one, reason in ((gang, "worker:1 on node3: not heard for"), (other, "ps:0 on node1: preempted")):
        (restart,) = one.recorded(GangRestarted)
        assert restart.reason.startswith(reason)
        assert "not counted as a retry" in restart.reason
        assert (one.outcome, one.state.retries_used) == (None, 0)


def test_no_more_than_twenty_times_a_day():
    gang = Gang(job(retries=1))
    gang.form()

    def preempted(after_s: float) -> None:
        gang.now += after_s
        for task in gang.state.tasks.values():
            task.heard_at = gang.now
        gang.feed(Tick(gang.now))
        container = gang.state.tasks[TaskId("worker", 0)].container
        gang.feed(ContainerEnded(gang.now, container.id, Exit("preempted", detail="preempted")))
        if gang.outcome is None:
            gang.grant("worker")
            for task in ("ps:0", "worker:0", "worker:1"):
                gang.join(task)

    for _ in range(30):
        preempted(86400)
    assert gang.outcome is None
    for _ in range(20):
        preempted(400)
    assert "preempted" in gang.state.outcome.diagnostics


def test_an_executor_that_never_speaks_is_named():
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.grant("worker")
    gang.wait(121)
    assert "did not report within 120 s" in gang.outcome.diagnostics


def test_an_executor_may_wait_for_what_its_node_fetches():
    """YARN's nodes fetch an environment of some GiB, and unpack it, before they start the executor."""
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.state.greet_s = greet_limit_s([StagedFile("environment", "hdfs:///e.tar.gz", "archive", size=2 << 30)])
    gang.grant("worker")
    gang.wait(600)
    assert gang.outcome is None
    gang.wait(60)
    assert "did not report within 632 s" in gang.outcome.diagnostics


def test_an_executor_that_never_speaks_while_others_do_is_replaced_uncounted():
    gang = Gang(job(retries=0))
    for role in ("ps", "worker", "worker"):
        gang.grant(role)
    for _ in range(16):
        gang.wait(8)
        for task in ("ps:0", "worker:0"):
            gang.join(task)
    assert gang.outcome is None
    assert "worker:1 on node3" in gang.recorded(GangRestarted)[0].reason
    assert (gang.actions_of(RequestContainers)[-1].role, gang.actions_of(RequestContainers)[-1].count) == ("worker", 1)
    gang.grant("worker")
    for task in ("ps:0", "worker:0", "worker:1"):
        gang.join(task)
        gang.run(task)
    assert len(gang.recorded(WorldFormed)) == 1
    assert gang.state.retries_used == 0


def test_a_running_time_over_its_limit_ends_the_job():
    gang = Gang(job(timeouts=Timeouts(run_s=5)))
    gang.form()
    gang.wait(6)
    assert gang.state.outcome.diagnostics == "still running after 5 s (timeouts.run)"


def test_the_whole_time_counts_while_nothing_is_granted():
    gang = Gang(job(timeouts=Timeouts(gang_s=0, total_s=60)))
    gang.wait(59)
    gang.take_over()
    gang.feed(TimeLost(gang.now, 5))
    gang.wait(6)
    assert gang.outcome is None
    gang.wait(1)
    assert (gang.outcome.state, gang.outcome.diagnostics) == (
        State.FAILED,
        "not done 60 s after it began (timeouts.total)",
    )


def test_the_whole_time_counts_while_programs_run():
    gang = Gang(job(timeouts=Timeouts(run_s=50, total_s=60)))
    gang.now += 30
    gang.form()
    gang.wait(31)
    assert gang.state.outcome.diagnostics == "not done 60 s after it began (timeouts.total)"


def test_programs_that_will_not_stop_are_not_waited_for_longer_than_said():
    gang = Gang(job())
    gang.form()
    gang.feed(CancelRequested(gang.now, "alice"))
    gang.wait(14)
    assert gang.outcome is None
    gang.wait(2)
    assert (gang.outcome.state, gang.outcome.diagnostics) == (State.CANCELLED, "cancelled by alice")


@pytest.mark.parametrize(("fails", "keep"), [(False, True), (True, False)])
def test_outputs_are_kept_after_success_only(fails: bool, keep: bool):
    gang = Gang(job(roles={"worker": Role("train")}, outputs=(Output("hdfs://n/out"),)))
    gang.form()
    gang.end("worker:0", Exit("exit", 1) if fails else OK, made=(0,))
    assert gang.actions_of(Commit)[0].keep is keep
    gang.feed(CommitDone(gang.now))
    assert gang.outcome.state is (State.FAILED if fails else State.SUCCEEDED)


def test_outputs_that_cannot_be_kept_fail_the_job():
    gang = Gang(job(roles={"worker": Role("train")}, outputs=(Output("hdfs://n/out"),)))
    gang.form()
    gang.end("worker:0", made=(0,))
    gang.feed(CommitDone(gang.now, error="quota exceeded"))
    assert gang.outcome.diagnostics == "the programs ended well, but the outputs were not kept: quota exceeded"


def test_a_missing_output_fails_the_job_and_keeps_the_others_aside():
    roles, outputs = {"worker": Role("train", 2)}, (Output("hdfs://n/model"), Output("hdfs://n/metrics", "metrcs"))
    gang = Gang(job(roles=roles, outputs=outputs))
    gang.form()
    gang.end("worker:0", made=(0,))
    gang.end("worker:1")
    assert gang.actions_of(Commit)[0].keep is False
    request = commit_request(gang.state)
    assert [one.failed for one in request.outputs] == ["hdfs://n/model.failed", "hdfs://n/metrics.failed"]
    gang.take_over()
    gang.feed(CommitDone(gang.now))
    assert gang.outcome.state is State.FAILED
    assert gang.outcome.diagnostics == (
        "output hdfs://n/metrics is missing: no task made 'metrcs', and the output is not `optional`"
    )


@pytest.mark.parametrize("output", [Output("hdfs://n/out", optional=True), Output("hdfs://n/out", strategy="stream")])
def test_an_output_that_may_be_missing(output: Output):
    gang = Gang(job(roles={"worker": Role("train")}, outputs=(output,)))
    gang.form()
    gang.end("worker:0")
    assert gang.actions_of(Commit)[0].keep is True
    gang.feed(CommitDone(gang.now))
    assert gang.outcome.state is State.SUCCEEDED
    assert "output hdfs://n/out is empty: no task" in gang.recorded(Noted)[-1].text


def test_containers_lost_before_the_gang_formed_are_replaced():
    gang = Gang(job())
    gang.grant("worker")
    gang.feed(ContainerEnded(gang.now, "c1", Exit("preempted", detail="preempted")))
    assert gang.state.stage is Stage.FORMING
    assert (gang.actions_of(RequestContainers)[-1].role, gang.actions_of(RequestContainers)[-1].count) == ("worker", 2)


def test_nothing_follows_the_end():
    gang = Gang(job())
    gang.feed(CancelRequested(gang.now, "alice"))
    assert gang.outcome.state is State.CANCELLED
    assert gang.feed(CancelRequested(gang.now, "bob")) == []


def test_what_came_first_is_told_though_it_is_heard_after_its_consequence():
    gang = Gang(job(retries=1))
    gang.form()
    gang.end("worker:0", Exit("exit", 1, lines=("connection reset by peer",)))
    for exit in (Exit("exit", 1), Exit("stopped"), Exit("signal", signal=9)):
        gang.say("worker:1", Phase.ENDED, epoch=1, exit=exit)
    (told,) = gang.recorded(Noted)
    assert told.text.startswith("worker:1 on node3: killed by signal 9; reported after the end of worker:0")
    gang.take_over()
    assert gang.recorded(Noted) == [told]


def test_a_failure_that_explains_less_is_not_named_in_place_of_the_first():
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", KILLED)
    gang.end("worker:1", Exit("exit", 1, lines=("connection reset by peer",)))
    assert gang.state.outcome.first == TaskId("worker", 0)


def test_a_container_that_ends_well_before_its_program_was_told_of_has_not_ended_well():
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.form()
    gang.feed(ContainerEnded(gang.now, "c1", OK))
    assert gang.recorded(Ended)[0].exit.cause == "silent"
    assert gang.state.outcome.state is State.FAILED


def test_programs_do_not_start_when_their_start_cannot_be_written_down():
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.grant("worker")
    gang.join("worker:0")
    gang.feed(StartRecorded(gang.now, gang.state.epoch, "no space left"))
    assert (gang.state.stage, gang.state.outcome.state) == (Stage.STOPPING, State.FAILED)


def test_who_leaves_while_the_job_stops_is_not_its_first_failure():
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", Exit("exit", 1, lines=("KeyError",)))
    gang.feed(ContainerEnded(gang.now, "c3", Exit("exit", 75)))
    assert gang.state.outcome.first == TaskId("worker", 0)
    gang.feed(ContainerEnded(gang.now, "c1", Exit("memory")))  # but this may be why
    assert gang.state.outcome.first == TaskId("ps", 0)


def heard(gang: Gang, task: str, sequence: int, phase: Phase, **fields: object) -> list[Action]:
    """What is done about a status with this number."""
    known = gang.state.tasks[TaskId.parse(task)]
    whole = {"epoch": known.epoch, "host": "h", "pid": 1, **fields}
    return gang.feed(
        StatusReceived(gang.now, Status(task=task, attempt=known.attempt, sequence=sequence, phase=phase, **whole))
    )


def test_a_status_that_is_older_than_the_last_one_is_not_listened_to():
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.form()
    number = gang.sequences["worker:0"]
    for old in (number, number - 1):
        assert heard(gang, "worker:0", old, Phase.ENDED, program_pid=7, exit=Exit("exit", 1)) == []
    assert gang.state.stage is Stage.RUNNING


def test_a_status_of_a_task_without_a_container_is_not_listened_to():
    gang = Gang(job())
    gang.form()
    gang.feed(ContainerEnded(gang.now, "c2", Exit("lost", detail="node lost")))
    assert heard(gang, "worker:0", 99, Phase.JOINED, ports={"main": 1}) == []
    assert len(gang.recorded(Greeted)) == 3


def test_a_task_whose_files_are_not_in_place_has_not_joined():
    gang = Gang(job(roles={"worker": Role("train")}))
    gang.grant("worker")
    gang.say("worker:0", Phase.LOCALISING, ports={"main": 4000})
    assert not gang.recorded(Joined)
    gang.join("worker:0")
    assert gang.state.stage is Stage.RUNNING


def test_an_executor_that_is_ahead_of_the_log_starts_the_gang_again():
    gang = Gang(job(retries=1))
    gang.form()
    gang.say("worker:0", Phase.JOINED, epoch=3, ports={"main": 4000})
    (again,) = gang.recorded(GangRestarted)
    assert (again.epoch, gang.state.stage) == (4, Stage.FORMING)


def test_what_must_not_start_twice_runs_on_when_an_executor_is_ahead_of_the_log():
    roles = {"ps": Role("ps", tracked=False), "worker": Role("train", replicas=2, on_failure="restart-role")}
    gang = Gang(job(roles=roles))
    gang.form()
    gang.say("worker:0", Phase.JOINED, epoch=3, ports={"main": 4000})
    (again,) = gang.recorded(GangRestarted)
    assert sorted(map(str, again.tasks)) == ["worker:0", "worker:1"]
    assert gang.state.tasks[TaskId("ps", 0)].formed


def test_a_master_that_begins_anew_waits_for_the_programs_of_the_one_before():
    spec = job(roles={"worker": Role("train")})
    gang = Gang(spec)
    gang.state = GangState.for_job("job-1", spec)
    gang.feed(JobStarted(gang.now, "job-1", "local", "alice", spec, fenced_until=gang.now + FENCE_S))
    gang.grant("worker")
    gang.join("worker:0")
    for _ in range(4):
        assert gang.state.stage is Stage.FORMING
        gang.wait(FENCE_S / 4 + 0.1)
        gang.join("worker:0")
    assert gang.state.stage is Stage.RUNNING


def test_files_that_are_not_in_place_in_time_end_the_task():
    gang = Gang(job(roles={"worker": Role("train")}, timeouts=Timeouts(localise_s=60)))
    gang.grant("worker")
    for _ in range(10):
        gang.say("worker:0", Phase.LOCALISING)
        gang.wait(7)
    assert gang.outcome.diagnostics.endswith("files and data not in place after 60 s (timeouts.localise)")


def looking() -> Gang:
    """A job with checkpoints: all have joined, and somebody looks what there is."""
    gang = Gang(job(roles={"worker": Role("train")}, checkpoint=Checkpoint("hdfs://n/ckpt")))
    gang.grant("worker")
    gang.join("worker:0")
    assert [look.epochs for look in gang.actions_of(FindCheckpoint)] == [(1,)]
    assert gang.state.stage is Stage.FORMING
    return gang


def test_programs_start_when_it_is_known_what_they_go_on_from():
    gang = looking()
    gang.feed(CheckpointFound(gang.now, (1,), "hdfs://n/ckpt/3"))
    assert (gang.state.stage, gang.state.checkpoint_lookups.found) == (Stage.RUNNING, {1: "hdfs://n/ckpt/3"})


def test_programs_do_not_begin_anew_over_checkpoints_that_cannot_be_read():
    gang = looking()
    gang.feed(CheckpointFound(gang.now, (1,), error="permission denied"))
    assert (gang.state.stage, gang.state.outcome.state) == (Stage.STOPPING, State.FAILED)
    assert "can't be read: permission denied" in gang.state.outcome.diagnostics


def test_a_look_that_a_dead_master_had_begun_is_begun_again():
    gang = looking()
    gang.take_over()
    gang.join("worker:0")
    assert [look.epochs for look in gang.actions_of(FindCheckpoint)][1:] == [(1,)]


def test_a_gang_that_is_complete_when_the_job_is_ending_does_not_start():
    gang = Gang(job())
    for role in ("ps", "worker", "worker"):
        gang.grant(role)
    gang.join("ps:0")
    gang.join("worker:0")
    gang.feed(CancelRequested(gang.now, "alice"))
    gang.join("worker:1")
    assert (gang.state.stage, gang.recorded(WorldFormed)) == (Stage.STOPPING, [])


def test_a_container_that_comes_when_the_job_is_ending_is_given_back():
    gang = Gang(job())
    gang.grant("ps")
    gang.join("ps:0")
    gang.feed(CancelRequested(gang.now, "alice"))
    late = gang.grant("worker")
    assert gang.state.stage is Stage.STOPPING
    assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == [late.id]


def test_a_program_whose_container_went_back_is_waited_for_unless_its_end_was_told():
    gang = Gang(job(roles={"worker": Role("train", replicas=2, resources=Resources(growth=0.5))}, retries=1))
    gang.form()
    gang.end("worker:0", Exit("exit", 1))  # with more memory all get other containers
    fences = [gang.state.tasks[TaskId("worker", index)].fenced_until for index in range(2)]
    assert fences == [0.0, gang.now + FENCE_S]


def test_a_gang_is_requested_in_one_step():
    """An engine that grants a gang whole knows all of it before its `poll` goes on."""
    spec = job()
    actions = step(GangState.for_job("job-1", spec), JobStarted(1000.0, "job-1", "local", "alice", spec))
    requests = [action for action in actions if isinstance(action, RequestContainers)]
    assert {request.role: request.count for request in requests} == {"ps": 1, "worker": 2}


def test_a_released_container_says_what_became_of_its_attempt():
    gang = Gang(job())
    gang.form()
    unneeded = gang.grant("worker")
    for _ in range(40):
        gang.wait(5)
    causes = {release.container_id: release.cause for release in gang.actions_of(ReleaseContainer)}
    assert causes.pop(unneeded.id) == ""
    assert set(causes.values()) == {"silent"}


def test_what_could_not_be_kept_is_told_once_and_before_the_end():
    gang, lost = Gang(job()), "checkpoints could not be stored in hdfs://n/ck: the quota is used up"
    gang.form()
    for warnings in ((lost,), (lost,), (lost, "model/a: leads nowhere; it is not uploaded")):
        gang.say("worker:1", Phase.RUNNING, program_pid=7, warnings=warnings)
    gang.say("worker:0", Phase.ENDED, exit=OK, warnings=(lost,))
    texts = [event.text for event in gang.recorded(Noted)]
    assert texts == [f"worker:1: {lost}", "worker:1: model/a: leads nowhere; it is not uploaded", f"worker:0: {lost}"]
