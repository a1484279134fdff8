"""Tests what jobs do with the objects of a real Kubernetes: volumes, quotas, priorities, labels of schedulers, and the
names of objects that do not exist."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_jobs import JOBS, PODS, opened_engine, pods_of, running_pods_of
from submitted_job import SubmittedJob as Job
from submitted_job import until

from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.engine import KubernetesEngine
from howdah.sandbox import KubernetesSandbox
from howdah.spec import Environment, Resources, State, TaskId
from howdah.spec.events import Ended, LossAnnounced, Noted
from howdah.spec.job import Input

HOWDAH = str(Path(sys.executable).with_name("howdah"))
IMAGE = "sandbox.local/python:3"
NAMESPACE = "/api/v1/namespaces/howdah"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


pytestmark = pytest.mark.usefixtures("kubernetes_settings")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def engine() -> Iterator[KubernetesEngine]:
    with opened_engine() as found:
        yield found


@contextlib.contextmanager
def existing(kubernetes: KubernetesSandbox, path: str, body: dict[str, Any]) -> Iterator[str]:
    """Let an object exist; yield its path."""
    own = f"{path}/{body['metadata']['name']}"
    kubernetes.api().create(path, body)
    try:
        yield own
    finally:
        with contextlib.suppress(urllib.error.HTTPError):
            kubernetes.api().delete(f"{own}?gracePeriodSeconds=0")

        def is_gone() -> bool:
            try:
                return not kubernetes.api().get(own)
            except urllib.error.HTTPError:
                return True

        until(is_gone, f"the end of {own}")


def holder(gpus: int, priority_class: str = "", name: str = "holder") -> dict[str, Any]:
    """Return a pod that holds GPUs and is not howdah's."""
    amounts = {"cpu": "100m", "memory": "64Mi", "nvidia.com/gpu": str(gpus)}
    container = {"name": "hold", "image": IMAGE, "command": ["sleep", "600"]}
    spec = {"containers": [{**container, "resources": {"requests": amounts, "limits": amounts}}]}
    return {"metadata": {"name": name}, "spec": {**spec, "priorityClassName": priority_class}}


def notes(job: Job) -> str:
    return "\n".join(str(each.text) for each in job.of(Noted))


@contextlib.contextmanager
def engine_with(**values: str) -> Iterator[KubernetesEngine]:
    """Yield an engine with other settings."""
    with pytest.MonkeyPatch.context() as changed:
        for name, value in values.items():
            changed.setenv(f"HOWDAH_KUBERNETES_{name.upper()}", value)
        with opened_engine() as found:
            yield found


VARIABLES = {
    "YARN_CONTAINER_RUNTIME_TYPE": "docker",
    "YARN_CONTAINER_RUNTIME_DOCKER_IMAGE": IMAGE,
    "YARN_CONTAINER_RUNTIME_DOCKER_MOUNTS": "{directory}:/in/pod:ro",
}


@pytest.mark.parametrize("way", ["environment", "variables"])
def test_pods_have_the_image_that_the_job_names(way: str, kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mounted\n")
    job: dict[str, Any] = {"environment": Environment(image=IMAGE, mounts=(f"{tmp_path}:/in/pod:ro",))}
    if way == "variables":
        job = {"env": {name: value.format(directory=tmp_path) for name, value in VARIABLES.items()}}
    with engine_with(image="") as engine:  # nobody else names one
        done = Job(engine, tmp_path, "cat /in/pod/file; sleep 3", **job)
        (pod,) = running_pods_of(kubernetes, done, 1)
        assert done.ended().state is State.SUCCEEDED, done.report.diagnostics
        assert pod["spec"]["containers"][0]["image"] == IMAGE
        assert b"".join(data for _, data in engine.logs(done.id, TaskId("worker", 0), "stdout")) == b"mounted\n"


@contextlib.contextmanager
def merged(kubernetes: KubernetesSandbox, path: str, change: dict[str, Any], back: dict[str, Any]) -> Iterator[None]:
    """Let an object be changed."""
    kubernetes.api().merge(path, change)
    try:
        yield
    finally:
        kubernetes.api().merge(path, back)


def test_pods_run_on_selected_nodes_as_a_user_with_no_rights(
    kubernetes: KubernetesSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a namespace of the restricted standard; their home is a store, because a directory here is root's."""
    known = kubernetes.client()
    access = {
        "AWS_ENDPOINT_URL": known["s3_endpoint"],
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in access.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    node = kubernetes.api().ready_nodes()[-1]["metadata"]["name"]
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    selected = {"metadata": {"labels": {"pool": "a100"}}, "spec": {"taints": [taint]}}
    standard = "pod-security.kubernetes.io/enforce"
    options = {"node_selector": ("pool=a100",), "tolerations": ("gpu=yes:NoSchedule",), "run_as": "65534:65534"}
    unselected = {"metadata": {"labels": {"pool": None}}, "spec": {"taints": None}}
    restricted, free = ({"metadata": {"labels": {standard: value}}} for value in ("restricted", None))
    with (
        merged(kubernetes, f"/api/v1/nodes/{node}", selected, unselected),
        merged(kubernetes, NAMESPACE, restricted, free),
        existing(kubernetes, f"{NAMESPACE}/secrets", {"metadata": {"name": "store"}, "stringData": access}),
        engine_with(home=f"s3://{known['s3_bucket']}/howdah", volumes="", environment_secrets="store") as engine,
    ):
        job = Job(engine, tmp_path, "id -u; id -g; sleep 3", role={"replicas": 2}, engines={"kubernetes": options})
        pods = [*running_pods_of(kubernetes, job, 2), *pods_of(kubernetes, job, manifests.MASTER)]
        assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
        assert [pod["spec"]["nodeName"] for pod in pods] == [node] * 3
        for index in (0, 1):
            printed = b"".join(data for _, data in engine.logs(job.id, TaskId("worker", index), "stdout"))
            assert printed == b"65534\n65534\n"


def test_inputs_come_from_a_claim_and_from_the_nodes(kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    claimed, on_node = tmp_path / "claimed", tmp_path / "on-node"
    for directory in (claimed, on_node):
        directory.mkdir()
        (directory / "part-0").write_text(f"rows of {directory.name}\n")
    modes: dict[str, Any] = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    volume = {**modes, "capacity": {"storage": "1Mi"}, "hostPath": {"path": str(claimed)}}
    claim = {**modes, "resources": {"requests": {"storage": "1Mi"}}, "volumeName": "training"}
    inputs = tuple(Input((each / "part-0").as_uri(), to=each.name, share="all") for each in (claimed, on_node))
    line = f"cat claimed/part-0 on-node/part-0; touch {claimed}/no || touch {on_node}/no || echo read only"
    volumes = f"{kubernetes.shared_dir},claim:training:{claimed}:ro,{on_node}:ro"
    with (
        existing(kubernetes, "/api/v1/persistentvolumes", {"metadata": {"name": "training"}, "spec": volume}),
        existing(kubernetes, f"{NAMESPACE}/persistentvolumeclaims", {"metadata": {"name": "training"}, "spec": claim}),
        engine_with(volumes=volumes) as engine,
    ):
        job = Job(engine, tmp_path, line, inputs=inputs)
        assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
        printed = b"".join(data for heading, data in engine.logs(job.id, None) if heading.endswith("stdout"))
        kubernetes.api().delete(f"{JOBS}/{job.id}?propagationPolicy=Background")  # its pods hold the claim
    assert printed.decode() == "rows of claimed\nrows of on-node\nread only\n"


def test_a_quota_that_is_used_up_is_told_in_the_clusters_words(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    quota = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.nvidia.com/gpu": "2"}}}
    role = {"resources": Resources(256, gpus=1), "replicas": 2}
    with existing(kubernetes, f"{NAMESPACE}/resourcequotas", quota) as path:
        until(lambda: kubernetes.api().get(path)["status"].get("used"), "the quota's figures")
        (tmp_path / "first").mkdir(), (tmp_path / "second").mkdir()
        first = Job(engine, tmp_path / "first", role=role)
        first.program(1)
        second = Job(engine, tmp_path / "second", role=role)
        said = "exceeded quota: team, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2"
        until(lambda: said in notes(second), "a note about the quota")
        (reason,) = engine.pending_reasons(second.id, None, {"worker": 2})
        assert said in reason.facts["text"]
        first.finish()
        assert first.ended().state is State.SUCCEEDED, first.report.diagnostics
        second.program(1)
        second.finish()
        assert second.ended().state is State.SUCCEEDED, second.report.diagnostics


def test_a_quota_without_room_for_the_master_is_told(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    quota = {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "2"}}}
    with existing(kubernetes, PODS, holder(0)), existing(kubernetes, PODS, holder(0, name="second")):
        with existing(kubernetes, f"{NAMESPACE}/resourcequotas", quota) as path:
            until(lambda: int(kubernetes.api().get(path)["status"].get("used", {}).get("pods", 0)) == 2, "its figures")
            job = Job(engine, tmp_path, "true")
            (reason,) = until(lambda: engine.pending_reasons(job.id, None, {}), "a reason")
            assert "exceeded quota: full, requested: pods=1, used: pods=" in reason.facts["text"]
            assert job.report.state is State.PENDING
        assert job.ended().state is State.SUCCEEDED, job.report.diagnostics


def test_a_gang_that_exceeds_a_quota_is_refused(kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"limits.memory": "1Gi"}}}
    with existing(kubernetes, f"{NAMESPACE}/resourcequotas", quota) as path:
        until(lambda: kubernetes.api().get(path)["status"].get("used"), "the quota's figures")
        role = {"command": "true", "replicas": 8, "resources": {"memory": "256MiB"}}
        done = submit(tmp_path, {"roles": {"worker": role}})
    assert done.returncode == 77, done.stderr
    words = "its pods need 2560Mi limits.memory, quota 'small' of the namespace howdah allows 1Gi"
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_preempted_task_is_told_and_starts_again(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    low, high = ({"metadata": {"name": name}, "value": value} for name, value in (("low", -10), ("high", 1000)))
    role = {"replicas": 2, "resources": Resources(256, gpus=4), "on_failure": "restart"}
    options = {"kubernetes": {"priority_class": "low"}}
    with existing(kubernetes, CLASSES, low), existing(kubernetes, CLASSES, high):
        job = Job(engine, tmp_path, role=role, engines=options)
        job.program(0), job.program(1)
        with existing(kubernetes, PODS, holder(2, "high")):
            until(lambda: "preempted" in job.causes(), "the preemption")
            until(lambda: "Insufficient nvidia.com/gpu" in notes(job), "a note that there is no room")
        preempted = [each.task.index for each in job.of(Ended) if each.exit.cause == "preempted"]
        job.program(preempted[0], 2)
        job.finish()
        assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    announced = job.of(LossAnnounced)
    assert [each.cause for each in announced] == ["preemption"]
    assert "the scheduler gave its room to a pod of higher priority" in str(announced[0].text)


def test_pods_have_the_labels_of_kueue_and_of_pod_groups(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    options = {"kubernetes": {"pod_group": "gang-7"}}
    job = Job(engine, tmp_path, role={"replicas": 2}, queue="team-a", engines=options, labels={"cost": "vision"})
    job.program(1)
    found = pods_of(kubernetes, job)
    assert len(found) == 2
    for each in (pod["metadata"] for pod in found):
        assert each["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
        assert each["labels"]["kueue.x-k8s.io/pod-group-name"] == job.id
        assert each["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "2"
        assert each["labels"]["scheduling.x-k8s.io/pod-group"] == "gang-7"
        assert each["labels"]["cost"] == "vision"
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics


def submit(directory: Path, job: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (directory / "job.json").write_text(json.dumps(job))
    command = [HOWDAH, "submit", "--on", "kubernetes", str(directory / "job.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


MISSING = {
    "image_pull_secrets": "has no Secret 'nosuch', which kubernetes.image_pull_secrets names",
    "environment_secrets": "has no Secret 'nosuch', which kubernetes.environment_secrets names",
    "task_service_account": 'serviceaccount "nosuch" not found',
    "claim": "has no PersistentVolumeClaim 'nosuch', which kubernetes.volumes or a mount names",
}


@pytest.mark.parametrize("option", MISSING)
def test_a_name_that_does_not_exist_is_told_before_anything_is_done(
    option: str, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    value = ["nosuch"] if option.endswith("secrets") else "nosuch"
    job: dict[str, Any] = {"engines": {"kubernetes": {option: value}}}
    if option == "claim":
        job = {"environment": {"image": IMAGE, "mounts": ["claim:nosuch:/data"]}}
    before = pods_in_namespace(kubernetes)
    done = submit(tmp_path, {"roles": {"worker": {"command": "true"}}, **job})
    assert done.returncode == 77, done.stderr
    assert MISSING[option] in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert pods_in_namespace(kubernetes) <= before


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_data_that_no_pod_mounts_is_refused(kind: str, kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("1\n")
    path = tmp_path / ("rows" if kind == "inputs" else "model")
    with engine_with(volumes=str(kubernetes.shared_dir)):
        done = submit(tmp_path, {"roles": {"worker": {"command": "true"}}, kind: [{"path": path.as_uri()}]})
    assert done.returncode == 64, done.stderr
    assert f"{kind}.0.path: is {path}, which pods do not mount: name its volume in kubernetes.volumes" in done.stderr


def pods_in_namespace(kubernetes: KubernetesSandbox) -> set[str]:
    return {pod["metadata"]["name"] for pod in kubernetes.api().get(PODS)["items"]}
