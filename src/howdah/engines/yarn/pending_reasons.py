"""Why a job waits for containers: the reasons that the ResourceManager gives about its queue, its user, and every node.

Queue and nodes come over the protocol; limits by label, and of one user in a queue, come only from the
ResourceManager's web service (`/ws/v1/cluster/scheduler`), which is asked if it needs no login.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import operator
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any

from howdah.engines import PendingReason
from howdah.engines.yarn import records
from howdah.engines.yarn.admission_checks import label_of, show
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.diagnostics import explain_wait
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm import queue_limits
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.spec import JobSpec

WEB_S = 5.0
WEB_PORT = 8088
_OUT = (3, 5, 6, 7, 8)  # unhealthy, lost, rebooted, decommissioning, shut down
_RUNNING_QUEUE = 2


async def pending_reasons(
    rm: ResourceManagerClient,
    configuration: Configuration,
    report: pb.ApplicationReport,
    job: JobSpec | None,
    missing: Mapping[str, int],
) -> list[PendingReason]:
    """Return the reasons; `missing` are containers by role, and none means that the application waits for its
    master's container."""
    found: list[PendingReason] = []
    if not missing:
        text = explain_wait(report.diagnostics, report.queue)
        found += [PendingReason("said", {"text": text})] if text else []
    root, nodes = await rm.queue("root"), await rm.nodes()
    asked = await rm.nodes(_OUT)
    path = queue_path(root, report.queue) if root is not None else []
    default = path[-1].default_label if path else ""
    found += _queue(path, report.queue)
    if job is not None:
        info = await asyncio.to_thread(scheduler, configuration)
        for label, wanted in queue_limits.missing_amounts(job, missing, default).items():
            found += _limits(info, path, report, label, wanted, nodes)
        for role, count in missing.items():
            found += _nodes(job, role, count, nodes, default)
    if asked:
        states = [{"node": node.node.host, "state": records.name(records.NODE_STATES, node.state)} for node in asked]
        found.append(PendingReason("nodes-out", {"nodes": states}))
    return found


def reasons_from_headroom(
    headroom: Mapping[str, int], job_id: str, job: JobSpec, missing: Mapping[str, int]
) -> list[PendingReason]:
    """Return the reasons that a master can find without a login of its own. `headroom` are the amounts that the
    ResourceManager's answers to heartbeats leave to the job."""
    return [
        PendingReason(
            "headroom",
            {
                **_needs(role, count, wanted := records.amounts(job.roles[role].resources)),
                "left": ", ".join(show(key, max(0, headroom[key])) for key in wanted if key in headroom),
                "job": job_id,
            },
        )
        for role, count in missing.items()
        if headroom
    ]


def _needs(role: str, count: int, wanted: Mapping[str, int]) -> dict[str, Any]:
    return {"role": role, "count": count, "needs": ", ".join(show(key, amount) for key, amount in wanted.items())}


# The queue


def _queue(path: Sequence[pb.QueueInfo], name: str) -> Iterator[PendingReason]:
    if not path:
        return
    if path[-1].state and path[-1].state != _RUNNING_QUEUE:
        yield PendingReason("queue-stopped", {"queue": name})
    others = path[-1].statistics.applications_pending
    if others > 1:
        yield PendingReason("queue-pending", {"queue": name, "count": int(others)})


def _limits(
    info: Mapping[str, Any],
    path: Sequence[pb.QueueInfo],
    report: pb.ApplicationReport,
    label: str,
    wanted: Mapping[str, int],
    nodes: Sequence[pb.NodeReport],
) -> list[PendingReason]:
    """Yield the limits of the queue, and of the user in it, on the nodes of one label."""
    total = queue_limits.total_resources(queue_limits.nodes_of_label(nodes, label))
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # another scheduler's, or version's
        said = queue_limits.limits_from_web(info, report.queue, report.user, label, wanted, total)
        if said is not None:
            return said
    return queue_limits.limits_from_protocol(path, report.queue, wanted, total) if path and not label else []


def queue_path(root: pb.QueueInfo, name: str) -> list[pb.QueueInfo]:
    """Return the queues from the root down to the one of that name (or path); [] if there is none."""
    if name in (root.name, root.path):
        return [root]
    for child in root.children:
        if below := queue_path(child, name):
            return [root, *below]
    return []


def scheduler(configuration: Configuration) -> Mapping[str, Any]:
    """Return the web service's description of the scheduler; {} if the service does not give it."""
    return _from_web(configuration, "/ws/v1/cluster/scheduler", "scheduler", "schedulerInfo") or {}


def setting(configuration: Configuration, name: str) -> str:
    """Return a property of the ResourceManager's own configuration; "" if its web service does not give it."""
    return str(_from_web(configuration, f"/conf?name={name}", "property", "value") or "")


def _from_web(configuration: Configuration, path: str, *keys: str) -> Any:
    """Return the value below `keys` in an answer of the web service; None if it needs a login or does not answer."""
    if configuration.secure:
        return None
    with contextlib.suppress(OSError, HTTPException, ValueError, KeyError, TypeError):
        headers = {"Accept": "application/json"}
        request = urllib.request.Request(f"{web_address(configuration)}{path}", headers=headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=WEB_S) as answer:  # noqa: S310
            return functools.reduce(operator.getitem, keys, json.load(answer))
    return None


def web_address(configuration: Configuration) -> str:
    """Return `http://host:port` of the ResourceManager's pages; with high availability that of the first one."""
    secure = configuration.text("yarn.http.policy").upper() == "HTTPS_ONLY"
    key = f"yarn.resourcemanager.webapp.{'https.' if secure else ''}address"
    ids = configuration.get_list("yarn.resourcemanager.ha.rm-ids")
    named = configuration.text(key) or (configuration.text(f"{key}.{ids[0]}") if ids else "")
    host = configuration.resourcemanagers()[0].host
    return f"{'https' if secure else 'http'}://{named or f'{host}:{8090 if secure else WEB_PORT}'}"


# The nodes


def _nodes(
    job: JobSpec, role: str, count: int, nodes: Sequence[pb.NodeReport], default: str = ""
) -> Iterator[PendingReason]:
    """Yield the reasons that lie in nodes; `default` is the label of the queue, for a role without a label."""
    wanted, label = records.amounts(job.roles[role].resources), label_of(job, role) or default
    usable = queue_limits.nodes_of_label(nodes, label)
    avoided = set(job.roles[role].placement.avoid)
    facts = _needs(role, count, wanted)
    if label and not usable:
        yield PendingReason("label", {**facts, "label": label})
        return
    if text := job.roles[role].placement.constraint:
        yield PendingReason("constraint", {**facts, "constraint": text})
    small, full, room = [], [], []
    for node in usable:
        if node.node.host in avoided:
            continue
        whole = records.from_resource(node.capability)
        used = records.from_resource(node.used)
        free = {key: amount - used.get(key, 0) for key, amount in whole.items()}
        lacking = next((key for key, n in wanted.items() if n > whole.get(key, 0)), "")
        short = next((key for key, n in wanted.items() if n > free.get(key, 0)), "")
        if lacking:
            small.append({"node": _name(node), "has": show(lacking, whole.get(lacking, 0))})
        elif short:
            has = f"{show(short, free.get(short, 0))} free of {show(short, whole[short])}"
            full.append({"node": _name(node), "has": has})
        else:
            room.append({"node": _name(node), "has": ", ".join(show(key, free.get(key, 0)) for key in wanted)})
    for kind, those in (("too-small", small), ("full", full), ("room", room)):
        if those:
            yield PendingReason(kind, {**facts, "nodes": those})


def _name(node: pb.NodeReport) -> str:
    return str(node.node.host)
