"""Builds the view of a job of two workers, whose samples tests choose."""

from __future__ import annotations

from howdah.spec import JobSpec, Resources, Role, TaskId
from howdah.spec.events import JobStarted, Started, Used, WorldFormed
from howdah.spec.fold import fold
from howdah.spec.usage import Usage
from howdah.spec.view import JobView


def running_job(name: str = "job", **used: object) -> JobView:
    """Return the view of a job whose two workers began at second 100 and were sampled at second 200."""
    job = JobSpec({"worker": Role("true", 2, Resources(memory_mib=8192, vcores=8))}, name=name)
    view = fold([JobStarted(90.0, "local-1", "local", "me", job), WorldFormed(99.0, 1)])
    for index in range(2):
        task = TaskId("worker", index)
        fold([Started(100.0, task, 1, 1, 4711), Used(200.0, task, Usage(**used))], view)  # type: ignore[arg-type]
    return view
