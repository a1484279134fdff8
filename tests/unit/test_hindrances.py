"""Why a job waits, in sentences: from what the ResourceManager says of queues and nodes."""

from __future__ import annotations

from howdah.cli.explain import reason
from howdah.engines import Hindrance
from howdah.engines.yarn.hindrances import _nodes, _queue, queue_path
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import JobSpec, Placement, Resources, Role

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
    return [reason(each) for each in _nodes(spec, "worker", 3, nodes)]


def test_nodes_that_are_too_small_full_or_free() -> None:
    assert said(job(40), node("node1", 64, 30), node("node2", 32), node("node3", 32), node("node4", 64)) == [
        "worker needs 3 × (40 GiB memory, 1 vcores); too small for it: node2, node3 (32 GiB memory)",
        "worker needs 3 × (40 GiB memory, 1 vcores); occupied: node1 (34 GiB memory free of 64 GiB memory)",
        "worker: there is room on node4 (64 GiB memory, 8 vcores); the scheduler gives it in its turn",
    ]


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
    (found,) = _queue(root, "train", 100 * GIB, 10 * GIB)
    text = "queue train uses 20 GiB memory of at most 25 GiB memory; 10 GiB memory more are wanted"
    assert reason(found) == text
    assert list(_queue(root, "train", 100 * GIB, 5 * GIB)) == []


def test_what_an_engine_says_itself() -> None:
    assert reason(Hindrance("said", {"text": "waiting behind job-1"})) == "waiting behind job-1"
