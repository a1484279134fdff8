"""From a container, a process or a GPU back to the task that had it, within one job. Pure."""

from __future__ import annotations

import re

from howdah.spec.view import JobView, TaskView
from howdah.web import shapes

GPU = re.compile(r"(?P<host>.+)/gpu(?P<gpu>[A-Za-z0-9-]+)")
PROCESS = re.compile(r"(?P<host>.+):(?P<pid>\d+)")


def trace(view: JobView, of: str) -> shapes.Traced | None:
    """Whose `of` is: a container (of any attempt), `host:pid` of a program that runs, `host/gpu3`, or a host on
    which a single task of the job runs."""
    for task in view.tasks.values():
        for attempt in reversed(task.attempts):
            if of == attempt.container:
                return _found(view, task, attempt.attempt)
    here = [task for task in view.tasks.values() if _has(task, of)]
    return _found(view, here[0], here[0].attempt) if len(here) == 1 else None


def _has(task: TaskView, of: str) -> bool:
    places = {task.host, task.node, task.node.partition(":")[0]} - {""}
    if of in places:
        return not task.state.ended
    if gpu := GPU.fullmatch(of):
        return gpu["host"] in places and gpu["gpu"] in {each.id for each in task.gpus}
    process = PROCESS.fullmatch(of)
    return process is not None and process["host"] in places and task.pid > 0 and int(process["pid"]) == task.pid


def _found(view: JobView, task: TaskView, attempt: int) -> shapes.Traced:
    return {"job": view.id, "task": str(task.id), "attempt": attempt, "url": f"./#/jobs/{view.id}/tasks/{task.id}"}
