"""Why a job waits for containers: what the ResourceManager says of its queue, its user, and every node.

Queue and nodes come over the protocol; the limit of one user within a queue only from the ResourceManager's web service
(`/ws/v1/cluster/scheduler`), which is asked where it wants no login.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from howdah.engines import Hindrance
from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.diagnostics import waiting
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.refusals import label_of, show
from howdah.engines.yarn.resourcemanager import ResourceManagerClient
from howdah.spec import JobSpec

WEB_S = 5.0
WEB_PORT = 8088
_OUT = (3, 5, 6, 7, 8)  # unhealthy, lost, rebooted, decommissioning, shut down
_RUNNING_QUEUE = 2


async def hindrances(
    rm: ResourceManagerClient,
    configuration: Configuration,
    report: pb.ApplicationReport,
    job: JobSpec | None,
    missing: Mapping[str, int],
) -> list[Hindrance]:
    """`missing` containers by role; none means that the application waits for its master's."""
    found: list[Hindrance] = []
    if not missing:
        said = waiting(report.diagnostics, report.queue)
        found += [Hindrance("said", {"text": said})] if said else []
    root, nodes = await rm.queue("root"), await rm.nodes()
    asked = await rm.nodes(_OUT)
    total = sum(node.capability.memory for node in nodes)
    needs = _memory(job, missing) if job else 0
    if root is not None:
        found += _queue(root, report.queue, total, needs)
    found += await asyncio.to_thread(_user_limit, configuration, report.queue, report.user, needs)
    for role, count in missing.items() if job else ():
        assert job is not None
        found += _nodes(job, role, count, nodes)
    if asked:
        states = [{"node": node.node.host, "state": records.name(records.NODE_STATES, node.state)} for node in asked]
        found.append(Hindrance("nodes-out", {"nodes": states}))
    return found


def _memory(job: JobSpec, missing: Mapping[str, int]) -> int:
    return sum(job.roles[role].resources.memory_mib * count for role, count in missing.items())


# The queue


def _queue(root: pb.QueueInfo, name: str, total_mib: int, needs_mib: int) -> Iterator[Hindrance]:
    path = queue_path(root, name)
    if not path:
        return
    queue, limit = path[-1], float(total_mib)
    for each in path[1:]:
        limit *= min(1.0, each.maximum_capacity or 1.0)
    if queue.state and queue.state != _RUNNING_QUEUE:
        yield Hindrance("queue-stopped", {"queue": name})
    used = queue.statistics.allocated_mib
    if limit and used + needs_mib > limit:
        facts = {"queue": name, "used": _mib(used), "limit": _mib(int(limit)), "needs": _mib(needs_mib)}
        yield Hindrance("queue-limit", facts)
    others = queue.statistics.applications_pending
    if others > 1:
        yield Hindrance("queue-pending", {"queue": name, "count": int(others)})


def queue_path(root: pb.QueueInfo, name: str) -> list[pb.QueueInfo]:
    """From the root down to the queue of that name (or path); [] when there is none."""
    if name in (root.name, root.path):
        return [root]
    for child in root.children:
        if below := queue_path(child, name):
            return [root, *below]
    return []


def _user_limit(configuration: Configuration, queue: str, user: str, needs_mib: int) -> Iterator[Hindrance]:
    """Nothing where the web service wants a login, or does not answer."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for entry in _users(scheduler(configuration), queue):
            if entry["username"] == user:
                used, limit = int(entry["resourcesUsed"]["memory"]), int(entry["userResourceLimit"]["memory"])
                if 0 < limit < used + needs_mib:
                    facts = {"queue": queue, "user": user, "used": _mib(used), "limit": _mib(limit)}
                    return iter([Hindrance("user-limit", {**facts, "needs": _mib(needs_mib)})])
    return iter(())


def scheduler(configuration: Configuration) -> Any:
    """What the web service says of the scheduler.

    Raises:
        OSError, ValueError: it does not answer, or not us.
    """
    if configuration.secure:
        raise OSError("the web service wants a login")
    request = urllib.request.Request(  # noqa: S310
        f"{web_address(configuration)}/ws/v1/cluster/scheduler", headers={"Accept": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=WEB_S) as answer:  # noqa: S310
        return json.load(answer)["scheduler"]["schedulerInfo"]


def setting(configuration: Configuration, name: str) -> str:
    """A property of the ResourceManager's own configuration; "" where its web service does not say."""
    if configuration.secure:
        return ""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        request = urllib.request.Request(  # noqa: S310
            f"{web_address(configuration)}/conf?name={name}", headers={"Accept": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=WEB_S) as answer:  # noqa: S310
            return str(json.load(answer)["property"]["value"])
    return ""


def web_address(configuration: Configuration) -> str:
    """`http://host:port` of the ResourceManager's pages; with high availability of the first one's."""
    secure = configuration.text("yarn.http.policy").upper() == "HTTPS_ONLY"
    key = f"yarn.resourcemanager.webapp.{'https.' if secure else ''}address"
    ids = configuration.words("yarn.resourcemanager.ha.rm-ids")
    named = configuration.text(key) or (configuration.text(f"{key}.{ids[0]}") if ids else "")
    host = configuration.resourcemanagers()[0].host
    return f"{'https' if secure else 'http'}://{named or f'{host}:{8090 if secure else WEB_PORT}'}"


def _users(queue: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    if queue.get("queueName") == name or queue.get("queuePath") == name:
        found: Any = (queue.get("users") or {}).get("user", [])
        return found if isinstance(found, list) else [found]
    below = (queue.get("queues") or {}).get("queue", [])
    return next((users for child in below if (users := _users(child, name))), [])


# The nodes


def _nodes(job: JobSpec, role: str, count: int, nodes: Sequence[pb.NodeReport]) -> Iterator[Hindrance]:
    wanted, label = records.amounts(job.roles[role].resources), label_of(job, role)
    usable = [node for node in nodes if (label in node.labels if label else not any(node.labels))]
    avoided = set(job.roles[role].placement.avoid)
    facts: dict[str, Any] = {
        "role": role,
        "count": count,
        "needs": ", ".join(show(key, n) for key, n in wanted.items()),
    }
    if label and not usable:
        yield Hindrance("label", {**facts, "label": label})
        return
    if text := job.roles[role].placement.constraint:
        yield Hindrance("constraint", {**facts, "constraint": text})
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
            yield Hindrance(kind, {**facts, "nodes": those})


def _name(node: pb.NodeReport) -> str:
    return str(node.node.host)


def _mib(amount: int) -> str:
    return show(records.MEMORY, amount)
