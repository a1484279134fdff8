"""Answers the REST calls of XLearning's application master, `/ws/…`, in its form from a job's view.

GET changes nothing. Calls by which GET changed a job in XLearning need POST and an action's token here, and do the same
as an action of the API; the answer to GET says what to do instead.
"""

from __future__ import annotations

import re
import signal
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from howdah.api.errors import MethodNotAllowed
from howdah.api.http_server import Request
from howdah.api.response_cache import compact_json
from howdah.api.sources import JobSource
from howdah.errors import Conflict, NotFound
from howdah.spec import Resources, Role
from howdah.spec.view import JobView, TaskView

PREFIX = "/ws/"
TEXT, JSON, XML = "text/plain; charset=utf-8", "application/json", "application/xml"
LOG_BYTES = 1 << 20
"""The most bytes of a log's end that are sent; XLearning sent the output since the last call."""
_CONTAINERS, _SAVE, _SIGNAL = "/ws/containers/", "/ws/app/savemodel", "/ws/app/signal/"
_SERVERS = ("ps", "server")
_BESIDE = (*_SERVERS, "scheduler", "tracker", "tensorboard", "evaluator")
_ENDING = tuple(str(int(each)) for each in (signal.SIGINT, signal.SIGKILL, signal.SIGTERM))
# The XML element around each answer, by the last word of its path; all other answers are one container.
_ROOTS = {"app": "info", "containers": "containerInfo", "savemodel": "outputInfo"}


async def answer_get(job: JobSource, request: Request) -> tuple[str, bytes]:
    """Return content type and body of a GET.

    Raises:
        RequestRefused: nothing answers it, or it would change something; says what to do.
    """
    container, _, stream = request.path.removeprefix(_CONTAINERS).partition("/")
    if request.path.startswith(_CONTAINERS) and stream in ("stdout", "stderr"):
        chunk = await job.log(_task(job.view, container).id, stream, 0, -LOG_BYTES, LOG_BYTES)
        return TEXT, chunk.text.encode("latin-1")
    return _encode_answer(answer(job.view, request.path, job.tensorboard_url()), request)


async def answer_post(job: JobSource, request: Request) -> tuple[str, bytes]:
    """Return content type and body of a POST by a caller who may act.

    Raises:
        RequestRefused: as the action it stands for, or nothing is changed by this call.
    """
    if request.path == _SAVE:
        begun = {number for _, number in (await job.act("save", {}))["saves"]}
        snapshots = [save.uri for save in job.view.snapshots if save.number in begun]
        return _encode_answer({"outputInfos": snapshots}, request)
    if request.path.startswith(_SIGNAL):
        number = request.path.removeprefix(_SIGNAL)
        if number not in _ENDING:
            raise Conflict(_no_signal(job.view, number))
        await job.act("cancel", {})
        return TEXT, b"SUCCEED"
    raise MethodNotAllowed(f"nothing is changed by {request.method} {request.path}")


def answer(view: JobView, path: str, tensorboard_url: str = "") -> Any:
    """Return the answer to a GET: a text, or a value that becomes JSON or XML. `tensorboard_url` is the address of the
    job's TensorBoard.

    Raises:
        RequestRefused: nothing answers it, or it would change something; says what to do.
    """
    if path == "/ws/app/boardUrl":
        return _tensorboard_address(view, tensorboard_url)
    if path == "/ws/app":
        return _app(view)
    if path == "/ws/containers":
        return {"containerInfos": [_container(view, task) for task in view.tasks.values() if task.container]}
    if path == "/ws/app/evaluator":
        return next((task.container for task in view.tasks.values() if task.id.role == "evaluator"), "")
    if path == _SAVE:
        raise MethodNotAllowed(_how_to_change(view, "save"))
    if path.startswith(_SIGNAL):
        number = path.removeprefix(_SIGNAL)
        raise MethodNotAllowed(_how_to_change(view, "cancel") if number in _ENDING else _no_signal(view, number))
    if path.startswith(_CONTAINERS):
        return _container(view, _task(view, path.removeprefix(_CONTAINERS)))
    raise NotFound(f"nothing answers GET {path}")


def _how_to_change(view: JobView, command: str) -> str:
    link = f"POST it with the token of `howdah page {view.id}`"
    return f"nothing is changed by looking: {link}, or `howdah {command} {view.id}`"


def _no_signal(view: JobView, number: str) -> str:
    ends = f"{', '.join(_ENDING)} end the job, as `howdah cancel {view.id}` does"
    return f"signal {number[:20]} is sent to no program: {ends}; `howdah stacks {view.id}` shows where the programs are"


def _encode_answer(value: Any, request: Request) -> tuple[str, bytes]:
    if isinstance(value, str):
        return TEXT, value.encode()
    if not _wants_xml(request.headers.get("accept", "")):
        return JSON, compact_json(value)
    root = ET.Element(_ROOTS.get(request.path.rpartition("/")[2], "containerInfo"))
    _fill(root, value)
    return XML, ET.tostring(root, encoding="utf-8", xml_declaration=True)


def _wants_xml(accept: str) -> bool:
    """Return whether XML comes before JSON, by weight and then by order; a caller without a preference gets JSON."""
    ranks: dict[str, tuple[float, int]] = {}
    for place, entry in enumerate(accept.split(",")):
        kind, _, parameters = entry.strip().partition(";")
        weight = re.fullmatch(r"\s*q=([01](?:\.[0-9]{0,3})?).*", parameters)
        ranks.setdefault(kind.strip().lower(), (-float(weight[1]) if weight else -1.0, place))
    lowest = (0.0, 0)
    other = min(ranks.get(JSON, lowest), ranks.get("*/*", lowest))
    return ranks.get(XML, lowest) < other


def _fill(element: ET.Element, value: Mapping[str, Any]) -> None:
    """Add a value to an element; a list repeats its element."""
    for name, found in value.items():
        for each in found if isinstance(found, list) else [found]:
            child = ET.SubElement(element, name)
            if isinstance(each, Mapping):
                _fill(child, each)
            else:
                child.text = str(each)


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


def _sizes(name: str, roles: Mapping[str, Role]) -> Mapping[str, Any]:
    """Return the sizes of the last role, which is not the chief if there are others; memory is a text, as it was."""
    size = [role.resources for role in roles.values()][-1] if roles else Resources(0, 0)
    return {
        f"{name}Num": sum(role.replicas for role in roles.values()),
        f"{name}Mem": f"{size.memory_mib / 1024} GB",
        f"{name}VCores": size.vcores,
        f"{name}GCores": size.gpus,
    }


def _container(view: JobView, task: TaskView) -> Mapping[str, Any]:
    gpus = view.job.roles[task.id.role].resources.gpus if view.job else 0
    return {"cid": task.container, "startTime": int(task.started * 1000), "status": task.state.value, "gpu": str(gpus)}


def _task(view: JobView, container: str) -> TaskView:
    task = next((each for each in view.tasks.values() if each.container and each.container == container), None)
    if task is None:
        raise NotFound(f"no container {container[:80]}")
    return task


def _tensorboard_address(view: JobView, tensorboard_url: str) -> str:
    """Return TensorBoard's address, empty until it listens."""
    if tensorboard_url:
        return tensorboard_url
    boards = [task for task in view.tasks.values() if task.id.role == "tensorboard" and task.ports and task.pid]
    return f"http://{boards[0].host}:{boards[0].ports['main']}" if boards else ""
