"""One table of scenarios for every engine: programs that fail, killed processes, lost nodes, preemption, `howdah
cancel`, and elastic growth.

The differences between engines are in `clusters`. Each engine runs the table in a separate file, so that the files run
at the same time.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from clusters import CLUSTERS, HOWDAH, Cluster, ScenarioJob, read
from entered_task import a_user_enters_a_task
from submitted_job import LIMIT_S, until

from howdah.spec import State, TaskId
from howdah.spec.events import Ended, GangRestarted, Launched, Resized, TookOver


def a_program_fails(cluster: Cluster, base: Path) -> None:
    line = 'echo no such layer >&2; [ "$HOWDAH_INDEX" != 1 ] || exit 3; sleep 600'
    job = ScenarioJob(cluster, base, line, {"replicas": 2})
    report = job.ended()
    assert report.state is State.FAILED
    assert f"worker:1 on {job.node_of(1)}" in report.diagnostics
    assert "exit code 3" in report.diagnostics
    (exit,) = (event.exit for event in job.of(Ended) if event.task == TaskId("worker", 1))
    assert (exit.cause, exit.code, exit.lines) == ("exit", 3, ("no such layer",))
    nothing_is_left(cluster, job)


def a_killed_program(cluster: Cluster, base: Path) -> None:
    """The gang starts again as often as the job allows, and no more."""
    job = ScenarioJob(cluster, base, role={"replicas": 2}, retries=1)
    job.wait_started(0), job.wait_started(1)
    os.kill(job.program(0), signal.SIGKILL)
    job.wait_started(0, 2), job.wait_started(1, 2)
    os.kill(job.program(1), signal.SIGKILL)
    report = job.ended()
    assert report.state is State.FAILED
    assert "killed by SIGKILL (9)" in report.diagnostics
    assert not job.has_started(0, 3)
    nothing_is_left(cluster, job)


def a_killed_executor(cluster: Cluster, base: Path) -> None:
    job = ScenarioJob(cluster, base, role={"replicas": 2, "on_failure": "restart"})
    job.wait_started(0), job.wait_started(1)
    first, other = job.program(0), job.program(1)
    os.kill(job.executor(0), signal.SIGKILL)
    job.wait_started(0, 2)
    until(lambda: not read(first, "cmdline"), "the end of what the killed executor ran")
    assert read(other, "cmdline"), "the other task was to run on"
    assert job.finish().state is State.SUCCEEDED
    assert not job.has_started(1, 2)
    nothing_is_left(cluster, job)


def a_killed_master(cluster: Cluster, base: Path) -> None:
    """The next one takes over, and the programs do not notice."""
    job = ScenarioJob(cluster, base, role={"replicas": 2})
    job.wait_started(0), job.wait_started(1)
    programs = [job.program(index) for index in (0, 1)]
    cluster.wait_counted(job)
    os.kill(job.master(), signal.SIGKILL)
    until(lambda: job.of(TookOver), "the next master")
    assert [job.program(index) for index in (0, 1)] == programs
    assert job.finish().state is State.SUCCEEDED
    assert [each.attempt for each in job.of(Launched)] == [1, 1], "taking over restarts nothing"
    nothing_is_left(cluster, job)


def a_lost_node(cluster: Cluster, base: Path) -> None:
    role = {"replicas": 2, "on_failure": "restart", "resources": cluster.room}
    job = ScenarioJob(cluster, base, role=role)
    job.wait_started(0), job.wait_started(1)
    nodes = [job.node_of(index) for index in (0, 1)]
    lost = next(index for index in (0, 1) if not cluster.is_beside_master(job, nodes[index]))
    cluster.lose(nodes[lost])
    try:
        until(lambda: [event for event in job.of(Ended) if event.task == TaskId("worker", lost)], "the loss")
        if cluster.places > 2:
            job.wait_started(lost, 2)
            assert job.node_of(lost) not in nodes
    finally:
        cluster.restore(nodes[lost])
    job.wait_started(lost, 2)
    assert job.finish().state is State.SUCCEEDED
    assert not job.has_started(1 - lost, 2), "the other task was to run on"


def preempted(cluster: Cluster, base: Path) -> None:
    """A preemption uses up none of the job's retries, and ends nothing."""
    role = {"replicas": cluster.places, "resources": cluster.room}
    job = ScenarioJob(cluster, base, role=role, queue=cluster.low_queue, retries=1)
    for index in range(cluster.places):
        job.wait_started(index)
    cluster.preempt(job)
    for index in range(cluster.places):
        job.wait_started(index, 2)
    told = " ".join(map(str, job.events))
    assert "preempt" in told
    assert "retry 1 of 1" not in " ".join(str(each.reason) for each in job.of(GangRestarted))
    assert job.finish().state is State.SUCCEEDED


def cancelled(cluster: Cluster, base: Path) -> None:
    line = "trap '' TERM; touch {0}-$HOWDAH_INDEX-1; (setsid sleep 600 &); while :; do sleep 0.2; done"
    job = ScenarioJob(cluster, base, line.format(base / "stubborn"), {"replicas": 2})
    until(lambda: all((base / f"stubborn-{index}-1").exists() for index in (0, 1)), "the programs")
    subprocess.run([HOWDAH, "cancel", job.id], check=True, timeout=LIMIT_S, capture_output=True)
    report = job.ended()
    assert report.state is State.CANCELLED
    assert "cancelled by " in report.diagnostics
    nothing_is_left(cluster, job)


def nothing_is_left(cluster: Cluster, job: ScenarioJob) -> None:
    until(lambda: not job.left(), f"the end of all processes of {job.id}")
    until(lambda: not cluster.remains(job), f"the removal of all files of {job.id}")


SCENARIOS: dict[str, Callable[[Cluster, Path], None]] = {
    "a program fails": a_program_fails,
    "a killed program": a_killed_program,
    "a killed executor": a_killed_executor,
    "a killed master": a_killed_master,
    "a lost node": a_lost_node,
    "preempted": preempted,
    "cancelled": cancelled,
    "a user enters a task": a_user_enters_a_task,
}
GROWTH = "elastic growth"


@pytest.mark.timeout(900, func_only=True)  # the first one may have to wait until Kubernetes is built
class Scenarios:
    """The tests of one engine: a subclass sets its name."""

    name: ClassVar[str]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "what" in metafunc.fixturenames:
            table = [what for what in SCENARIOS if what not in CLUSTERS[self.name].lacks]
            metafunc.parametrize("what", table, ids=[f"{self.name}: {what}" for what in table])

    @pytest.fixture(scope="class")
    @classmethod
    def cluster(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
        return CLUSTERS[cls.name](request, tmp_path_factory.mktemp(cls.name))

    def test_scenario(self, what: str, cluster: Cluster, tmp_path: Path) -> None:
        with cluster.active():
            try:
                SCENARIOS[what](cluster, tmp_path)
            finally:
                cancel_all(cluster)


class GrowingScenarios(Scenarios):
    """The tests of an engine on which jobs grow. A gang grows only after it has run for a minute."""

    @pytest.fixture(scope="class")
    @classmethod
    def growing(cls, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScenarioJob]:
        """Start an elastic job with fewer tasks than it asks for, and give it room."""
        with cluster.active():
            try:
                yield cluster.start_smaller(tmp_path_factory.mktemp("elastic"))
            finally:
                cancel_all(cluster)

    def test_elastic_growth(self, cluster: Cluster, growing: ScenarioJob) -> None:
        """A role goes on with fewer tasks, and grows when there is room. It uses up no retry, and its executor lives
        on."""
        executor = growing.executor(0)
        until(
            lambda: [each.replicas for each in growing.of(Resized)] == [1, 2],
            "growth",
            lambda: "\n".join([*map(str, growing.events), cluster.situation()]),
        )
        growing.program(1)
        assert growing.executor(0) == executor
        assert growing.finish().state is State.SUCCEEDED


def cancel_all(cluster: Cluster) -> None:
    """End jobs that a failed scenario has left, so that they do not block others."""
    engine = cluster.engine()
    for report in engine.describe():
        if not report.state.ended:
            engine.cancel(report.id)
