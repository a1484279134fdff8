"""Tests explaining why a job waits, from what the ResourceManager reports of queues and nodes."""

from __future__ import annotations

from typing import Any

from howdah.client.explain import elastic_roles
from howdah.engines import PendingReason
from howdah.engines.yarn.pending_reasons import _nodes, _queue, queue_path, reasons_from_headroom
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.records import GPU, MEMORY, VCORES
from howdah.engines.yarn.rm.queue_limits import (
    limits_from_protocol,
    limits_from_web,
    missing_amounts,
    nodes_of_label,
    total_resources,
)
from howdah.spec import JobSpec, Placement, Resources, Role, TaskId
from howdah.spec.events import GangRestarted

GIB = 1024


def node(host: str, memory: int, used: int = 0, label: str = "") -> pb.NodeReport:
    return pb.NodeReport(
        node=pb.NodeId(host=host, port=1),
        capability=pb.Resource(memory=memory * GIB, vcores=8),
        used=pb.Resource(memory=used * GIB, vcores=0),
        labels=[label] if label else [],
    )


def job(memory: int, label: str = "") -> JobSpec:
    role = Role("train", replicas=3, resources=Resources(memory_mib=memory * GIB), node_label=label)
    return JobSpec(roles={"worker": role})


def said(spec: JobSpec, *nodes: pb.NodeReport) -> list[str]:
    return [each.sentence for each in _nodes(spec, "worker", 3, nodes)]


def test_nodes_that_are_too_small_full_or_free() -> None:
    assert said(job(40), node("node1", 64, 30), node("node2", 32), node("node3", 32), node("node4", 64)) == [
        "worker needs 3 × (40 GiB memory, 1 vcores); too small for it: node2, node3 (32 GiB memory)",
        "worker needs 3 × (40 GiB memory, 1 vcores); occupied: node1 (34 GiB memory free of 64 GiB memory)",
        "worker: there is room on node4 (64 GiB memory, 8 vcores); the scheduler gives it in its turn",
    ]


def test_what_the_resourcemanager_leaves_to_the_job() -> None:
    found = reasons_from_headroom({MEMORY: 3 * GIB, VCORES: -1, GPU: 2}, "application_1_0001", job(40), {"worker": 3})
    assert [each.sentence for each in found] == [
        "worker needs 3 × (40 GiB memory, 1 vcores); the ResourceManager leaves this job 3 GiB memory, 0 vcores: with"
        " Kerberos the master may not ask more, but `howdah explain application_1_0001` shows queue and nodes"
    ]
    assert reasons_from_headroom({}, "application_1_0001", job(40), {"worker": 3}) == []


def test_only_nodes_of_the_label_count() -> None:
    assert said(job(4, "gpu"), node("node1", 64)) == ["worker: no node that runs has the label gpu"]
    (text,) = said(job(4, "gpu"), node("node1", 64), node("node2", 2, label="gpu"))
    assert text.endswith("too small for it: node2 (2 GiB memory)")


def test_a_constraint_may_keep_tasks_from_nodes_with_room() -> None:
    role = Role("train", resources=Resources(memory_mib=GIB), placement=Placement(constraint="notin,node,worker"))
    assert said(JobSpec(roles={"worker": role}), node("node1", 64)) == [
        "worker is placed as notin,node,worker says (placement.constraint): a node with room may not satisfy it",
        "worker: there is room on node1 (64 GiB memory, 8 vcores); the scheduler gives it in its turn",
    ]


def test_the_queue_is_full_however_deep() -> None:
    leaf = pb.QueueInfo(name="train", path="root.ai.train", maximum_capacity=0.5, state=2)
    leaf.statistics.allocated_mib = 20 * GIB
    root = pb.QueueInfo(
        name="root", path="root", children=[pb.QueueInfo(name="ai", maximum_capacity=0.5, children=[leaf])]
    )
    assert [each.name for each in queue_path(root, "root.ai.train")] == ["root", "ai", "train"]
    assert queue_path(root, "other") == []
    path = queue_path(root, "train")
    (found,) = limits_from_protocol(path, "train", {MEMORY: 10 * GIB, VCORES: 5}, {MEMORY: 100 * GIB, VCORES: 400})
    text = "queue train uses 20 GiB memory of at most 25 GiB memory; 10 GiB memory more are wanted"
    assert found.sentence == text
    assert limits_from_protocol(path, "train", {MEMORY: 5 * GIB}, {MEMORY: 100 * GIB}) == []
    path[-1].statistics.allocated_vcores = 99
    (found,) = limits_from_protocol(path, "train", {VCORES: 5}, {VCORES: 400})
    assert found.sentence == "queue train uses 99 vcores of at most 100 vcores; 5 vcores more are wanted"
    path[-1].statistics.allocated_vcores = 101  # a scheduler that counts memory alone
    assert limits_from_protocol(path, "train", {VCORES: 5}, {VCORES: 400}) == []


def test_a_queue_that_is_stopped_or_has_others_waiting() -> None:
    leaf = pb.QueueInfo(name="train", state=1)
    leaf.statistics.applications_pending = 3
    assert [each.sentence for each in _queue([leaf], "train")] == [
        "queue train is stopped: it grants nothing",
        "3 jobs wait in queue train",
    ]
    assert list(_queue([], "train")) == []


def amounts(memory: int, vcores: int, gpus: int) -> dict[str, Any]:
    """As the ResourceManager's web service has them."""
    kinds = (("memory-mb", memory * GIB, "Mi"), ("vcores", vcores, ""), ("yarn.io/gpu", gpus, ""))
    listed = [
        {"name": name, "value": value, "units": units, "resourceType": "COUNTABLE"} for name, value, units in kinds
    ]
    return {"memory": memory * GIB, "vCores": vcores, "resourceInformations": {"resourceInformation": listed}}


def queue(name: str, used: dict[str, Any], limit: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Used and limit by label."""
    usages = [{"partitionName": label, "used": each, "pending": amounts(0, 0, 0)} for label, each in used.items()]
    capacities = [
        {"partitionName": label, "absoluteMaxCapacity": 50.0, "effectiveMaxResource": each}
        for label, each in limit.items()
    ]
    return {
        "queueName": name.rpartition(".")[2],
        "queuePath": name,
        "resources": {"resourceUsagesByPartition": usages},
        "capacities": {"queueCapacitiesByPartition": capacities},
        **more,
    }


def scheduler(leaf: dict[str, Any]) -> dict[str, Any]:
    middle = queue("root.ai", {"": amounts(60, 60, 6)}, {"": amounts(80, 80, 8)}, queues={"queue": [leaf]})
    return {"type": "capacityScheduler", "queueName": "root", "queuePath": "root", "queues": {"queue": [middle]}}


LEAF = queue(
    "root.ai.train",
    {"": amounts(20, 10, 3), "big": amounts(90, 10, 7)},
    {"": amounts(40, 40, 4), "big": amounts(100, 100, 8)},
)


def limits(leaf: dict[str, Any], label: str, wanted: dict[str, int], user: str = "alice") -> list[str]:
    total = {MEMORY: 100 * GIB, VCORES: 100, GPU: 10}
    return [each.sentence for each in limits_from_web(scheduler(leaf), "train", user, label, wanted, total) or ()]


def test_limits_of_each_resource_and_label() -> None:
    assert limits(LEAF, "", {MEMORY: GIB, VCORES: 1, GPU: 1}) == []
    assert limits(LEAF, "", {MEMORY: GIB, VCORES: 31, GPU: 2}) == [
        "queue train uses 10 vcores of at most 40 vcores; 31 vcores more are wanted",
        "queue train uses 3 gpus of at most 4 gpus; 2 gpus more are wanted",
    ]
    assert limits(LEAF, "big", {MEMORY: 16 * GIB, GPU: 1}) == [
        "queue train uses 90 GiB memory of at most 100 GiB memory on nodes labelled big; 16 GiB memory more are wanted"
    ]
    assert limits(LEAF, "none", {MEMORY: 16 * GIB}) == []


def test_a_queue_above_may_be_full() -> None:
    leaf = queue("root.ai.train", {"": amounts(20, 10, 0)}, {"": amounts(100, 100, 8)})
    assert limits(leaf, "", {MEMORY: 30 * GIB, GPU: 1}) == [
        "queue root.ai uses 60 GiB memory of at most 80 GiB memory; 30 GiB memory more are wanted"
    ]


def test_before_hadoop_told_of_resources_there_were_shares() -> None:
    leaf = queue("root.ai.train", {}, {"": {}, "big": amounts(0, 0, 0)}, resourcesUsed=amounts(45, 0, 0))
    assert limits(leaf, "", {MEMORY: 6 * GIB}) == [
        "queue train uses 45 GiB memory of at most 50 GiB memory; 6 GiB memory more are wanted"
    ]
    assert limits(leaf, "big", {GPU: 6}) == [
        "queue train uses 0 gpus of at most 5 gpus on nodes labelled big; 6 gpus more are wanted"
    ]


def test_a_users_limit_of_gpus() -> None:
    user = {"username": "alice", "resourcesUsed": amounts(9, 9, 2), "userResourceLimit": amounts(30, 30, 3)}
    leaf = {**LEAF, "users": {"user": [user]}}
    assert limits(leaf, "", {MEMORY: GIB, GPU: 1}) == []
    both = limits(leaf, "", {GPU: 2})
    assert both[1] == "alice uses 2 gpus of at most 3 gpus in queue train; 2 gpus more are wanted"
    assert len(limits(leaf, "", {GPU: 2}, "bob")) == 1
    assert len(limits({**LEAF, "users": {"user": user}}, "", {GPU: 2})) == 2  # one that is no list
    assert limits({**leaf, "users": {}}, "big", {GPU: 1}) == []


def test_another_scheduler_tells_nothing() -> None:
    assert limits_from_web({"type": "fairScheduler", "rootQueue": {}}, "train", "alice", "", {MEMORY: 1}, {}) is None
    assert limits_from_web({}, "train", "alice", "", {MEMORY: 1}, {}) is None


def test_what_is_needed_by_label() -> None:
    roles = {
        "ps": Role("t", resources=Resources(memory_mib=GIB, vcores=2)),
        "worker": Role("t", resources=Resources(memory_mib=2 * GIB, gpus=2), node_label="big"),
    }
    wanted = missing_amounts(JobSpec(roles), {"ps": 2, "worker": 3})
    assert wanted == {"": {MEMORY: 2 * GIB, VCORES: 4}, "big": {MEMORY: 6 * GIB, VCORES: 3, GPU: 6}}
    assert missing_amounts(JobSpec(roles), {"ps": 1}, "queues-own") == {"queues-own": {MEMORY: GIB, VCORES: 2}}
    nodes = [node("node1", 64), node("node2", 32, label="big")]
    assert total_resources(nodes_of_label(nodes, "big"))[MEMORY] == 32 * GIB
    assert total_resources(nodes_of_label(nodes, ""))[MEMORY] == 64 * GIB


def test_what_grows_with_restarts_is_asked_for_larger() -> None:
    roles = {
        "ps": Role("t", resources=Resources(memory_mib=GIB)),
        "worker": Role("t", resources=Resources(memory_mib=2 * GIB, growth=0.5)),
    }
    again = [GangRestarted(1.0, 2, "why"), GangRestarted(2.0, 3, "why", (TaskId("worker", 0), TaskId("worker", 1)))]
    found = elastic_roles(JobSpec(roles), [*again, GangRestarted(3.0, 4, "why", (TaskId("ps", 0),))])
    assert (found.roles["worker"].resources.memory_mib, found.roles["ps"].resources.memory_mib) == (4 * GIB, GIB)
    assert elastic_roles(JobSpec(roles), []) == JobSpec(roles)


def test_what_an_engine_says_itself() -> None:
    assert PendingReason("said", {"text": "waiting behind job-1"}).sentence == "waiting behind job-1"
