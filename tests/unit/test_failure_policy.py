"""Tests what follows from a task's end: stages, shares, grace, deadlines, partial restarts, and what is a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from howdah.frameworks import find
from howdah.master.decisions import restart_policy
from howdah.master.decisions.actions import Action, LaunchTask, NoteNodeFailures, ReleaseContainer, RequestContainers
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.master.decisions.gang_formation import bad_nodes
from howdah.master.decisions.heartbeat_timeouts import FENCE_S
from howdah.master.decisions.step import step
from howdah.master.state import GangState, Stage
from howdah.spec import (
    Container,
    Deadline,
    Exit,
    JobSpec,
    Output,
    Placement,
    Resources,
    Role,
    StagedJob,
    State,
    TaskId,
    Timeouts,
)
from howdah.spec.events import (
    Allocated,
    AllocationLost,
    CancelRequested,
    ContainerEnded,
    GangRestarted,
    JobStarted,
    Noted,
)
from howdah.testing import OK, Gang
from howdah.wire.messages import Goal, Orders, Phase, Status

BAD = Exit("exit", 1)
LOST = Exit("lost", detail="node lost")


def roles(**named: Role) -> JobSpec:
    return JobSpec(roles=named)


def begin(gang: Gang, *names: str) -> None:
    """Containers, joining and running of all tasks of these roles."""
    tasks = [task for task in gang.state.tasks if task.role in names]
    for task in tasks:
        gang.grant(task.role)
    for task in tasks:
        gang.join(str(task))
    for task in tasks:
        gang.run(str(task))


def orders(gang: Gang, task: str) -> Orders:
    """What the executor of a task is told."""
    director = OrderBuilder("job-1", StagedJob(gang.state.job, "file:///x"), find("generic"))
    known = gang.state.tasks[TaskId.parse(task)]
    status = Status(
        task=task,
        attempt=known.attempt,
        epoch=known.epoch,
        sequence=1,
        phase=known.phase or Phase.HELLO,
        host="h",
        pid=1,
    )
    return director.orders(gang.state, status)


def goal(gang: Gang, task: str) -> Goal:
    """What the executor of a task is to do."""
    return orders(gang, task).goal


class TestStages:
    job = roles(prepare=Role("p", replicas=2), train=Role("t", replicas=2, after=("prepare",)))

    def test_a_role_is_asked_for_when_its_predecessors_have_ended_well(self):
        gang = Gang(self.job)
        assert [ask.role for ask in gang.actions_of(RequestContainers)] == ["prepare"]
        begin(gang, "prepare")
        gang.end("prepare:0")
        assert [ask.role for ask in gang.actions_of(RequestContainers)] == ["prepare"]
        gang.end("prepare:1")
        assert [ask.role for ask in gang.actions_of(RequestContainers)] == ["prepare", "train"]
        assert len(gang.actions_of(ReleaseContainer)) == 2, "their room is for those who come"
        begin(gang, "train")
        world = gang.state.tasks[TaskId("train", 0)].world
        assert world is not None
        assert {member.task.role for member in world.members} == {"train"}
        gang.end("train:0")
        gang.end("train:1")
        assert gang.outcome.state is State.SUCCEEDED

    def test_a_failed_stage_is_the_end(self):
        gang = Gang(self.job)
        begin(gang, "prepare")
        gang.end("prepare:0", BAD)
        gang.end("prepare:1", Exit("stopped"))
        assert gang.outcome.state is State.FAILED
        assert gang.outcome.first == TaskId("prepare", 0)
        assert "train" not in [ask.role for ask in gang.actions_of(RequestContainers)]

    def test_any_means_any_of_the_last_stage(self):
        gang = Gang(replace(self.job, success="any"))
        begin(gang, "prepare")
        gang.end("prepare:0")
        assert gang.state.open

    def test_a_restart_in_the_second_stage_does_not_repeat_the_first(self):
        gang = Gang(replace(self.job, retries=1))
        begin(gang, "prepare")
        gang.end("prepare:0")
        gang.end("prepare:1")
        begin(gang, "train")
        gang.end("train:0", BAD)
        assert gang.recorded(GangRestarted)[-1].tasks == (TaskId("train", 0), TaskId("train", 1))
        assert gang.state.tasks[TaskId("prepare", 0)].exit == OK


class TestShare:
    job = replace(roles(worker=Role("w", replicas=4)), success="75%")

    def test_as_many_may_fail_as_the_share_leaves(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("worker:0", BAD)
        assert gang.state.open
        for index in (1, 2, 3):
            gang.end(f"worker:{index}")
        assert gang.outcome.state is State.SUCCEEDED

    def test_one_more_is_the_end_and_the_first_is_named(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("worker:2", BAD)
        gang.now += 1
        gang.end("worker:1", Exit("memory", signal=9))
        for index in (0, 3):
            gang.end(f"worker:{index}", Exit("stopped"))
        assert gang.outcome.state is State.FAILED
        assert gang.outcome.first == TaskId("worker", 2)
        assert "2 of 4 tasks failed (success: 75%)" in gang.outcome.diagnostics

    def test_a_share_may_be_finer_than_a_per_cent(self):
        """101 of 200."""
        gang = Gang(replace(roles(worker=Role("w", replicas=200)), success="50.5%"))
        gang.form()
        for index in range(99):
            gang.end(f"worker:{index}", BAD)
        assert gang.state.open
        gang.end("worker:99", BAD)
        assert not gang.state.open


class TestChief:
    job = replace(
        roles(chief=Role("c", on_failure="ignore"), worker=Role("w", replicas=2, on_failure="ignore")),
        success="chief",
        timeouts=Timeouts(grace_s=60),
    )

    def test_others_may_go_on_for_the_grace(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("chief:0")
        for _ in range(7):
            gang.wait(8)
            assert gang.state.stage is Stage.RUNNING
            for worker in ("worker:0", "worker:1"):
                gang.run(worker)
        gang.wait(5)
        assert gang.state.stage is Stage.STOPPING

    def test_the_grace_ends_when_no_task_is_left(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("chief:0")
        gang.end("worker:0", BAD)
        gang.end("worker:1")
        assert gang.outcome.state is State.SUCCEEDED

    @pytest.mark.parametrize("retries", [0, 3])
    @pytest.mark.parametrize("end", [BAD, Exit("preflight"), Exit("lost", detail="node lost"), Exit("preempted")])
    def test_no_failure_matters_once_the_chief_has_ended_well(self, retries: int, end: Exit):
        others = {"chief": Role("c"), "worker": Role("w", replicas=2, on_failure="restart", restarts=retries)}
        gang = Gang(replace(self.job, roles=others, retries=retries))
        gang.form()
        gang.end("chief:0")
        if end.cause in (BAD.cause, "preflight"):
            gang.end("worker:0", end)
        else:
            gang.feed(ContainerEnded(gang.now, "c2", end))
        assert gang.state.stage is Stage.RUNNING
        assert not gang.recorded(GangRestarted)
        gang.end("worker:1")
        assert gang.outcome.state is State.SUCCEEDED

    @pytest.mark.parametrize("limit", ["run_s", "total_s"])
    def test_a_limit_that_passes_after_the_chiefs_end_only_ends_the_others(self, limit: str):
        gang = Gang(replace(self.job, timeouts=Timeouts(grace_s=60, **{limit: 10})))
        gang.form()
        gang.end("chief:0")
        for _ in range(2):
            gang.run("worker:0")
            gang.run("worker:1")
            gang.wait(8)
        assert gang.state.stage is Stage.STOPPING
        assert gang.state.outcome.state is State.SUCCEEDED

    def test_no_end_of_the_allocation_undoes_the_chiefs_success(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("chief:0")
        gang.feed(AllocationLost(gang.now, "queue deleted", comes_back=False))
        gang.take_over()
        assert gang.state.stage is Stage.STOPPING
        assert gang.state.outcome.state is State.SUCCEEDED

    def test_the_chiefs_failure_is_never_ignored(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("chief:0", BAD)
        assert gang.state.outcome.first == TaskId("chief", 0)


class TestDeadline:
    def gang(self, then: str) -> Gang:
        late = Role("e", deadline=Deadline(("worker",), 100.0, then))
        gang = Gang(roles(worker=Role("w"), evaluator=late))
        gang.form()
        gang.end("worker:0")
        gang.wait(9)
        gang.run("evaluator:0")
        assert goal(gang, "evaluator:0") is Goal.RUN
        for _ in range(11):
            gang.wait(9)
            gang.run("evaluator:0")
        return gang

    def test_a_passed_deadline_fails_the_job(self):
        gang = self.gang("fail")
        assert "evaluator:0 still runs 100 s after worker ended" in gang.state.outcome.diagnostics

    def test_stopping_the_late_at_a_deadline_is_no_failure(self):
        gang = self.gang("stop")
        assert goal(gang, "evaluator:0") is Goal.STOP
        gang.end("evaluator:0", Exit("stopped", signal=15))
        assert gang.outcome.state is State.SUCCEEDED

    def late(self) -> Gang:
        """The workers of one role are done and those of another are not when the time of an evaluator is over."""
        late = Role("e", on_failure="ignore", deadline=Deadline(("worker",), 100.0, "untrack"))
        gang = Gang(roles(worker=Role("w"), evaluator=late, other=Role("o")))
        gang.form()
        gang.end("worker:0")
        for _ in range(12):
            gang.wait(9)
            gang.run("evaluator:0")
            gang.run("other:0")
        assert goal(gang, "evaluator:0") is Goal.RUN
        told = [noted.text for noted in gang.recorded(Noted)]
        assert told == ["evaluator:0 still runs 100 s after worker ended: the job waits for it no more"]
        return gang

    def test_the_job_does_not_wait_for_untracked_late_tasks(self):
        gang = self.late()
        gang.end("other:0")
        gang.end("evaluator:0", Exit("stopped", signal=15))
        assert gang.outcome.state is State.SUCCEEDED
        gang = self.gang("untrack")
        assert goal(gang, "evaluator:0") is Goal.STOP, "there is nobody else to wait for"

    def test_a_failure_of_an_untracked_late_task_counts(self):
        gang = self.late()
        gang.take_over()
        gang.say("evaluator:0", Phase.HELLO)
        gang.end("evaluator:0", BAD)
        assert gang.state.outcome.first == TaskId("evaluator", 0)


class TestRestart:
    def test_a_task_alone(self):
        gang = Gang(roles(worker=Role("w", replicas=3, on_failure="restart", restarts=1, backoff_s=2.0)))
        gang.form()
        before = gang.state.tasks[TaskId("worker", 0)].epoch
        gang.end("worker:1", BAD)
        assert gang.recorded(GangRestarted)[-1].tasks == (TaskId("worker", 1),)
        assert gang.state.tasks[TaskId("worker", 0)].epoch == before, "the others go on"
        assert gang.state.stage is Stage.RUNNING
        gang.join("worker:1")
        assert goal(gang, "worker:1") is Goal.JOIN, "it waits"
        gang.wait(2.5)
        assert goal(gang, "worker:1") is Goal.RUN
        world = gang.state.tasks[TaskId("worker", 1)].world
        assert world is not None
        assert [len(world.members), world.rank(TaskId("worker", 1))] == [3, 1]
        gang.run("worker:1")
        gang.end("worker:1", BAD)
        assert gang.state.stage is Stage.STOPPING, "one restart is used up"

    def test_its_own_pause_is_no_wait_for_the_gang(self):
        worker = Role("w", replicas=2, on_failure="restart", restarts=1, backoff_s=60.0)
        gang = Gang(replace(roles(worker=worker), timeouts=Timeouts(gang_s=20)))
        gang.form()
        gang.end("worker:1", BAD)
        for _ in range(8):
            gang.join("worker:1")
            gang.run("worker:0")
            gang.wait(8)
        assert gang.state.outcome is None
        assert goal(gang, "worker:1") is Goal.RUN

    def test_its_container_is_replaced_when_it_is_gone(self):
        gang = Gang(roles(worker=Role("w", replicas=2, on_failure="restart")))
        gang.form()
        gang.feed(ContainerEnded(gang.now, "c2", LOST))
        assert (gang.actions_of(RequestContainers)[-1].role, gang.actions_of(RequestContainers)[-1].count) == (
            "worker",
            1,
        )
        gang.grant("worker")
        gang.join("worker:1")
        gang.wait(5)
        assert goal(gang, "worker:1") is Goal.JOIN, "the lost one may still run"
        for _ in range(6):
            gang.run("worker:0")
            gang.join("worker:1")
            gang.wait(4)
        assert goal(gang, "worker:1") is Goal.RUN
        assert gang.state.tasks[TaskId("worker", 1)].attempt == 2

    def test_a_container_of_which_nothing_is_left_is_not_waited_for(self):
        gang = Gang(roles(worker=Role("w", replicas=2, on_failure="restart")))
        gang.form()
        gang.feed(ContainerEnded(gang.now, "c2", LOST, certain=True))
        gang.grant("worker")
        gang.join("worker:1")
        gang.wait(2.5)
        assert goal(gang, "worker:1") is Goal.RUN

    def test_a_role(self):
        gang = Gang(roles(ps=Role("p", tracked=False), worker=Role("w", replicas=2, on_failure="restart-role")))
        gang.form()
        gang.end("worker:1", BAD)
        assert gang.recorded(GangRestarted)[-1].tasks == (TaskId("worker", 0), TaskId("worker", 1))
        assert goal(gang, "ps:0") is Goal.RUN

    def test_without_a_gang_each_runs_when_it_can(self):
        job = replace(roles(worker=Role("w", replicas=3)), gang=False, retries=1)
        gang = Gang(job)
        gang.grant("worker")
        gang.join("worker:0")
        assert goal(gang, "worker:0") is Goal.RUN
        gang.run("worker:0")
        gang.end("worker:0")
        assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["c1"], (
            "others wait for the room"
        )
        for index in (1, 2):
            gang.grant("worker")
            gang.join(f"worker:{index}")
            gang.run(f"worker:{index}")
        gang.end("worker:1", BAD)
        assert gang.recorded(GangRestarted)[-1].tasks == (TaskId("worker", 1),)
        gang.end("worker:2")
        gang.join("worker:1")
        gang.run("worker:1")
        gang.end("worker:1")
        assert gang.outcome.state is State.SUCCEEDED

    def test_what_the_start_waits_for_is_said_once(self):
        job = roles(worker=Role("w"), ps=Role("p", tracked=False, resources=Resources(1000, growth=0.2)))
        gang = Gang(replace(job, retries=1))
        gang.form()
        gang.end("worker:0", BAD)
        gang.grant("ps")
        for task in ("worker:0", "ps:0"):
            gang.join(task)
        gang.take_over()
        gang.wait(1)
        words = "until then an earlier program of ps:0 may still run: its end was not reported"
        assert [words in noted.text for noted in gang.recorded(Noted)] == [True]

    def test_memory_grows_with_each_restart(self):
        job = replace(roles(worker=Role("w", resources=Resources(1000, growth=0.5))), retries=2)
        gang = Gang(job)
        gang.form()
        gang.end("worker:0", BAD)
        assert gang.actions_of(RequestContainers)[-1].preferences.memory_mib == 1500
        assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["c1"]


PREEMPTED, SILENT, TAKEN = Exit("preempted"), Exit("silent"), Exit("port", 1)


class TestNothingStartsTwiceUnasked:
    """What happens to a program that has started is a restart only if the job says so."""

    two = Role("w", replicas=2)

    def started(self, job: JobSpec) -> Gang:
        gang = Gang(job)
        gang.state.preflight.has_other_nodes = True
        gang.form()
        return gang

    @pytest.mark.parametrize("exit", [LOST, PREEMPTED, SILENT, TAKEN])
    def test_a_job_without_retries_fails(self, exit: Exit):
        gang = self.started(roles(worker=self.two))
        if exit is TAKEN:
            gang.end("worker:0", exit)
        else:
            gang.feed(ContainerEnded(gang.now, "c1", exit))
        assert gang.state.outcome is not None
        assert gang.state.outcome.first == TaskId("worker", 0)
        assert gang.state.outcome.diagnostics.endswith("nothing starts again, because the job has no retries")
        assert not gang.recorded(GangRestarted)

    @pytest.mark.parametrize("exit", [LOST, PREEMPTED, SILENT])
    @pytest.mark.parametrize(
        "job",
        [
            replace(roles(worker=two), retries=1),
            roles(worker=replace(two, spares=1)),
            roles(worker=replace(two, min_replicas=1)),
            roles(worker=replace(two, causes={"75": "preempted"})),
            roles(worker=replace(two, on_failure="restart")),
            roles(worker=replace(two, on_failure="restart-role")),
        ],
    )
    def test_a_job_that_says_so_starts_again_uncounted(self, job: JobSpec, exit: Exit):
        gang = self.started(job)
        gang.feed(ContainerEnded(gang.now, "c1", exit))
        assert gang.state.open
        assert "not counted" in gang.recorded(GangRestarted)[0].reason

    def test_no_restarts_left_to_a_role_are_none(self):
        gang = self.started(roles(worker=replace(self.two, on_failure="restart", restarts=0)))
        gang.feed(ContainerEnded(gang.now, "c1", LOST))
        assert not gang.state.open

    def test_what_one_role_says_counts_for_that_role(self):
        ps = Role("p", tracked=False, on_failure="restart")
        gang = self.started(roles(worker=self.two, ps=ps))
        gang.feed(ContainerEnded(gang.now, "c3", LOST))
        assert gang.recorded(GangRestarted)[0].tasks == (TaskId("ps", 0),)
        gang.feed(ContainerEnded(gang.now, "c1", LOST))
        assert not gang.state.open

    def test_what_was_lost_while_it_formed_leaves_those_that_run_alone(self):
        gang = self.started(roles(worker=self.two, ps=Role("p", tracked=False, on_failure="restart")))
        gang.feed(ContainerEnded(gang.now, "c3", LOST))
        lost = gang.grant("ps")
        gang.feed(ContainerEnded(gang.now, lost.id, LOST))
        assert [event.tasks for event in gang.recorded(GangRestarted)] == [(TaskId("ps", 0),)] * 2
        assert gang.state.open

    def test_before_the_programs_start_containers_are_replaced(self):
        gang = Gang(roles(worker=self.two))
        for number in range(1, 8):  # five are replaced, then it is an incident like any other
            gang.grant("worker")
            gang.feed(ContainerEnded(gang.now, f"c{number}", LOST))
        assert gang.state.open

    def test_a_later_stage_has_not_started_yet(self):
        gang = Gang(TestStages.job)
        begin(gang, "prepare")
        gang.end("prepare:0")
        gang.end("prepare:1")
        lost = gang.grant("train")
        gang.feed(ContainerEnded(gang.now, lost.id, LOST))
        assert gang.state.open
        gang.now += FENCE_S  # until then what was lost might run
        begin(gang, "train")
        gang.feed(ContainerEnded(gang.now, f"c{gang.number}", LOST))
        assert not gang.state.open


class TestCauses:
    @pytest.mark.parametrize(
        ("exit", "state", "used"),
        [
            (Exit("exit", 75), Stage.FORMING, 1),
            (Exit("exit", 64), Stage.DONE, 0),
            (Exit("exit", 1, lines=("RuntimeError: CUDA error: uncorrectable ECC",)), Stage.FORMING, 0),
            (LOST, Stage.FORMING, 0),
            (Exit("preempted"), Stage.FORMING, 0),
            (Exit("memory", signal=9), Stage.FORMING, 1),
            (Exit("image", detail="image 'a' is not used"), Stage.DONE, 0),
        ],
    )
    def test_what_a_failure_uses_up(self, exit: Exit, state: Stage, used: int):
        causes = {"64": "user", "ECC|XID": "node", "75": "transient"}
        gang = Gang(replace(roles(worker=Role("w", causes=causes)), retries=1))
        gang.form()
        gang.end("worker:0", exit)
        assert (gang.state.stage, gang.state.retries_used) == (state, used)

    @pytest.mark.parametrize("elsewhere", [True, False])
    @pytest.mark.parametrize(
        "exit",
        [
            Exit("exit", 75, lines=("OSError: [Errno 28] No space left on device: 'out/model'",)),
            Exit("localise", detail="/data/kept/count.part: no space left on device"),
        ],
    )
    def test_a_task_leaves_a_node_whose_disk_is_full(self, exit: Exit, elsewhere: bool):
        gang = Gang(replace(roles(worker=Role("w", replicas=2)), retries=2))
        gang.state.preflight.has_other_nodes = elsewhere
        gang.form()
        node = gang.state.tasks[TaskId.parse("worker:0")].node
        gang.end("worker:0", exit)
        assert gang.state.retries_used == 1
        assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["c1"] * elsewhere
        assert bad_nodes(gang.state) == [node] * elsewhere
        assert [f"the disk of {node} is full" in noted.text for noted in gang.recorded(Noted)] == [True] * elsewhere

    def test_the_cluster_is_not_forgiven_for_ever(self):
        gang = Gang(replace(roles(worker=Role("w")), retries=1))
        for _ in range(30):
            gang.now += 31
            container: Any = gang.grant("worker")
            gang.join("worker:0")
            gang.run("worker:0")
            gang.feed(ContainerEnded(gang.now, container.id, LOST))
            if not gang.state.open:
                break
        assert gang.outcome.state is State.FAILED


def test_whoever_fails_before_the_gang_has_formed_and_does_not_matter_is_left_out():
    gang = Gang(roles(worker=Role("w"), tensorboard=Role("t", tracked=False, on_failure="ignore")))
    for role in ("worker", "tensorboard"):
        gang.grant(role)
    gang.say("tensorboard:0", Phase.ENDED, exit=Exit("localise", detail="no such file"))
    gang.join("worker:0")
    assert goal(gang, "worker:0") is Goal.RUN


class TestPlacement:
    def test_what_is_granted_on_an_avoided_host_goes_back_and_is_asked_for_again(self):
        gang = Gang(roles(worker=Role("w", placement=Placement(avoid=("node1",)))))
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("node1",)
        gang.grant("worker")
        assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["c1"]
        assert gang.actions_of(RequestContainers)[-1].count == 1
        gang.grant("worker")
        assert gang.actions_of(LaunchTask)[-1].container.node == "node2"

    def test_spread_takes_each_host_once(self):
        gang = Gang(roles(worker=Role("w", replicas=2, placement=Placement(spread=True))))
        gang.grant("worker")
        gang.feed(Allocated(gang.now, Container("again", "node1", "worker")))
        assert [release.container_id for release in gang.actions_of(ReleaseContainer)] == ["again"]
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("node1",)

    def test_a_task_goes_to_its_data(self):
        job = roles(worker=Role("w", replicas=3))
        near = {TaskId("worker", 1): ("node2",), TaskId("worker", 2): ("node1",)}
        state = GangState.for_job("job-1", job, near)
        wish = next(
            action.preferences for action in step(state, JobStarted(0, "job-1", "local", "a", job)) if is_ask(action)
        )
        assert wish.prefer == {"node2": 1, "node1": 1}
        placed = {}
        for number in (1, 2, 3):
            container = Container(f"c{number}", f"node{number}", "worker")
            launched = [x for x in step(state, Allocated(0, container)) if isinstance(x, LaunchTask)]
            placed[container.node] = str(launched[0].task)
        assert placed == {"node1": "worker:2", "node2": "worker:1", "node3": "worker:0"}

    def test_a_node_that_was_to_blame_twice_gets_no_more(self):
        gang = Gang(replace(roles(worker=Role("w")), retries=9))
        for number in (1, 2):
            gang.feed(Allocated(gang.now, Container(f"bad{number}", "bad", "worker")))
            gang.join("worker:0")
            for _ in range(8):
                gang.wait(4)
                gang.join("worker:0")
            gang.run("worker:0")
            gang.feed(ContainerEnded(gang.now, f"bad{number}", LOST))
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("bad",)


def is_ask(action: Action) -> bool:
    return isinstance(action, RequestContainers)


def test_a_share_is_rounded_up():
    gang = Gang(replace(roles(worker=Role("w", replicas=3)), success="50%"))
    begin(gang, "worker")
    gang.end("worker:0")
    gang.end("worker:1", BAD)
    assert gang.state.open
    gang.end("worker:2", BAD)
    assert gang.state.outcome.state is State.FAILED


def test_a_job_of_which_no_task_ended_well_has_failed():
    gang = Gang(roles(worker=Role("w", replicas=2, on_failure="ignore")))
    begin(gang, "worker")
    gang.end("worker:0", BAD)
    gang.end("worker:1", BAD)
    assert (gang.outcome.state, gang.outcome.first) == (State.FAILED, TaskId("worker", 0))
    assert "; the first was worker:0" in gang.outcome.diagnostics


def test_a_node_is_not_to_blame_for_silence():
    gang = Gang(replace(roles(worker=Role("w", replicas=2)), retries=1))
    gang.state.preflight.has_other_nodes = True
    begin(gang, "worker")
    for _ in range(3):
        gang.wait(4)
        gang.run("worker:0")
    assert gang.recorded(GangRestarted)[0].reason.endswith("(not counted as a retry: node)")
    assert not gang.actions_of(NoteNodeFailures)


def test_ports_that_others_take_use_up_a_retry_after_the_third_time():
    gang = Gang(replace(roles(worker=Role("w")), retries=9))
    gang.grant("worker")
    used = []
    for _ in range(4):
        gang.join("worker:0")
        gang.run("worker:0")
        gang.end("worker:0", Exit("port", 1))
        used.append(gang.state.retries_used)
    assert used == [0, 0, 0, 1]


def test_a_container_that_goes_after_its_program_is_written_down_for_the_next_master():
    gang = Gang(roles(worker=Role("w", replicas=2)))
    begin(gang, "worker")
    gang.end("worker:0")
    gone = ContainerEnded(gang.now, "c1", Exit("exit", 0))
    gang.feed(gone)
    assert gang.recorded(ContainerEnded) == [gone]


def test_what_a_lost_node_takes_with_it_is_one_incident():
    gang = Gang(roles(worker=Role("w", replicas=25, on_failure="restart")))
    begin(gang, "worker")
    for number in range(25):
        gang.feed(ContainerEnded(gang.now, f"c{number + 1}", LOST))
    assert gang.state.open
    assert len(gang.state.free_restarts) == 1


def test_restarts_that_use_up_no_retry_have_a_limit_that_is_told():
    gang = Gang(replace(roles(worker=Role("w")), retries=9))
    begin(gang, "worker")
    for number in range(restart_policy.MAX_FREE_RESTARTS + 1):
        assert gang.outcome is None
        gang.now += 60
        gang.feed(ContainerEnded(gang.now, f"c{number + 1}", Exit("preempted", detail="preempted")))
        if gang.outcome is None:
            gang.grant("worker")
            for _ in range(4):  # until the fence of the one before is over
                gang.join("worker:0")
                gang.wait(8)
            gang.run("worker:0")
    assert gang.state.retries_used == 0
    end = "nothing starts again: 20 restarts a day may be for such causes"
    assert gang.outcome.diagnostics == f"worker:0 on node21: preempted; {end}"


def test_what_was_forming_forms_with_all_that_start_again():
    gang = Gang(replace(roles(worker=Role("w", replicas=2, on_failure="restart", restarts=1)), retries=1))
    begin(gang, "worker")
    gang.end("worker:0", BAD)
    assert list(gang.state.formations) == [2]
    gang.say("worker:0", Phase.ENDED, exit=BAD)
    assert [(each.epoch, len(each.tasks)) for each in gang.state.formations.values()] == [(3, 2)]


def test_a_gang_that_fails_again_and_again_soon_after_its_start_waits_longer_each_time():
    gang = Gang(replace(roles(worker=Role("w")), retries=9))
    gang.grant("worker")
    waits = []
    for _ in range(5):
        gang.join("worker:0")
        gang.run("worker:0")
        gang.end("worker:0", BAD)
        (formation,) = gang.state.formations.values()
        waits.append(formation.not_before - gang.now if formation.not_before else 0.0)
        gang.join("worker:0")
        gang.wait(8.1)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0]


def test_an_ending_job_does_not_start_again_because_an_executor_is_ahead_of_the_log():
    gang = Gang(roles(worker=Role("w", replicas=2)))
    begin(gang, "worker")
    gang.feed(CancelRequested(gang.now, "alice"))
    gang.say("worker:0", Phase.RUNNING, epoch=5)
    assert (gang.state.stage, gang.recorded(GangRestarted)) == (Stage.STOPPING, [])
    assert gang.state.tasks[TaskId("worker", 0)].epoch == 5  # it obeys no older one


@pytest.mark.parametrize(("fails", "keep"), [(True, True), (False, False)])
def test_an_ending_job_stops_its_programs_and_keeps_what_a_failed_one_made(fails: bool, keep: bool):
    gang = Gang(replace(roles(worker=Role("w", replicas=2)), outputs=(Output("hdfs://n/out", keep_failed=True),)))
    begin(gang, "worker")
    assert goal(gang, "worker:1") is Goal.RUN
    if fails:
        gang.end("worker:0", BAD)
    else:
        gang.feed(CancelRequested(gang.now, "alice"))
    told = orders(gang, "worker:1")
    assert (told.goal, told.keep) == (Goal.STOP, keep)


class TestWhatWouldFailAgain:
    missing = Exit("exit", 1, detail="no module", permanent=True)
    job = replace(roles(worker=Role("w", replicas=2)), retries=2)

    def test_a_permanent_failure_is_not_tried_again(self):
        gang = Gang(replace(self.job, roles={"worker": Role("w")}))
        gang.form()
        gang.end("worker:0", self.missing)
        assert gang.outcome.state is State.FAILED
        assert gang.outcome.diagnostics == "worker:0 on node1: no module; not tried again, for it would fail again"

    def test_a_role_that_restarts_alone_does_not_try_it_again(self):
        gang = Gang(roles(worker=Role("w", on_failure="restart", restarts=3)))
        gang.form()
        gang.end("worker:0", self.missing)
        assert gang.outcome.diagnostics.endswith("not tried again, for it would fail again")

    def test_without_retries_nothing_is_said_of_them(self):
        gang = Gang(roles(worker=Role("w")))
        gang.form()
        gang.end("worker:0", self.missing)
        assert gang.outcome.diagnostics == "worker:0 on node1: no module"

    def test_one_of_several_tasks_is_not_tried_in_another_container(self):
        gang = Gang(self.job)
        gang.form()
        gang.end("worker:0", self.missing)
        assert not gang.state.open
        assert gang.recorded(GangRestarted) == []

    def test_the_job_file_may_say_otherwise(self):
        gang = Gang(replace(self.job, roles={"worker": Role("w", causes={"no module": "transient"})}))
        gang.form()
        gang.end("worker:0", self.missing)
        assert gang.state.open
