"""Tests finding jobs that can never run, and the messages for them."""

from __future__ import annotations

from howdah.engines.yarn import admission_checks, records
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.spec import JobSpec, Resources, Role


def node(host: str, labels: tuple[str, ...] = (), **amounts: int) -> pb.NodeReport:
    wanted = {"memory-mb": amounts.get("memory", 8192), "vcores": amounts.get("vcores", 8)}
    if "gpus" in amounts:
        wanted[records.GPU] = amounts["gpus"]
    return pb.NodeReport(node=pb.NodeId(host=host, port=1), capability=records.to_resource(wanted), labels=labels)


NODES = [node("a", gpus=2), node("b", gpus=4), node("c")]


def job(replicas: int = 1, label: str = "", **resources: int) -> JobSpec:
    return JobSpec(roles={"worker": Role("x", replicas, Resources(**resources), node_label=label)})


def test_what_fits_is_not_refused() -> None:
    assert list(admission_checks.too_large(job(3, memory_mib=8192, vcores=8, gpus=2), NODES)) == []


def test_larger_than_any_node() -> None:
    assert list(admission_checks.too_large(job(memory_mib=9728, gpus=5), NODES)) == [
        "role 'worker': 9.5 GiB memory asked, the largest node has 8 GiB memory",
        "role 'worker': 5 gpus asked, the largest node has 4 gpus",
    ]


def test_a_gang_larger_than_the_cluster() -> None:
    said = list(admission_checks.too_large(job(4, memory_mib=1024, gpus=2), NODES))
    assert said == ["the job needs 8 gpus in all, the whole cluster has 6 gpus"]


def test_no_such_resource() -> None:
    spec = JobSpec(roles={"w": Role("x", 1, Resources(named={"yarn.io/fpga": 1}))})
    assert list(admission_checks.too_large(spec, NODES)) == [
        "role 'w': 1 yarn.io/fpga asked, the largest node has 0 yarn.io/fpga"
    ]


def test_only_nodes_of_the_label_count() -> None:
    nodes = [*NODES, node("d", ("big",), memory=65536)]
    assert list(admission_checks.too_large(job(label="big", memory_mib=60000), nodes)) == []
    assert list(admission_checks.too_large(job(label="big", gpus=1), nodes)) == [
        "role 'worker': 1 gpus asked, the largest node has 0 gpus"
    ]


def test_a_cluster_without_nodes_is_reported() -> None:
    assert list(admission_checks.too_large(job(), [])) == ["the cluster has no node that takes containers now"]


def test_an_unknown_node_label_is_reported() -> None:
    assert list(admission_checks.unknown_labels(job(label="bigg"), {"big"})) == [
        "role 'worker': the cluster has no node label 'bigg' (it has: big)"
    ]
    assert list(admission_checks.unknown_labels(job(), set())) == []


def test_more_than_the_scheduler_grants() -> None:
    maximum = records.to_resource({"memory-mb": 4096, "vcores": 4})
    assert list(admission_checks.over_maximum(job(memory_mib=5000, vcores=4), maximum)) == [
        "role 'worker': 4.88 GiB memory asked, the scheduler grants at most 4 GiB memory"
    ]
