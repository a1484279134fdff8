"""Tests that spare containers replace lost ones, and that an elastic gang starts with fewer tasks and grows again."""

from __future__ import annotations

import pytest

from howdah.master.decisions import elasticity as seats
from howdah.master.decisions.actions import (
    LaunchTask,
    RecordEvent,
    RequestContainers,
)
from howdah.spec import Checkpoint, Exit, JobSpec, Role, State, TaskId, Timeouts
from howdah.spec.events import CheckpointFound, ContainerEnded, GangReleased, Resized
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


def start_smaller(gang: Gang) -> None:
    """Start two of three workers, the last of which was not granted in `timeouts.hold`."""
    gang.grant("worker")
    gang.grant("worker")
    gang.wait(21)
    for index in range(2):
        gang.join(f"worker:{index}")
    gang.feed(CheckpointFound(gang.now, (gang.state.epoch,)))
    gang.wait(1)


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
    def test_a_gang_forms_with_fewer_tasks_after_a_wait(self) -> None:
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

    def test_a_gang_does_not_form_with_less_than_its_least(self) -> None:
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
        start_smaller(gang)
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

    def test_it_does_not_grow_once_the_chief_has_ended_well(self) -> None:
        """The chief would start again."""
        timeouts = Timeouts(hold_s=20, grace_s=600)
        role, checkpoint = Role("w", replicas=3, min_replicas=2), Checkpoint(path="/checkpoints")
        gang = Gang(JobSpec({"worker": role}, success="chief", checkpoint=checkpoint, timeouts=timeouts))
        start_smaller(gang)
        gang.grant("worker")
        gang.say("worker:2", Phase.HELLO, epoch=0)
        gang.run("worker:0")
        gang.run("worker:1")
        gang.end("worker:0")
        for _ in range(10):
            gang.wait(8)
            gang.run("worker:1")
            gang.say("worker:2", Phase.HELLO)
        assert gang.state.tasks[W1].live
        assert [event.replicas for event in gang.recorded(Resized)] == [2]

    def test_bad_numbers_are_refused(self) -> None:
        for role, words in (
            (Role("w", min_replicas=2), "must be 0 to 1"),
            (Role("w", spares=-1), "must be at least 0"),
        ):
            assert words in str(find_mistakes(JobSpec(roles={"worker": role}))[0])
        alone = JobSpec(roles={"worker": Role("w", spares=1)}, gang=False)
        assert "gang: false" in str(find_mistakes(alone)[0])
