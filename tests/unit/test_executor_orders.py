"""Tests what the orders to executors say of images and checkpoints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from howdah.frameworks import find
from howdah.master.decisions.executor_orders import OrderBuilder
from howdah.spec import Checkpoint, JobSpec, Resources, Role, StagedJob
from howdah.testing import Gang
from howdah.wire.messages import ImageCheck, ImageOrder

CHECK = ImageCheck(("DIRECTORIES",), "agent", "it is not used", "nothing is known")
JOB = JobSpec({"worker": Role("x", resources=Resources(256), image="tf:1", mounts=("/a:/b:ro",)), "ps": Role("y")})


def order(role: str, check: Callable[[JobSpec, str, str], ImageCheck | None] | None) -> ImageOrder | None:
    """Return the order that an executor of `role` gets on the host `n1`."""
    gang = Gang(JOB)
    staged = StagedJob(JOB, "file:///x", settings={"container_tool": "docker"})
    builder = OrderBuilder("job-1", staged, find("generic"), check)
    task = next(task for name, task in gang.state.tasks.items() if name.role == role)
    return builder.assignment(gang.state, task, "n1").image


def test_executors_run_the_image_themselves() -> None:
    assert order("worker", None) == ImageOrder("tf:1", ("/a:/b:ro",), "docker")
    assert order("ps", None) is None


def test_an_engine_that_runs_images_says_how_that_is_found_out() -> None:
    asked = []

    def check(job: JobSpec, role: str, host: str) -> ImageCheck:
        asked.append((role, host))
        return CHECK

    assert order("worker", check) == ImageOrder("tf:1", check=CHECK)
    assert asked == [("worker", "n1")]


def test_an_engine_that_never_starts_without_the_image_leaves_nothing_to_do() -> None:
    assert order("worker", lambda *_: None) is None


@pytest.mark.parametrize(
    ("tasks", "replicas", "alone"),
    [
        ("chief", 2, [True, False]),
        ("all", 2, []),
        ("worker", 2, []),
        ("worker", 1, [True]),
        ("worker:1", 2, [False, True]),
    ],
)
def test_a_task_is_told_whether_others_store_checkpoints_too(tasks: str, replicas: int, alone: list[bool]) -> None:
    job = JobSpec({"worker": Role("x", replicas=replicas)}, checkpoint=Checkpoint("file:///c", local="c", tasks=tasks))
    gang, builder = Gang(job), OrderBuilder("job-1", StagedJob(job, "file:///x"), find("generic"), None)
    orders = [builder.assignment(gang.state, task, "n1").checkpoint_sync for task in gang.state.tasks.values()]
    told = [order is not None and order.writes and order.is_alone for order in orders]
    assert told == (alone or [False] * replicas)
