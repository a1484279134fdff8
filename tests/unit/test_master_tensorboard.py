"""Tests the job's TensorBoard, a gang of one task: its container is requested, reported and released."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from howdah.master.decisions.actions import (
    Action,
    Commit,
    Finish,
    LaunchTask,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
    StatusReceived,
)
from howdah.master.tensorboard import TensorBoardTask, resolve_event_dir, with_tensorboard_role
from howdah.spec import Board, Container, Exit, JobSpec, Role, StagedJob, TaskId, uris
from howdah.spec.events import Allocated, Event, JobStarted
from howdah.spec.fold import fold
from howdah.spec.view import JobView
from howdah.wire.messages import Goal, Phase, Status

TASK = TaskId("tensorboard", 0)
JOB = JobSpec({"worker": Role("t")}, board=Board("hdfs://n/runs"))


class Shown:
    """Someone who does nothing but remembers what was to be done, and the job's log."""

    def __init__(self, directory: Path, job: JobSpec = JOB) -> None:
        self.done: list[Action] = []
        self.log: list[Event] = [JobStarted(1.0, "job-1", "local", "me", job)]
        staged = StagedJob(job, uris.of_local(directory))
        self.showing = TensorBoardTask("job-1", staged, b"k" * 32, self.log.append, self.done.extend)

    @property
    def view(self) -> JobView:
        return fold(self.log)

    def open(self) -> Container:
        asyncio.run(self.showing.open(self.view))
        assert [action for action in self.done if isinstance(action, RequestContainers)] == [
            RequestContainers("tensorboard", 1)
        ]
        container = Container("c1", "n1", "tensorboard")
        self.applies(Allocated(2.0, container))
        assert isinstance(self.done[-1], LaunchTask)
        self.says(Phase.JOINED, ports={"main": 7})
        joined = Status(
            task="tensorboard:0",
            attempt=self.showing._attempts,
            epoch=1,
            sequence=1,
            phase=Phase.JOINED,
            host="h1",
            pid=5,
            ports={"main": 7},
        )
        orders = asyncio.run(self.showing.heartbeat(joined, 0.0))
        assert orders is not None
        assert orders.goal is Goal.RUN
        self.says(Phase.RUNNING, ports={"main": 7}, program_pid=9)
        return container

    def applies(self, event: Event) -> None:
        assert self.showing.owns_event(event)
        self.showing.apply(event)

    def says(self, phase: Phase, **more: object) -> None:
        self._sequence = getattr(self, "_sequence", 0) + 1
        attempt = self.showing.state.tasks[TASK].attempt if self.showing.state else 0
        status = Status(
            task="tensorboard:0", attempt=attempt, epoch=1, sequence=self._sequence, phase=phase, host="h1", pid=5
        )
        self.applies(StatusReceived(3.0, dataclasses.replace(status, **more)))  # type: ignore[arg-type]


def test_tensorboard_is_open_when_it_reports_that(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    shown.open()
    assert (shown.view.tensorboard.state, shown.showing.link) == ("starting", "")
    shown.says(Phase.RUNNING, ports={"main": 7}, program_pid=9, yields={"AT": "0.0.0.0:7"})
    assert (shown.view.tensorboard.state, shown.view.tensorboard.host, shown.view.tensorboard.port) == ("open", "h1", 7)
    assert shown.showing.link.startswith("http://h1:7/")
    assert shown.showing.token in shown.showing.link
    assert shown.showing.token not in str(shown.log)
    asyncio.run(shown.showing.open(shown.view))
    assert len([action for action in shown.done if isinstance(action, RequestContainers)]) == 1
    assert list(shown.view.tasks) == [TaskId("worker", 0)]


@pytest.mark.parametrize(("port", "ports"), [(0, "20000-30000"), (6006, "6006-6006")])
def test_tensorboard_has_the_port_that_is_chosen(tmp_path: Path, port: int, ports: str) -> None:
    shown = Shown(tmp_path, dataclasses.replace(JOB, board=Board(port=port), port_range="20000-30000"))
    shown.open()
    assert shown.showing.order_builder is not None
    assert shown.showing.order_builder.staged.job.port_range == ports


def test_the_end_of_tensorboard_is_recorded_and_does_not_touch_the_job(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    container = shown.open()
    shown.says(Phase.ENDED, ports={"main": 7}, exit=Exit("exit", 3, lines=("has no TensorBoard",)))
    assert ReleaseContainer(container.id) in shown.done
    assert not [action for action in shown.done if isinstance(action, (RecordEvent, Finish, Commit))]
    assert (shown.view.tensorboard.state, shown.view.tensorboard.detail) == ("ended", "has no TensorBoard")
    assert not shown.view.state.ended
    shown.applies(Allocated(4.0, Container("c2", "n1", "tensorboard")))
    assert shown.done[-1] == ReleaseContainer("c2")


def test_tensorboard_is_stopped_on_demand_and_can_be_started_again(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    shown.open()
    shown.showing.close("me")
    status = Status(task="tensorboard:0", attempt=1, epoch=1, sequence=9, phase=Phase.RUNNING, host="h1", pid=5)
    orders = asyncio.run(shown.showing.heartbeat(status, 0.0))
    assert orders is not None
    assert orders.goal is Goal.STOP
    shown._sequence = 9
    shown.says(Phase.ENDED, exit=Exit("stopped"))
    assert shown.view.tensorboard.detail == "cancelled by me"
    assert asyncio.run(shown.showing.heartbeat(status, 0.0)) is None
    asyncio.run(shown.showing.open(shown.view))
    shown.applies(Allocated(5.0, Container("c2", "n1", "tensorboard")))
    launched = [action for action in shown.done if isinstance(action, LaunchTask)]
    assert [action.attempt for action in launched] == [1, 2]


def test_the_executor_of_an_earlier_master_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    container = shown.open()
    status = Status(task="tensorboard:0", attempt=1, epoch=1, sequence=9, phase=Phase.RUNNING, host="h0", pid=4)
    own, other = (dataclasses.replace(status, container=name) for name in (container.id, "c0"))
    assert asyncio.run(shown.showing.heartbeat(other, 0.0)) is None
    assert asyncio.run(shown.showing.heartbeat(own, 0.0)) is not None


def test_names_and_places(tmp_path: Path) -> None:
    own = dataclasses.replace(JOB, roles={"tensorboard": Role("t")})
    assert list(with_tensorboard_role(StagedJob(own, "hdfs://n")).job.roles) == ["tensorboard", "howdah-tensorboard"]
    where = [
        resolve_event_dir(JobSpec({}, board=board), "job-1", "hdfs://n/jobs/job-1").board.path
        for board in (Board(), Board(local="logs"), Board("hdfs://n/{job}"), Board("file:///b/%7Bjob%7D"))
    ]
    assert where == ["", "hdfs://n/jobs/job-1/board", "hdfs://n/job-1", "file:///b/job-1"]
