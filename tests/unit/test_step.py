"""Decisions of the master: forming, succeeding, failing, restarting, ending."""

from __future__ import annotations

import pytest

from howdah.master import actions as a
from howdah.master.state import Stage
from howdah.spec import Exit, Output, Role, State, TaskId, Timeouts
from howdah.spec import events as e
from howdah.testing import OK, Gang, job
from howdah.wire.messages import Phase

KILLED = Exit("memory", signal=9, detail="killed: used 9 GiB of 8 GiB")


def test_asks_for_every_role_and_launches_what_is_granted():
    gang = Gang(job())
    assert [(ask.role, ask.count) for ask in gang.of(a.Ask)] == [("ps", 1), ("worker", 2)]
    gang.grant("worker")
    assert [str(launch.task) for launch in gang.of(a.Launch)] == ["worker:0"]


def test_a_container_too_many_is_given_back():
    gang = Gang(job())
    gang.grant("ps")
    extra = gang.grant("ps")
    assert [release.container_id for release in gang.of(a.Release)] == [extra.id]


def test_the_world_forms_only_when_all_have_joined():
    gang = Gang(job())
    for role in ("ps", "worker", "worker"):
        gang.grant(role)
    gang.join("ps:0")
    gang.join("worker:0")
    assert gang.state.stage is Stage.FORMING
    gang.join("worker:1")
    assert gang.state.stage is Stage.RUNNING
    assert [member.address for member in gang.state.tasks[TaskId("worker", 0)].world.of("worker")] == [
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
    assert not gang.recorded(e.Ended)[-1].counts


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
    gang.feed(e.ContainerEnded(gang.now, "c3", KILLED))
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
    gang.feed(e.ContainerEnded(gang.now, "c3", KILLED))
    assert (gang.state.stage, gang.state.epoch) == (Stage.FORMING, 2)
    assert (gang.of(a.Ask)[-1].role, gang.of(a.Ask)[-1].count) == ("worker", 1)
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
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", Exit("port", 1, detail="port 4000 was taken"))
    assert (gang.state.epoch, gang.state.retries_used) == (2, 0)


def test_half_a_gang_is_given_back_and_asked_for_again_later():
    gang = Gang(job(timeouts=Timeouts(hold_s=60)))
    gang.grant("worker")
    gang.wait(61)
    assert [release.container_id for release in gang.of(a.Release)] == ["c1"]
    released = gang.recorded(e.GangReleased)[0]
    assert "worker: 1 of 2" in released.reason
    asked = len(gang.of(a.Ask))
    late = gang.grant("worker")
    assert gang.of(a.Release)[-1].container_id == late.id
    gang.wait(released.retry_in + 1)
    assert [(ask.role, ask.count) for ask in gang.of(a.Ask)[asked:]] == [("ps", 1), ("worker", 2)]


def test_two_jobs_back_off_differently():
    waits = set()
    for name in ("job-1", "job-2"):
        gang = Gang(job())
        gang.state.id = name
        gang.grant("worker")
        gang.wait(61)
        waits.add(gang.recorded(e.GangReleased)[0].retry_in)
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
    assert gang.of(a.Release)[0].container_id == "c3"


def test_what_the_cluster_did_to_a_gang_starts_it_again_without_retries():
    gang, other = Gang(job()), Gang(job())
    for one in (gang, other):
        one.form()
        one.state.fitness.elsewhere = True
    for _ in range(2):
        gang.wait(8)
        gang.run("worker:0")
        gang.run("ps:0")
    other.feed(e.ContainerEnded(other.now, "c1", Exit("preempted", detail="preempted")))
    for one, reason in ((gang, "worker:1 on node3: not heard for"), (other, "ps:0 on node1: preempted")):
        (restart,) = one.recorded(e.GangRestarted)
        assert restart.reason.startswith(reason)
        assert "not counted as a retry" in restart.reason
        assert (one.outcome, one.state.retries_used) == (None, 0)


def test_no_more_than_twenty_times_a_day():
    gang = Gang(job())
    gang.form()

    def preempted(after_s: float) -> None:
        gang.now += after_s
        for task in gang.state.tasks.values():
            task.heard_at = gang.now
        gang.feed(a.Tick(gang.now))
        container = gang.state.tasks[TaskId("worker", 0)].container
        gang.feed(e.ContainerEnded(gang.now, container.id, Exit("preempted", detail="preempted")))
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


def test_an_executor_that_never_speaks_while_others_do_is_replaced_uncounted():
    gang = Gang(job(retries=0))
    for role in ("ps", "worker", "worker"):
        gang.grant(role)
    for _ in range(16):
        gang.wait(8)
        for task in ("ps:0", "worker:0"):
            gang.join(task)
    assert gang.outcome is None
    assert "worker:1 on node3" in gang.recorded(e.GangRestarted)[0].reason
    assert (gang.of(a.Ask)[-1].role, gang.of(a.Ask)[-1].count) == ("worker", 1)
    gang.grant("worker")
    for task in ("ps:0", "worker:0", "worker:1"):
        gang.join(task)
        gang.run(task)
    assert len(gang.recorded(e.WorldFormed)) == 1
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
    gang.feed(e.TimeLost(gang.now, 5))
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
    gang.feed(e.CancelRequested(gang.now, "alice"))
    gang.wait(14)
    assert gang.outcome is None
    gang.wait(2)
    assert (gang.outcome.state, gang.outcome.diagnostics) == (State.CANCELLED, "cancelled by alice")


@pytest.mark.parametrize(("fails", "keep"), [(False, True), (True, False)])
def test_outputs_are_kept_after_success_only(fails: bool, keep: bool):
    gang = Gang(job(roles={"worker": Role("train")}, outputs=(Output("hdfs://n/out"),)))
    gang.form()
    gang.end("worker:0", Exit("exit", 1) if fails else OK)
    assert gang.of(a.Commit)[0].keep is keep
    gang.feed(a.CommitDone(gang.now))
    assert gang.outcome.state is (State.FAILED if fails else State.SUCCEEDED)


def test_outputs_that_cannot_be_kept_fail_the_job():
    gang = Gang(job(roles={"worker": Role("train")}, outputs=(Output("hdfs://n/out"),)))
    gang.form()
    gang.end("worker:0")
    gang.feed(a.CommitDone(gang.now, error="quota exceeded"))
    assert gang.outcome.diagnostics == "the programs ended well, but the outputs were not kept: quota exceeded"


def test_containers_lost_before_the_gang_formed_are_replaced():
    gang = Gang(job())
    gang.grant("worker")
    gang.feed(e.ContainerEnded(gang.now, "c1", Exit("preempted", detail="preempted")))
    assert gang.state.stage is Stage.FORMING
    assert (gang.of(a.Ask)[-1].role, gang.of(a.Ask)[-1].count) == ("worker", 2)


def test_nothing_follows_the_end():
    gang = Gang(job())
    gang.feed(e.CancelRequested(gang.now, "alice"))
    assert gang.outcome.state is State.CANCELLED
    assert gang.feed(e.CancelRequested(gang.now, "bob")) == []


def test_what_came_first_is_told_though_it_is_heard_after_its_consequence():
    gang = Gang(job(retries=1))
    gang.form()
    gang.end("worker:0", Exit("exit", 1, lines=("connection reset by peer",)))
    for exit in (Exit("exit", 1), Exit("stopped"), Exit("signal", signal=9)):
        gang.say("worker:1", Phase.ENDED, epoch=1, exit=exit)
    (told,) = gang.recorded(e.Noted)
    assert told.text.startswith("worker:1 on node3: killed by signal 9; heard later than worker:0")
    gang.take_over()
    assert gang.recorded(e.Noted) == [told]


def test_who_leaves_while_the_job_stops_is_not_its_first_failure():
    gang = Gang(job())
    gang.form()
    gang.end("worker:0", Exit("exit", 1, lines=("KeyError",)))
    gang.feed(e.ContainerEnded(gang.now, "c3", Exit("exit", 75)))
    assert gang.state.outcome.first == TaskId("worker", 0)
    gang.feed(e.ContainerEnded(gang.now, "c1", Exit("memory")))  # but this may be why
    assert gang.state.outcome.first == TaskId("ps", 0)
