"""Tests what jobs on a real Kubernetes survive: killed programs, executors and masters, evictions, lost nodes; how they
end when they are cancelled or fail; and what people are told when something is wrong."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from kubernetes_jobs import JOBS, evict, opened_engine, pods_of
from live_tree import find
from submitted_job import WAITING, until
from submitted_job import SubmittedJob as Job

from howdah.client.master_client import connect
from howdah.engines.kubernetes import manifests
from howdah.engines.kubernetes.engine import KubernetesEngine
from howdah.engines.kubernetes.port_forward import PodForward
from howdah.sandbox import KubernetesSandbox
from howdah.spec import JobReport, Resources, State, TaskId, uris
from howdah.spec.event_lines import read_log
from howdah.spec.events import AllocationLost, Launched, LossAnnounced, Noted, TookOver
from howdah.wire.connection import WireError

HOWDAH = str(Path(sys.executable).with_name("howdah"))


pytestmark = pytest.mark.usefixtures("kubernetes_settings")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture
def engine() -> Iterator[KubernetesEngine]:
    with opened_engine() as found:
        yield found


def test_too_much_memory_is_named(engine: KubernetesEngine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, 'exec python3 -c "x = bytes(range(256)) * (600 << 12)"')
    assert job.ended().state is State.FAILED
    assert job.causes() == ["memory"]


def test_an_evicted_task_is_told_and_starts_elsewhere(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    line = f"echo printed in $HOSTNAME; {WAITING.format(mark=tmp_path / 'mark')}"
    job = Job(engine, tmp_path, line, role={"on_failure": "restart", "replicas": 2})
    job.program(0), job.program(1)
    evicted = job.launched(0).container.id
    evict(kubernetes, evicted)
    job.program(0, 2)
    until(lambda: evicted not in [pod["metadata"]["name"] for pod in pods_of(kubernetes, job)], "the end of its pod")
    printed = dict(engine.logs(job.id, TaskId("worker", 0), "stdout"))
    containers = [evicted, job.launched(0).container.id]
    for attempt, container in enumerate(containers, 1):
        assert printed[f"worker:0 attempt {attempt} stdout"].decode() == f"printed in {container}\n"
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert [each.cause for each in job.of(LossAnnounced)] == ["decommission"]
    assert len([each for each in job.of(Launched) if each.task == TaskId("worker", 1)]) == 1


def test_an_evicted_master_is_followed_by_another(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    job = Job(engine, tmp_path, role={"replicas": 2})
    job.program(0), job.program(1)
    (master,) = pods_of(kubernetes, job, manifests.MASTER)
    evict(kubernetes, master["metadata"]["name"])
    until(lambda: job.of(TookOver), "the next master")
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert len(job.of(Launched)) == 2, "taking over restarts nothing"
    assert [each.comes_back for each in job.of(AllocationLost)] == [True]


def test_a_job_goes_on_while_the_api_server_is_restarted(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    job = Job(engine, tmp_path, role={"replicas": 2})
    programs = [job.program(0), job.program(1)]
    log = Path(uris.path(job.report.directory), "events.jsonl")

    def is_noted(words: str) -> bool:
        events = read_log(log.read_text().splitlines())
        return any(words in str(each.text) for each in events if isinstance(each, Noted))

    kubernetes.stop("apiserver")
    try:
        until(lambda: is_noted("containers run on, trying again for 15 min"), "a note that nobody answers")
    finally:
        kubernetes.start("apiserver")
        kubernetes.wait_nodes(2)
    until(lambda: is_noted("Kubernetes answers again after"), "a note that it answers")
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert len(job.of(Launched)) == 2, "nothing was restarted"
    assert [job.program(0), job.program(1)] == programs


def test_a_taint_for_which_a_task_must_go_is_announced(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    role = {"on_failure": "restart", "resources": Resources(256, gpus=3)}
    job = Job(engine, tmp_path, role=role)
    job.program()
    node = f"/api/v1/nodes/{job.launched().container.node}"
    try:
        taint = {"key": "repair", "value": "yes", "effect": "NoExecute"}
        kubernetes.api().merge(node, {"spec": {"taints": [taint]}})
        job.program(0, 2)
    finally:
        kubernetes.api().merge(node, {"spec": {"taints": None}})
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert [each.cause for each in job.of(LossAnnounced)] == ["decommission"]
    assert job.causes()[0] == "withdrawn"


def test_a_master_on_a_lost_node_is_followed_by_another(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    role = {"on_failure": "restart", "replicas": 2, "resources": Resources(256, gpus=3)}
    job = Job(engine, tmp_path, role=role)
    job.program(0), job.program(1)
    (master,) = pods_of(kubernetes, job, manifests.MASTER)
    node = master["spec"]["nodeName"]
    kubernetes.stop(node)
    try:
        # Kubernetes starts no other pod while the node may come back: an administrator says that it does not.
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        kubernetes.api().merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
        until(lambda: job.of(TookOver), "the next master")
    finally:
        kubernetes.api().merge(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})
        kubernetes.start(node)
        kubernetes.wait_nodes(2)
    until(lambda: len(job.of(Launched)) > 2, "the task in the place of the one that was on the node")
    job.finish()
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics


def test_deleting_the_job_cancels_it_and_leaves_nothing(
    engine: KubernetesEngine, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    job = Job(engine, tmp_path, role={"replicas": 2})
    job.program(0), job.program(1)
    kubernetes.api().delete(f"{JOBS}/{job.id}?propagationPolicy=Background")
    until(
        lambda: not pods_of(kubernetes, job) and not pods_of(kubernetes, job, manifests.MASTER), "the end of all pods"
    )
    assert job.ended().state is State.CANCELLED, job.report
    for kind in ("secrets", "configmaps"):
        found = kubernetes.api().get(f"/api/v1/namespaces/howdah/{kind}?labelSelector={manifests.JOB}%3D{job.id}")
        assert found["items"] == []


def test_a_job_waits_for_room_in_the_clusters_own_words(engine: KubernetesEngine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"resources": Resources(256, gpus=64)})
    reason = until(lambda: engine.pending_reasons(job.id, None, {"worker": 1}), "a reason")
    assert "Insufficient nvidia.com/gpu" in reason[0].facts["text"]
    engine.cancel(job.id)
    assert job.ended().state is State.CANCELLED


def test_an_image_that_is_not_there_is_named(engine: KubernetesEngine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"image": "Not An Image"})
    assert job.ended().state is State.FAILED
    assert job.causes() == ["image"]
    assert "InvalidImageName" in job.report.diagnostics


def test_an_image_that_no_registry_has_is_named(engine: KubernetesEngine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path, role={"image": "127.0.0.1:9/team/nosuch:1"})
    waits = until(lambda: engine.pending_reasons(job.id, None, {}), "a reason")[0].facts["text"]
    assert job.ended().state is State.FAILED
    assert job.causes() == ["image"]
    for text in (waits, job.report.diagnostics):
        assert "127.0.0.1:9/team/nosuch:1" in text


def test_the_api_server_forwards_a_port_to_the_master(engine: KubernetesEngine, tmp_path: Path) -> None:
    job = Job(engine, tmp_path)
    job.program()
    report = until(
        lambda: next((each for each in engine.describe(job.id) if each.master), None), "the master's address"
    )
    (pod,) = engine._master_pods(**{manifests.JOB: job.id}).values()
    forward = PodForward(engine._api, pod["metadata"]["name"], report.master)
    client = connect(engine, JobReport(**{**vars(report), "master": f"http://{forward.address}"}))
    assert client is not None
    failures: list[WireError] = []

    def events() -> object:
        try:
            return client.events(0, 0.0).events
        except WireError as error:  # a call has 5 s; a busy kubelet needs longer for the first
            failures[:] = [error]
            return None

    with client:
        try:
            until(events, "events through the forwarded port")
        finally:
            print("the last failure:", *failures)
        client.cancel("tester")
    assert job.ended().state is State.CANCELLED
    forward.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(forward.address.partition(":")[2])), 5.0)


# What is wrong is one line, and nothing is left

WRONG: dict[str, tuple[dict[str, str], int, str]] = {
    "namespace": ({"NAMESPACE": "nosuch"}, 77, "nosuch"),
    "account": ({"SERVICE_ACCOUNT": "nosuch"}, 77, 'serviceaccount "nosuch" not found'),
    "context": ({"CONTEXT": "nosuch"}, 64, "kubernetes.context: is 'nosuch'"),
    "kubeconfig": ({"KUBECONFIG": "/nowhere"}, 64, "no such file: /nowhere"),
    "image": ({"IMAGE": ""}, 64, "pods need an image"),
    "home": ({"HOME": "file:///nowhere/howdah"}, 64, "kubernetes.home"),
    "class": ({"PRIORITY_CLASS": "nosuch"}, 77, "no PriorityClass with name nosuch was found"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_before_anything_is_done(
    what: str, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    changes, code, text = WRONG[what]
    (tmp_path / "job.yaml").write_text("roles: {worker: {command: 'true'}}\n")
    before = everything(kubernetes)
    with pytest.MonkeyPatch.context() as changed:
        for name, value in changes.items():
            changed.setenv(f"HOWDAH_KUBERNETES_{name}", value)
        command = [HOWDAH, "submit", "--on", "kubernetes", str(tmp_path / "job.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert everything(kubernetes) <= before


def everything(kubernetes: KubernetesSandbox) -> set[str]:
    """Return the names of the namespace's objects, and of the files of jobs."""
    api, jobs = kubernetes.api(), Path(uris.path(kubernetes.settings()["kubernetes.home"]), "jobs")
    paths = [JOBS, *(f"/api/v1/namespaces/howdah/{kind}" for kind in ("pods", "secrets", "configmaps"))]
    found = {f"{path}/{each['metadata']['name']}" for path in paths for each in api.get(path)["items"]}
    return found | {str(file) for file in find(jobs, "*")}


def test_a_server_that_is_down_is_named(kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(kubernetes.client()["kubeconfig"]).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    (tmp_path / "job.yaml").write_text("roles: {worker: {command: 'true'}}\n")
    before = everything(kubernetes)
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("HOWDAH_KUBERNETES_KUBECONFIG", str(tmp_path / "config"))
        for command in (["list"], ["submit", str(tmp_path / "job.yaml")]):
            line = [HOWDAH, *command, "--on", "kubernetes"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=120)
            assert done.returncode == 69, done.stderr
            assert "https://127.0.0.1:9" in done.stderr
            assert "Connection refused" in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert everything(kubernetes) <= before


def expired_certificate(kubernetes: KubernetesSandbox, directory: Path) -> dict[str, str]:
    """Return a user with a certificate of the cluster's own authority that was valid until yesterday."""
    authority = kubernetes.run_dir / "certificates"
    signer = ["-CA", str(authority / "ca.crt"), "-CAkey", str(authority / "ca.key"), "-CAcreateserial"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "own.key"]
    for command in (
        ["openssl", "req", "-new", *key, "-subj", "/CN=user", "-out", "own.csr"],
        ["openssl", "x509", "-req", "-in", "own.csr", *signer, "-days", "-1", "-out", "own.crt"],
    ):
        subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=60)
    return {"client-certificate": "own.crt", "client-key": "own.key"}


def expired_token(kubernetes: KubernetesSandbox, _: Path) -> dict[str, str]:
    """Return a user with a token that the cluster has signed, and whose time is over."""
    claims = {
        "iss": "https://kubernetes.default.svc",
        "aud": ["https://kubernetes.default.svc"],
        "sub": "system:serviceaccount:howdah:howdah-master",
        "iat": int(time.time()) - 7200,
        "exp": int(time.time()) - 3600,
    }
    parts = [{"alg": "ES256", "typ": "JWT"}, claims]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    pem = (kubernetes.run_dir / "certificates" / "service-accounts.key").read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    numbers = decode_dss_signature(key.sign(text, ec.ECDSA(hashes.SHA256())))
    signature = base64.urlsafe_b64encode(b"".join(number.to_bytes(32, "big") for number in numbers)).rstrip(b"=")
    return {"token": (text + b"." + signature).decode()}


@pytest.mark.parametrize("user", [expired_certificate, expired_token])
def test_credentials_that_have_expired_are_named_in_one_line(
    user: Callable[[KubernetesSandbox, Path], dict[str, str]], kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    config = yaml.safe_load(Path(kubernetes.client()["kubeconfig"]).read_text())
    config["users"][0]["user"] = user(kubernetes, tmp_path)
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    (tmp_path / "job.yaml").write_text("roles: {worker: {command: 'true'}}\n")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("HOWDAH_KUBERNETES_KUBECONFIG", str(tmp_path / "config"))
        for command in (["list"], ["submit", str(tmp_path / "job.yaml")]):
            line = [HOWDAH, *command, "--on", "kubernetes"]
            done = subprocess.run(line, capture_output=True, text=True, timeout=120)
            assert done.returncode == 77, done.stderr
            assert "it does not accept these credentials: they may have expired" in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1, done.stderr
