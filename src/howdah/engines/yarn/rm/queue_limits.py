"""The limits of a queue and a user by partition (the nodes of one label): the use, and whether more fits.

The ResourceManager's web service has them for each partition and resource (`/ws/v1/cluster/scheduler` of a capacity
scheduler); the protocol has only memory and cores of the nodes without label.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from howdah.engines import PendingReason
from howdah.engines.yarn import records
from howdah.engines.yarn.admission_checks import label_of, needed_amounts, show
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import JobSpec

Amounts = Mapping[str, int]


def missing_amounts(job: JobSpec, missing: Mapping[str, int], default: str = "") -> dict[str, Counter[str]]:
    """Return the amounts that the missing containers need, by label and resource; `default` is the queue's own
    label."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for role, count in missing.items():
        found[label_of(job, role) or default] += needed_amounts(job, {role: count})
    return found


def nodes_of_label(nodes: Iterable[pb.NodeReport], label: str) -> list[pb.NodeReport]:
    """Return the nodes of a label; "" means those without any."""
    return [node for node in nodes if (label in node.labels if label else not any(node.labels))]


def total_resources(nodes: Iterable[pb.NodeReport]) -> Counter[str]:
    """Return the resources that the nodes have together."""
    return sum((Counter(records.from_resource(node.capability)) for node in nodes), Counter[str]())


def limits_from_web(
    info: Mapping[str, Any], queue: str, user: str, label: str, wanted: Amounts, total: Amounts
) -> list[PendingReason] | None:
    """Return the limits from the web service; `total` is the size of the partition. Return None if the service does not
    know the queue."""
    path = _path(info, queue)
    if len(path) < 2:
        return None
    found = []
    for each in reversed(path[1:]):  # a queue, then those that it is part of
        used, limit = _of_queue(each, label, total)
        name = queue if each is path[-1] else each.get("queuePath", queue)
        found = [_exceeded_limit(name, label, *over) for over in _exceeded_resources(used, limit, wanted)]
        if found:
            break
    return [*found, *([] if label else _of_user(path[-1], queue, user, wanted))]


def limits_from_protocol(
    path: Sequence[pb.QueueInfo], queue: str, wanted: Amounts, total: Amounts
) -> list[PendingReason]:
    """Return the limits from the protocol, of nodes without label; `path` leads from the root to the queue."""
    statistics, share = path[-1].statistics, 1.0
    for each in path[1:]:
        share *= min(1.0, each.maximum_capacity or 1.0)
    used = {records.MEMORY: statistics.allocated_mib, records.VCORES: statistics.allocated_vcores}
    limit = {key: int(total.get(key, 0) * share) for key in used}
    return [_exceeded_limit(queue, "", *over) for over in _exceeded_resources(used, limit, wanted)]


def _exceeded_limit(queue: str, label: str, used: str, limit: str, more: str) -> PendingReason:
    facts = {"queue": queue, "used": used, "limit": limit, "needs": more}
    return PendingReason("label-limit", {**facts, "label": label}) if label else PendingReason("queue-limit", facts)


def _exceeded_resources(used: Amounts, limit: Amounts, wanted: Amounts) -> Iterator[tuple[str, str, str]]:
    """Yield used, limit and wanted, as texts, of each resource that does not fit. A scheduler that does not count cores
    grants more cores than there are: then cores are no reason."""
    for key, more in wanted.items():
        maximum, now = limit.get(key, 0), used.get(key, 0)
        if maximum and more and now + more > maximum and (now <= maximum or key == records.MEMORY):
            yield show(key, now), show(key, maximum), show(key, more)


def _of_queue(queue: Mapping[str, Any], label: str, total: Amounts) -> tuple[dict[str, int], dict[str, int]]:
    """Return how much of a partition a queue uses, and its limit."""
    used = _partition(queue, "resources", "resourceUsagesByPartition", label).get("used")
    allowed = _partition(queue, "capacities", "queueCapacitiesByPartition", label)
    limit = _amounts(allowed.get("effectiveMaxResource") or {})
    if not limit.get(records.MEMORY):  # before Hadoop 3.1
        share = float(allowed.get("absoluteMaxCapacity", 100.0)) / 100
        limit = {key: int(amount * share) for key, amount in total.items()}
    if used is None and not label:
        used = queue.get("resourcesUsed")
    return _amounts(used or {}), limit


def _of_user(queue: Mapping[str, Any], name: str, user: str, wanted: Amounts) -> Iterator[PendingReason]:
    """Yield the user's limit, which is for nodes without label."""
    held: Any = (queue.get("users") or {}).get("user", [])
    for entry in held if isinstance(held, list) else [held]:
        if entry["username"] == user:
            within = _partition(entry, "resources", "resourceUsagesByPartition", "").get("used")
            used, limit = _amounts(within or entry["resourcesUsed"]), _amounts(entry["userResourceLimit"])
            for now, maximum, more in _exceeded_resources(used, limit, wanted):
                facts = {"queue": name, "user": user, "used": now, "limit": maximum, "needs": more}
                yield PendingReason("user-limit", facts)


def _partition(holder: Mapping[str, Any], outer: str, inner: str, label: str) -> Mapping[str, Any]:
    found: Any = (holder.get(outer) or {}).get(inner) or []
    for each in found if isinstance(found, list) else [found]:
        if each.get("partitionName", "") == label:
            return each  # type: ignore[no-any-return]
    return {}


def _amounts(resource: Mapping[str, Any]) -> dict[str, int]:
    """Return amounts by resource name; memory in MiB."""
    found = {records.MEMORY: int(resource.get("memory", 0)), records.VCORES: int(resource.get("vCores", 0))}
    for each in (resource.get("resourceInformations") or {}).get("resourceInformation", []):
        if each["name"] not in found:
            found[each["name"]] = int(each["value"])
    return found


def _path(queue: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the queues from the root down to the one of that name, or path; [] if there is none."""
    if name in (queue.get("queueName"), queue.get("queuePath")):
        return [queue]
    held: Any = (queue.get("queues") or {}).get("queue", [])
    for child in held if isinstance(held, list) else [held]:
        if below := _path(child, name):
            return [queue, *below]
    return []
