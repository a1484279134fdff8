"""The REST calls of XLearning's application master, `/ws/…`, answered with their names from a job's view.

None of them changes anything: those that did there are answered with what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.spec import Resources, Role
from howdah.spec.view import JobView, TaskView

PREFIX = "/ws/"
_SERVERS = ("ps", "server")
_BESIDE = (*_SERVERS, "scheduler", "tracker", "tensorboard", "evaluator")


def answer(view: JobView, path: str, board: str = "") -> tuple[int, Any]:
    """Status, and the JSON value of a call; with a status that isn't 200 a sentence for people. `board` is the address
    of the job's TensorBoard."""
    if path == "/ws/app/boardUrl":
        return 200, _board(view, board)
    fixed = {
        "/ws/app": _app,
        "/ws/containers": _containers,
        "/ws/app/evaluator": _evaluator,
    }
    if path in fixed:
        return 200, fixed[path](view)
    if path == "/ws/app/savemodel":
        return 405, f"nothing is changed by looking: `howdah save {view.id}` saves what the tasks have made so far"
    if path.startswith("/ws/app/signal/"):
        return 405, f"nothing is changed by looking: `howdah cancel {view.id}` ends the job"
    return _one(view, path) if path.startswith("/ws/containers/") else (404, f"nothing answers GET {path}")


def _app(view: JobView) -> Mapping[str, Any]:
    roles = view.job.roles if view.job else {}
    workers = {name: role for name, role in roles.items() if name not in _BESIDE}
    servers = {name: role for name, role in roles.items() if name in _SERVERS}
    return {
        "appId": view.id,
        "appType": view.job.application_type if view.job else "",
        "appUser": view.user,
        **_sizes("worker", workers),
        **_sizes("ps", servers),
    }


def _sizes(name: str, roles: Mapping[str, Role]) -> Mapping[str, int]:
    """Those of the last role, which is not the chief where there are others."""
    size = [role.resources for role in roles.values()][-1] if roles else Resources(0, 0)
    return {
        f"{name}Num": sum(role.replicas for role in roles.values()),
        f"{name}Mem": size.memory_mib,
        f"{name}VCores": size.vcores,
        f"{name}GCores": size.gpus,
    }


def _containers(view: JobView) -> list[Mapping[str, Any]]:
    return [_container(view, task) for task in view.tasks.values() if task.container]


def _container(view: JobView, task: TaskView) -> Mapping[str, Any]:
    gpus = view.job.roles[task.id.role].resources.gpus if view.job else 0
    return {"cid": task.container, "startTime": int(task.started * 1000), "status": task.state.value, "gpu": str(gpus)}


def _one(view: JobView, path: str) -> tuple[int, Any]:
    wanted, _, stream = path.removeprefix("/ws/containers/").partition("/")
    task = next((each for each in view.tasks.values() if each.container == wanted), None)
    if task is None:
        return 404, f"no container {wanted}"
    if stream:
        return 404, f"what a task prints is not on this page: `howdah logs {view.id} {task.id}`"
    return 200, _container(view, task)


def _evaluator(view: JobView) -> Mapping[str, str]:
    found = (task.container for task in view.tasks.values() if task.id.role == "evaluator")
    return {"evaluator": next(found, "")}


def _board(view: JobView, board: str) -> Mapping[str, str]:
    """Empty until it listens."""
    if board:
        return {"boardUrl": board}
    boards = [task for task in view.tasks.values() if task.id.role == "tensorboard" and task.ports and task.pid]
    return {"boardUrl": f"http://{boards[0].host}:{boards[0].ports['main']}" if boards else ""}
