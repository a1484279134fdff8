"""Finds the task of one job that a container, a process or a GPU belongs to. Pure."""

from __future__ import annotations

import re

from howdah.api import schemas
from howdah.api.serializers import ranks
from howdah.spec import TaskId
from howdah.spec.attempt import AttemptView
from howdah.spec.view import JobView, TaskView

GPU = re.compile(r"(?P<host>.+)/gpu(?P<gpu>[A-Za-z0-9-]+)")
PROCESS = re.compile(r"(?P<host>.+):(?P<pid>\d{1,10})")


def trace(view: JobView, of: str) -> schemas.TraceResult | None:
    """Return the task that `of` belongs to: a container (of any attempt), `host:pid` of a running program, `host/gpu3`,
    or a host on which a single task of the job runs. Return None if there is no such task."""
    for task in view.tasks.values():
        for attempt in reversed(task.attempts):
            if of == attempt.container:
                return describe(view, str(task.id), attempt.attempt, attempt)
    programs = [(each, task.id) for task in view.tasks.values() for each in task.attempts if _is_process(each, of)]
    if programs:  # several had this number one after the other: take the latest
        latest, task_id = max(programs, key=lambda program: program[0].running)
        return describe(view, str(task_id), latest.attempt, latest)
    owners = [task for task in view.tasks.values() if _matches_place(task, of)]
    return describe(view, str(owners[0].id), owners[0].attempt) if len(owners) == 1 else None


def describe(view: JobView, task: str, attempt: int, found: AttemptView | None = None) -> schemas.TraceResult:
    """Return the answer about an attempt of a task of the job, or about the job alone if `task` is "". `found` is the
    try in question, None for the latest try of the attempt."""
    id_ = TaskId.parse(task) if task else None
    known = view.tasks.get(id_) if id_ else None
    if found is None and known is not None:
        found = next((each for each in reversed(known.attempts) if each.attempt == attempt), None)
    found = found or AttemptView(attempt)
    gpus = found.gpus or tuple(gpu.id for gpu in (known.usage.gpus if known and known.attempt == attempt else ()))
    return {
        "job": view.id,
        "name": view.job.name if view.job else "",
        "state": view.state.value,
        "user": view.user,
        "queue": view.job.queue if view.job else "",
        "engine": view.engine,
        "task": task,
        "role": id_.role if id_ else "",
        "index": id_.index if id_ else 0,
        "rank": ranks(view).get(id_) if id_ else None,
        "attempt": attempt,
        "host": found.host or found.node,
        "container": found.container,
        "engine_facts": dict(found.engine_facts),
        "pid": found.pid,
        "gpus": list(gpus),
        "since": found.running or found.launched,
        "until": found.finished,
        "url": f"./#/jobs/{view.id}" + (f"/tasks/{task}" if task else ""),
    }


def _matches_place(task: TaskView, of: str) -> bool:
    hosts = {task.host, task.node, task.node.partition(":")[0]} - {""}
    if of in hosts:
        return not task.state.ended
    gpu = GPU.fullmatch(of)
    assigned = task.attempts[-1].gpus if task.attempts else ()
    devices = {*assigned, *(each.id for each in task.usage.gpus)}
    return gpu is not None and gpu["host"] in hosts and gpu["gpu"] in devices


def _is_process(attempt: AttemptView, of: str) -> bool:
    """Return whether `of`, as `host:pid`, is the program of this try."""
    process, hosts = PROCESS.fullmatch(of), {attempt.host, attempt.node, attempt.node.partition(":")[0]} - {""}
    return process is not None and process["host"] in hosts and 0 < attempt.pid == int(process["pid"])
