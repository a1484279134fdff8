"""Containers that change hands, gangs of other sizes, and nodes against which something is held."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from howdah.engines import node_penalties
from howdah.master.decisions import elasticity as seats
from howdah.master.decisions.actions import (
    LaunchTask,
    NoteNodeFailures,
    RecordEvent,
    ReleaseContainer,
    RequestContainers,
)
from howdah.spec import Checkpoint, Container, Exit, JobSpec, Role, State, TaskId, Timeouts
from howdah.spec.events import Allocated, CheckpointFound, ContainerEnded, GangReleased, GangRestarted, Noted, Resized
from howdah.spec.fold import fold
from howdah.spec.validation import find_mistakes
from howdah.testing import Gang
from howdah.wire.messages import Phase

LOST = Exit("signal", signal=9)
W1, W2 = TaskId("worker", 1), TaskId("worker", 2)


def gang_of(role: Role, **job: object) -> Gang:
    return Gang(JobSpec(roles={"worker": role}, retries=3, timeouts=Timeouts(hold_s=20), **job))  # type: ignore[arg-type]


def start(gang: Gang, count: int) -> None:
    for _ in range(count):
        gang.grant("worker")
    for index in range(count):
        gang.join(f"worker:{index}")
    for index in range(count):
        gang.run(f"worker:{index}")


def lose(gang: Gang, task: TaskId) -> None:
    container = gang.state.tasks[task].container
    assert container is not None
    gang.feed(ContainerEnded(gang.now, container.id, LOST))


class TestSpares:
    def test_they_are_asked_for_once_the_gang_runs(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        assert [(ask.count, ask.preferences.spare) for ask in gang.actions_of(RequestContainers)] == [(2, False)]
        start(gang, 2)
        gang.wait(1)
        assert [(ask.count, ask.preferences.spare) for ask in gang.actions_of(RequestContainers)] == [
            (2, False),
            (1, True),
        ]
        gang.grant("worker")
        gang.wait(1)
        assert len(gang.actions_of(RequestContainers)) == 2
        assert gang.actions_of(LaunchTask)[-1].task == W2

    def test_one_takes_the_place_of_a_lost_container(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        start(gang, 2)
        gang.wait(1)
        spare = gang.grant("worker")
        gang.say("worker:2", Phase.HELLO, epoch=0)
        launched = len(gang.actions_of(LaunchTask))
        lose(gang, W1)
        taken = gang.state.tasks[W1]
        assert (taken.container, taken.attempt) == (spare, 2)
        assert gang.state.reassigned_to == {"worker:2/1": "worker:1/2"}
        assert gang.state.launch_attempt_of == {"worker:1/2": "worker:2/1"}
        assert len(gang.actions_of(LaunchTask)) == launched
        view = fold(action.event for action in gang.actions_of(RecordEvent))
        assert (view.tasks[W1].container, view.tasks[W2].container) == (spare.id, "")
        assert (view.takes_part(W1), view.takes_part(W2)) == (True, False)

    def test_a_container_that_changes_hands_twice_is_still_that_of_its_first_attempt(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        start(gang, 2)
        gang.wait(1)
        gang.grant("worker")
        for giver, taker in ((W2, W1), (W1, W2)):
            seats.reassign_container(gang.state, gang.state.tasks[giver], gang.state.tasks[taker], gang.now, gang.did)
        assert gang.state.reassigned_to == {"worker:2/1": "worker:1/2", "worker:1/2": "worker:2/2"}
        assert gang.state.launch_attempt_of == {"worker:1/2": "worker:2/1", "worker:2/2": "worker:2/1"}

    def test_a_lost_spare_is_replaced_and_costs_nothing(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        start(gang, 2)
        gang.wait(1)
        gang.grant("worker")
        lose(gang, W2)
        gang.wait(1)
        assert gang.actions_of(RequestContainers)[-1].count == 1
        assert (gang.state.retries_used, gang.state.epoch) == (0, 1)

    def test_no_more_than_ten_lost_ones_are_replaced(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        start(gang, 2)
        gang.wait(0.1)
        for _ in range(seats.MAX_LOST):
            assert gang.actions_of(RequestContainers)[-1].count == 1
            gang.grant("worker")
            lose(gang, W2)
            gang.wait(0.1)
        asked = len(gang.actions_of(RequestContainers))
        gang.wait(0.1)
        assert len(gang.actions_of(RequestContainers)) == asked
        assert W2 not in gang.state.spares.get("worker", {})

    def test_the_job_does_not_wait_for_them(self) -> None:
        gang = gang_of(Role("w", replicas=1, spares=1))
        start(gang, 1)
        gang.wait(1)
        gang.grant("worker")
        gang.end("worker:0")
        assert gang.state.outcome is not None
        assert gang.state.outcome.state is State.SUCCEEDED

    def test_what_was_decided_survives_the_master(self) -> None:
        gang = gang_of(Role("w", replicas=2, spares=1))
        start(gang, 2)
        gang.wait(1)
        gang.grant("worker")
        gang.say("worker:2", Phase.HELLO, epoch=0)
        lose(gang, W1)
        moves, seats = gang.state.reassigned_to, gang.state.launch_attempt_of
        gang.take_over()
        assert (gang.state.reassigned_to, gang.state.launch_attempt_of) == (moves, seats)


class TestSizes:
    def test_it_goes_on_with_fewer(self) -> None:
        gang = gang_of(Role("w", replicas=4, min_replicas=2))
        for _ in range(3):
            gang.grant("worker")
        gang.wait(21)
        assert gang.state.job.roles["worker"].replicas == 3
        assert [event.replicas for event in gang.recorded(Resized)] == [3]
        for index in range(3):
            gang.join(f"worker:{index}")
        world = gang.state.tasks[TaskId("worker", 0)].world
        assert world is not None
        assert len(world.members) == 3

    def test_but_not_with_too_few(self) -> None:
        gang = gang_of(Role("w", replicas=4, min_replicas=2))
        gang.grant("worker")
        gang.wait(21)
        assert gang.recorded(Resized) == []
        assert gang.recorded(GangReleased) != []

    def test_numbers_stay_without_gaps(self) -> None:
        gang = gang_of(Role("w", replicas=3, min_replicas=2))
        start(gang, 3)
        last = gang.state.tasks[W2].container
        lose(gang, W1)
        gang.wait(21)
        assert gang.state.tasks[W1].container == last
        assert gang.state.reassigned_to["worker:2/1"] == "worker:1/2"
        assert gang.state.reassigned_to["worker:0/1"] == "worker:0/2"  # its part of the data is another now
        assert not gang.state.takes_part(W2)

    @pytest.mark.parametrize("checkpoint", ["", "/checkpoints"])
    def test_it_grows_back_only_from_a_checkpoint(self, checkpoint: str) -> None:
        gang = gang_of(Role("w", replicas=3, min_replicas=2), checkpoint=Checkpoint(path=checkpoint))
        gang.grant("worker")
        gang.grant("worker")
        gang.wait(21)
        for index in range(2):
            gang.join(f"worker:{index}")
        gang.feed(CheckpointFound(gang.now, (gang.state.epoch,)))
        gang.wait(1)
        assert gang.actions_of(RequestContainers)[-1].count == (1 if checkpoint else 0)
        if checkpoint:
            gang.grant("worker")
            gang.say("worker:2", Phase.HELLO, epoch=0)
            for _ in range(8):
                assert len(gang.recorded(Resized)) == 1  # its programs would start again
                gang.wait(8)
                for index in range(3):
                    gang.say(f"worker:{index}", Phase.RUNNING if index < 2 else Phase.HELLO)
            assert [event.replicas for event in gang.recorded(Resized)] == [2, 3]

    def test_bad_numbers_are_refused(self) -> None:
        for role, words in (
            (Role("w", min_replicas=2), "must be 0 to 1"),
            (Role("w", spares=-1), "must be at least 0"),
        ):
            assert words in str(find_mistakes(JobSpec(roles={"worker": role}))[0])
        alone = JobSpec(roles={"worker": Role("w", spares=1)}, gang=False)
        assert "gang: false" in str(find_mistakes(alone)[0])


class TestStrikes:
    def test_they_count_for_less_with_time(self) -> None:
        held = node_penalties.penalties_by_node(
            [("a", 0.0), ("a", node_penalties.HALF_LIFE_S), ("b", 9e9)], node_penalties.HALF_LIFE_S
        )
        assert held == {"a": 1.5, "b": 1.0}

    def test_jobs_tell_each_other_by_files(self, tmp_path: Path) -> None:
        home, now = tmp_path.as_uri(), time.time()
        for job in ("job-1", "job-2"):
            node_penalties.write_penalties(node_penalties.WritePenaltiesRequest(home, job, (("node7", now),)))
        (tmp_path / "strikes" / "broken.json").write_text("[[")
        old = tmp_path / "strikes" / "old.json"
        old.write_text(json.dumps([["node1", 0]]))
        os.utime(old, (0, 0))
        assert node_penalties.read_penalties(home, now) == {"node7": 2.0}
        assert not old.exists()
        assert node_penalties.read_penalties((tmp_path / "none").as_uri(), now) == {}

    def test_a_gpu_that_failed_costs_no_retry_and_is_left(self) -> None:
        gang = gang_of(Role("w", replicas=2))
        gang.state.preflight.has_other_nodes = True
        start(gang, 2)
        exit = Exit("gpu", code=1, detail="GPU 3: XID 79, it has fallen off the bus; exit code 1")
        gang.end("worker:1", exit)
        assert gang.state.retries_used == 0
        assert "worker:1 on node2: GPU 3: XID 79" in gang.recorded(GangRestarted)[-1].reason
        assert "not counted as a retry: node" in gang.recorded(GangRestarted)[-1].reason
        assert gang.actions_of(NoteNodeFailures)[-1].failures == (("node2", gang.now),)
        assert [one.container_id for one in gang.actions_of(ReleaseContainer)] == ["c2"]
        assert (
            gang.actions_of(RequestContainers)[-1].count,
            gang.actions_of(RequestContainers)[-1].preferences.avoid,
        ) == (
            1,
            ("node2",),
        )
        assert "node2 has a GPU that failed" in gang.recorded(Noted)[-1].text

    def test_a_gpu_that_failed_is_the_cause_of_what_its_peers_saw(self) -> None:
        gang = Gang(JobSpec(roles={"worker": Role("w", replicas=2)}))
        start(gang, 2)
        gang.end("worker:0", Exit("exit", code=1, lines=("connection reset",)))
        gang.end("worker:1", Exit("gpu", code=1, detail="GPU 3: XID 79"))
        assert gang.state.outcome is not None
        assert gang.state.outcome.diagnostics == "worker:1 on node2: GPU 3: XID 79"

    def test_a_role_may_see_it_otherwise(self) -> None:
        gang = gang_of(Role("w", replicas=2, causes={"XID 79": "user"}))
        start(gang, 2)
        gang.end("worker:1", Exit("gpu", code=1, detail="GPU 3: XID 79"))
        assert gang.state.outcome is not None
        assert not gang.actions_of(NoteNodeFailures)

    def test_a_node_to_blame_gets_no_more_tasks_and_is_forgiven_when_there_is_no_other(self) -> None:
        gang = gang_of(Role("w", replicas=2))
        gang.state.node_penalties["node1"] = 1.0
        for number in range(2):
            gang.feed(Allocated(gang.now, Container(f"c{number}", f"node{number}", "worker")))
        gang.feed(ContainerEnded(gang.now, "c1", Exit("lost", detail="node lost")))
        assert gang.actions_of(NoteNodeFailures)[-1].failures == (("node1", gang.now),)
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ("node1",)
        assert "node1 was to blame too often" in gang.recorded(Noted)[-1].text
        gang.say("worker:0", Phase.JOINED, ports={"main": 1})
        for _ in range(3):
            gang.wait(8)
            gang.say("worker:0", Phase.JOINED, ports={"main": 1})
        assert "node1 may have tasks again" in gang.recorded(Noted)[-1].text
        assert gang.actions_of(RequestContainers)[-1].preferences.avoid == ()
