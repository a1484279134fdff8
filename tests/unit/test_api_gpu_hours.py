"""Tests the GPU hours that a job's containers have held."""

from __future__ import annotations

import pytest

from howdah.api.gpu_hours import gpu_hours
from howdah.spec import Container, Exit, JobSpec, Outcome, Resources, Role, State, TaskId
from howdah.spec.events import Ended, Event, JobFinished, JobStarted, Launched, Started, WorldFormed
from howdah.spec.fold import fold

CHIEF, WORKER = TaskId("chief", 0), TaskId("worker", 0)
SPEC = JobSpec(roles={"chief": Role("c"), "worker": Role("w", resources=Resources(gpus=4))})
BEGUN: list[Event] = [
    JobStarted(100.0, "job-1", "yarn", "alice", SPEC),
    Launched(200.0, CHIEF, 1, Container("c1", "n1", "chief")),
    Launched(200.0, WORKER, 1, Container("c2", "n2", "worker")),
]


def test_gpus_count_from_the_launch_of_their_container_to_now() -> None:
    assert gpu_hours(fold(BEGUN), 200.0 + 1800) == pytest.approx(4 * 0.5)
    assert gpu_hours(fold(BEGUN[:1]), 5000.0) == 0.0


def test_starts_of_a_program_in_one_container_count_once() -> None:
    again = [
        WorldFormed(210.0, 1),
        Started(210.0, WORKER, 1, 1, 7),
        Ended(1100.0, WORKER, 1, 1, Exit("exit", 1)),
        WorldFormed(1200.0, 2),
        Started(1200.0, WORKER, 1, 2, 8),
    ]
    assert gpu_hours(fold([*BEGUN, *again]), 200.0 + 3600) == pytest.approx(4.0)


def test_containers_of_several_attempts_add_up_and_end_with_the_job() -> None:
    events = [
        *BEGUN,
        Ended(200.0 + 900, WORKER, 1, 1, Exit("exit", 1)),
        Launched(2000.0, WORKER, 2, Container("c3", "n3", "worker")),
        JobFinished(2000.0 + 1800, Outcome(State.CANCELLED)),
    ]
    assert gpu_hours(fold(events), 9e9) == pytest.approx(4 * 0.75)
