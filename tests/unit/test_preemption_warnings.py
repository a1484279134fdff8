"""Tests preemption: YARN's warnings, the master's orders, and how the program's end is then counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.preemption_warnings import PreemptionWarnings
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.frameworks import find
from howdah.master.decisions.actions import NoteNodeFailures, RecordEvent, ReleaseContainer
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.spec import Exit, JobSpec, Preemption, Role, StagedJob, TaskId
from howdah.spec.events import CancelRequested, ContainerEnded, Event, GangRestarted, LossAnnounced, Noted
from howdah.spec.fold import fold
from howdah.testing import Gang
from howdah.wire.messages import Phase, PreemptionNotice, Status

W0 = TaskId("worker", 0)


def granted(number: int, host: str) -> tuple[str, pb.Container]:
    app = pb.ApplicationId(cluster_timestamp=17, id=1)
    id_ = pb.ContainerId(application_id=app, attempt_id=pb.AttemptId(application_id=app, attempt=1), id=number)
    return records.container_id(id_), pb.Container(id=id_, node=pb.NodeId(host=host, port=8041))


HELD = dict((granted(2, "node1"), granted(3, "node2")))
FIRST, SECOND = HELD


def heard(forewarnings: PreemptionWarnings, response: pb.AllocateResponse) -> list[Event]:
    return list(forewarnings.new_events(response, HELD, 5.0))


def node(state: int, seconds: int = 0, health: str = "") -> pb.AllocateResponse:
    report = pb.NodeReport(node=HELD[FIRST].node, state=state, decommissioning_s=seconds, health_report=health)
    return pb.AllocateResponse(nodes=[report])


class TestYarn:
    def test_both_contracts_each_container_once(self) -> None:
        said = PreemptionWarnings(
            Configuration(properties={"yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "30000"})
        )
        response = pb.AllocateResponse()
        response.preemption.strict.containers.add(id=HELD[FIRST].id)
        response.preemption.negotiable.containers.add(id=HELD[SECOND].id)
        text = "YARN is about to preempt its container on {}, in 30 s"
        assert heard(said, response) == [
            LossAnnounced(5.0, FIRST, "preemption", 30.0, text.format("node1")),
            LossAnnounced(5.0, SECOND, "preemption", 30.0, text.format("node2")),
        ]
        assert heard(said, response) == []

    def test_a_node_that_goes_and_comes_back(self) -> None:
        said = PreemptionWarnings(Configuration())
        (event,) = heard(said, node(7, 120))
        text = "node node1 is being decommissioned, in at most 120 s"
        assert event == LossAnnounced(5.0, FIRST, "decommission", 120, text)
        assert heard(said, node(7, 100)) == []
        assert heard(said, node(records.NODE_RUNNING)) == []
        assert len(heard(said, node(7))) == 1

    def test_an_unhealthy_or_lost_node_is_reported(self) -> None:
        said = PreemptionWarnings(Configuration())
        (ill,) = heard(said, node(3, health="1/1 local-dirs are bad\n"))
        assert ill == LossAnnounced(5.0, FIRST, "unhealthy", 0.0, "node node1 is unhealthy: 1/1 local-dirs are bad")
        (lost,) = heard(said, node(5))
        assert lost == Noted(5.0, "node node1 with 1 of our containers is lost")


def gang(preemption: Preemption) -> Gang:
    roles = {"worker": replace(Role("train", replicas=2), preemption=preemption)}
    made = Gang(JobSpec(roles=roles, retries=1))
    made.form()
    return made


def order(job: Gang, task: str) -> PreemptionNotice | None:
    director = OrderBuilder("job-1", StagedJob(job.state.job, "file:///x"), find("generic"))
    state = job.state.tasks[TaskId.parse(task)]
    status = Status(
        task=task, attempt=state.attempt, epoch=state.epoch, sequence=99, phase=Phase.RUNNING, host="h", pid=1
    )
    orders = director.orders(job.state, status)
    assert ("notice" in orders.digest) is (orders.notice is not None)
    return orders.notice


class TestMaster:
    def test_the_program_there_is_told_and_no_other(self) -> None:
        job = gang(Preemption("USR1", 20))
        job.feed(LossAnnounced(job.now, "c1", "preemption", 5.0, "soon"))
        job.feed(LossAnnounced(job.now, "c9", "preemption", 5.0, "nobody's"))
        assert order(job, "worker:0") == PreemptionNotice(
            number=1, kind="preemption", within_s=5.0, text="soon", signal="USR1"
        )
        assert order(job, "worker:1") is None
        (event,) = job.recorded(LossAnnounced)
        assert event.task == W0
        view = fold(action.event for action in job.actions_of(RecordEvent))
        assert view.tasks[W0].notice == "soon"

    def test_a_job_that_is_ending_does_not_hear_of_it(self) -> None:
        job = gang(Preemption())
        job.feed(CancelRequested(job.now, "alice"))
        assert job.feed(LossAnnounced(job.now, "c1", "preemption", 5.0, "soon")) == []

    def test_where_yarn_does_not_say_how_long(self) -> None:
        job = gang(Preemption(grace_s=20))
        job.feed(LossAnnounced(job.now, "c1", "unhealthy", 0.0, "ill"))
        assert order(job, "worker:0") == PreemptionNotice(
            number=1, kind="unhealthy", within_s=20.0, text="ill", signal="URG"
        )

    def test_who_leaves_for_it_gives_its_container_back_and_uses_up_no_retry(self) -> None:
        job = gang(Preemption())
        job.feed(LossAnnounced(job.now, "c1", "preemption", 5.0, "soon"))
        job.end("worker:0", Exit("preempted", 75, detail="it ended after this notice: soon"))
        assert job.actions_of(ReleaseContainer) == [ReleaseContainer("c1")]
        assert job.state.retries_used == 0
        assert job.recorded(GangRestarted)[0].reason.endswith("(not counted as a retry: preempted)")
        job.grant("worker")
        job.join("worker:0")
        assert order(job, "worker:0") is None  # that was of the container before

    @pytest.mark.parametrize("announced", [True, False])
    def test_a_decommissioned_node_is_not_to_blame(self, announced: bool) -> None:
        job = gang(Preemption())
        if announced:
            job.feed(LossAnnounced(job.now, "c1", "decommission", 5.0, "the node goes"))
        job.feed(ContainerEnded(job.now, "c1", Exit("lost", detail="released on a lost node")))
        assert job.recorded(GangRestarted)[0].reason.endswith("(not counted as a retry: node)")
        assert bool(job.actions_of(NoteNodeFailures)) is not announced

    def test_a_master_that_takes_over_says_the_same(self) -> None:
        job = gang(Preemption())
        job.feed(LossAnnounced(job.now, "c1", "preemption", 5.0, "soon"))
        job.take_over()
        assert order(job, "worker:0") == PreemptionNotice(
            number=1, kind="preemption", within_s=5.0, text="soon", signal="URG"
        )
