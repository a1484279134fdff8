"""Checks, before the upload, that the cluster can run the job at all."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from howdah.engines.yarn import placement_constraints, records
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient, list_leaf_queues
from howdah.errors import EngineRejected
from howdah.hadoop.constraints import Composite
from howdah.spec import JobSpec
from howdah.spec.validation import nearest

NODES_S, MORE_NODES_S = 15.0, 2.0
"""Seconds to wait for the first node of a cluster that has none yet, and then for further nodes: after a start of the
ResourceManager its NodeManagers register within seconds, one after the other."""
FIELDS = {records.MEMORY: "memory", records.VCORES: "vcores", records.GPU: "gpus"}


async def check(rm: ResourceManagerClient, job: JobSpec) -> None:
    """Raise EngineRejected with every request that can never be granted, one line each.

    Raises:
        SpecError: a placement constraint cannot be read.
    """
    placement_constraints.check(job)
    nodes, labels = await _nodes(rm), set()
    if any(label_of(job, role) for role in job.roles):
        labels = set(await rm.node_labels())
    problems = [*unknown_labels(job, labels), *find_impossible_constraints(job, nodes), *too_large(job, nodes)]
    if job.queue:
        problems += await _queue(rm, job.queue)
    if problems:
        raise EngineRejected("\n".join(problems))


async def _nodes(rm: ResourceManagerClient) -> list[pb.NodeReport]:
    """Return the cluster's nodes. A ResourceManager that has just become active knows none before they have
    registered."""
    if nodes := await rm.nodes():
        return nodes
    clock = asyncio.get_running_loop().time
    deadline = clock() + NODES_S
    while not nodes and clock() < deadline:
        await asyncio.sleep(0.5)
        nodes = await rm.nodes()
    if nodes:  # the others are not far behind
        await asyncio.sleep(MORE_NODES_S)
        nodes = await rm.nodes()
    return nodes


def label_of(job: JobSpec, role: str) -> str:
    """Return the node label under which a role runs."""
    return job.roles[role].node_label or job.node_label


def unknown_labels(job: JobSpec, known: Iterable[str]) -> Iterator[str]:
    """Yield a line for each role whose label the cluster does not have."""
    names = ", ".join(sorted(known)) or "none"
    for role in job.roles:
        label = label_of(job, role)
        if label and label not in known:
            yield f"role {role!r}: the cluster has no node label {label!r} (it has: {names})"


def find_impossible_constraints(job: JobSpec, nodes: Sequence[pb.NodeReport]) -> Iterator[str]:
    """Yield a line for each constraint that no placement of the job's containers can satisfy."""
    tags = sorted({tag for role in job.roles for tag in placement_constraints.tags_of(job, role)})
    never = placement_constraints.order(job)[1]
    for role, spec in job.roles.items():
        constraint = placement_constraints.constraint_of(job, role)
        subject = f"role {role!r}: {spec.placement.constraint!r}"
        unknown = [tag for tag in placement_constraints.names(constraint) if tag not in tags]
        if unknown:
            near = nearest(unknown[0], tags)
            hint = f"; did you mean {near!r}?" if near else ""
            yield f"{subject} names the tag {unknown[0]!r}, which no role has (their tags: {', '.join(tags)}{hint})"
        elif role in never:
            yield f"{subject} can never be satisfied: what it is to be near to waits for this role itself"
        if isinstance(constraint, Composite) and label_of(job, role):
            yield f"{subject} and a node label: YARN takes a label with a constraint of one part only, not with and, or"
        count, label = spec.min_replicas or spec.replicas, label_of(job, role)
        there = [node for node in nodes if not label or label in node.labels]
        with_label = label and f" labelled {label}"
        apart = placement_constraints.keeps_apart(constraint, placement_constraints.tags_of(job, role))
        if job.gang and apart and count > len(there) > 0:
            yield f"{subject} keeps {count} tasks on {count} nodes, the cluster has {len(there)}{with_label}"


def too_large(job: JobSpec, nodes: Sequence[pb.NodeReport]) -> Iterator[str]:
    """Yield a line for each resource of a role that exceeds every node, and for each resource that the whole cluster
    has too little of."""
    if not nodes:
        yield "the cluster has no node that takes containers now"
        return
    reported = set[str]()
    for role, spec in job.roles.items():
        label = label_of(job, role)
        usable = [node for node in nodes if not label or label in node.labels] or list(nodes)
        largest = _largest(records.from_resource(node.capability) for node in usable)
        for key, wanted in records.amounts(spec.resources).items():
            if wanted > largest[key]:
                reported.add(key)
                yield f"role {role!r}: {show(key, wanted)} asked, the largest node has {show(key, largest[key])}"
    for key, wanted in _at_once(job).items():
        there = sum(records.from_resource(node.capability).get(key, 0) for node in nodes)
        if wanted > there and key not in reported:
            yield f"the job needs {show(key, wanted)} in all, the whole cluster has {show(key, there)}"


def _at_once(job: JobSpec) -> Counter[str]:
    """Return the resources that the gang needs at the same time, in the largest of its stages; without a gang none are
    needed at once."""
    waves = [{name: job.roles[name].replicas for name in wave} for wave in (job.waves if job.gang else ())]
    return _largest(needed_amounts(job, wave) for wave in waves)


def needed_amounts(job: JobSpec, containers: Mapping[str, int]) -> Counter[str]:
    """Return the resources that these numbers of containers need together; `containers` gives the number for each
    role."""
    total = Counter[str]()
    for role, count in containers.items():
        total.update({key: amount * count for key, amount in records.amounts(job.roles[role].resources).items()})
    return total


def over_maximum(job: JobSpec, maximum: pb.Resource) -> Iterator[str]:
    """Yield a line for each resource of a role that exceeds the scheduler's maximum for one container."""
    limits = records.from_resource(maximum)
    for role, spec in job.roles.items():
        for key, wanted in records.amounts(spec.resources).items():
            if key in limits and wanted > limits[key]:
                yield f"role {role!r}: {show(key, wanted)} asked, the scheduler grants at most {show(key, limits[key])}"


def show(key: str, amount: int) -> str:
    """Return an amount with its unit: `9.5 GiB memory`, `2 gpus`."""
    if key == records.MEMORY:
        text = f"{round(amount / 1024, 2):g} GiB" if amount >= 1024 else f"{amount} MiB"
        return f"{text} memory"
    return f"{amount} {FIELDS.get(key, key)}"


def _largest(amounts: Iterable[Mapping[str, int]]) -> Counter[str]:
    return functools.reduce(operator.or_, map(Counter, amounts), Counter[str]())


async def _queue(rm: ResourceManagerClient, name: str) -> list[str]:
    queue, mine = await rm.queue(name), await rm.submittable_queues()
    yours = f"yours are: {', '.join(mine) or 'none'}"
    if queue is None:
        parent = name.rpartition(".")[0]
        if parent and parent != "root" and await rm.queue(parent):
            return []  # a scheduler may create leaves by itself; it has the last word
        near = nearest(name, mine)
        hint = f" Did you mean {near!r}?" if near else ""
        return [f"there is no queue {name!r}; {yours}.{hint}"]
    if queue.children:
        return [f"queue {name!r} takes no jobs, only those below it do: {', '.join(list_leaf_queues(queue))}"]
    if queue.name.rpartition(".")[2] not in mine:
        return [f"you may not submit to queue {name!r}; {yours}"]
    return [] if queue.state == 2 else [f"queue {name!r} is stopped; {yours}"]
