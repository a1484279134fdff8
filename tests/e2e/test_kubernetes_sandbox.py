"""Tests that the Kubernetes sandbox is a real, secured cluster, and that nothing of it is left when it is down."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import s3fs  # type: ignore[import-untyped]

from howdah.config.settings import resolve
from howdah.errors import SpecError
from howdah.sandbox import KubernetesSandbox
from howdah.sandbox.kubernetes.api import AdminApi
from howdah.sandbox.kubernetes.daemons import identity
from howdah.sandbox.kubernetes.shape import KubernetesShape, validate
from howdah.sandbox.process import Process

HOWDAH = str(Path(sys.executable).with_name("howdah"))
LIMIT_S = 120
PODS = "/api/v1/namespaces/howdah/pods"
LISTENER = """
import pathlib, socket
server = socket.create_server(("", 5000))
pathlib.Path("/shared/ready").write_text("")
peer, address = server.accept()
print("heard", peer.recv(100).decode(), "from", address[0])
"""


def until(what: str, found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come within {LIMIT_S} s")


def start_pod(api: AdminApi, name: str, *command: str, **details: Any) -> None:
    container = {"name": "main", "image": "sandbox.local/python:3", "imagePullPolicy": "Never", "command": command}
    container["resources"] = {"limits": {"cpu": "1", "memory": "64Mi"} | details.pop("limits", {})}
    container["volumeMounts"] = details.pop("mounts", [])
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **details}
    api.create(PODS, {"metadata": {"name": name}, "spec": spec})


def state_of(api: AdminApi, name: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"{PODS}/{name}")["status"]
    return found


def wait_phase(api: AdminApi, name: str, *phases: str) -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        status = state_of(api, name)
        return status if status["phase"] in phases else None

    status: dict[str, Any] = until(f"pod {name} {phases}", reached)
    return status


def ended(api: AdminApi, name: str) -> dict[str, Any]:
    """Return how the pod's container has ended."""
    status = wait_phase(api, name, "Succeeded", "Failed")
    found: dict[str, Any] = status["containerStatuses"][0]["state"]["terminated"]
    return found


@pytest.fixture
def api(kubernetes: KubernetesSandbox) -> Iterator[AdminApi]:
    """The administrator's API; pods of the test are gone after it."""
    found = kubernetes.api()
    yield found
    for pod in found.get(PODS)["items"]:
        found.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")


def test_two_nodes_offer_what_the_shape_says(kubernetes: KubernetesSandbox, api: AdminApi) -> None:
    nodes = api.ready_nodes()
    assert [node["metadata"]["name"] for node in nodes] == ["node1", "node2"]
    for node in nodes:
        offered = node["status"]["allocatable"]
        assert (offered["cpu"], offered["memory"], offered["nvidia.com/gpu"]) == ("8", "8Gi", "4")
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{kubernetes.version}"
    assert all(daemon.up for daemon in kubernetes.status())
    found = KubernetesSandbox.open(kubernetes.run_dir)
    assert found is not None
    assert found.is_up()


def test_a_pod_prints_ends_and_names_its_exit_code(api: AdminApi) -> None:
    start_pod(api, "good", "python3", "-c", "import ssl, sqlite3, sys; print('python', *sys.version_info[:2])")
    start_pod(api, "bad", "sh", "-c", "echo going; exit 7")
    assert ended(api, "good")["exitCode"] == 0
    assert api.text(f"{PODS}/good/log") == f"python {sys.version_info[0]} {sys.version_info[1]}\n"
    assert (ended(api, "bad")["exitCode"], ended(api, "bad")["reason"]) == (7, "Error")
    assert api.text(f"{PODS}/bad/log") == "going\n"


def test_a_pod_that_takes_too_much_memory_is_named(api: AdminApi) -> None:
    start_pod(api, "greedy", "python3", "-c", "taken = bytearray(300 << 20)")
    assert (ended(api, "greedy")["exitCode"], ended(api, "greedy")["reason"]) == (137, "OOMKilled")


def test_gpus_are_counted(api: AdminApi) -> None:
    start_pod(api, "four", "sleep", "600", limits={"nvidia.com/gpu": "4"})
    start_pod(api, "five", "sleep", "600", limits={"nvidia.com/gpu": "5"})
    wait_phase(api, "four", "Running")
    conditions = until("a verdict on pod five", lambda: state_of(api, "five").get("conditions"))
    assert conditions[0]["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in conditions[0]["message"]


def test_pods_of_two_nodes_this_machine_and_a_shared_directory_reach_each_other(
    kubernetes: KubernetesSandbox, api: AdminApi
) -> None:
    shared: dict[str, Any] = {
        "volumes": [{"name": "shared", "hostPath": {"path": str(kubernetes.shared_dir)}}],
        "mounts": [{"name": "shared", "mountPath": "/shared"}],
    }
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 5000), 30).send(sys.argv[2].encode())"
    for number, sender in enumerate(("pod", "machine")):
        start_pod(api, f"listener{number}", "python3", "-c", LISTENER, nodeName="node1", **shared)
        wait_phase(api, f"listener{number}", "Running")
        until("the file on the shared directory", (kubernetes.shared_dir / "ready").exists)
        (kubernetes.shared_dir / "ready").unlink()
        address = state_of(api, f"listener{number}")["podIP"]
        if sender == "pod":
            start_pod(api, "sender", "python3", "-c", connect, address, "pod", nodeName="node2")
            assert ended(api, "sender")["exitCode"] == 0
        else:
            subprocess.run([sys.executable, "-c", connect, address, "machine"], check=True, timeout=60)
        assert ended(api, f"listener{number}")["exitCode"] == 0
        assert f"heard {sender} from 10." in api.text(f"{PODS}/listener{number}/log")


def test_a_pod_reaches_the_apiserver_as_its_service_account(api: AdminApi) -> None:
    program = """
import json, os, ssl, urllib.error, urllib.request
here = "/var/run/secrets/kubernetes.io/serviceaccount"
url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/api/v1/namespaces/howdah/pods"
request = urllib.request.Request(url, headers={"Authorization": "Bearer " + open(f"{here}/token").read()})
try:
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=f"{here}/ca.crt"))
except urllib.error.HTTPError as error:
    print(json.load(error)["message"])
"""
    start_pod(api, "caller", "python3", "-c", program)
    assert ended(api, "caller")["exitCode"] == 0
    assert '"system:serviceaccount:howdah:default" cannot list resource "pods"' in api.text(f"{PODS}/caller/log")


def user_call(kubernetes: KubernetesSandbox, path: str, tmp_path: Path) -> int:
    """Return the status of a GET with the user's kubeconfig."""
    known = json.loads(kubernetes.kubeconfig.read_text())
    user, cluster = known["users"][0]["user"], known["clusters"][0]["cluster"]
    for name in ("client-certificate-data", "client-key-data"):
        (tmp_path / name).write_bytes(b64decode(user[name]))
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(tmp_path / "client-certificate-data", tmp_path / "client-key-data")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(cluster["server"] + path, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_user_may_use_one_namespace_only(kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    assert kubernetes.kubeconfig.stat().st_mode & 0o777 == 0o600
    paths = (PODS, "/api/v1/namespaces/default/pods", "/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets")
    assert [user_call(kubernetes, path, tmp_path) for path in paths] == [200, 403, 403, 403]


def test_the_s3_server_has_a_bucket_for_this_machine_and_pods(
    kubernetes: KubernetesSandbox, api: AdminApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kubernetes.client()
    put = """
import sys, urllib.request
headers = {"Content-Type": "text/plain"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], b"carried", headers, method="PUT"))
"""
    start_pod(api, "writer", "python3", "-c", put, f"{known['s3_endpoint']}/{known['s3_bucket']}/key")
    assert ended(api, "writer")["exitCode"] == 0
    for name, value in kubernetes.env().items():
        monkeypatch.setenv(name, value)
    there = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)  # another's has another's key
    assert there.cat(f"{known['s3_bucket']}/key") == b"carried"


def test_a_lost_node_is_noticed_and_comes_back(kubernetes: KubernetesSandbox, api: AdminApi) -> None:
    start_pod(api, "there", "sleep", "600", nodeName="node2")
    wait_phase(api, "there", "Running")
    kubernetes.stop("node2", signal.SIGKILL)
    try:
        kubernetes.wait_nodes(1)
        until("the eviction of its pod", lambda: api.get(f"{PODS}/there")["metadata"].get("deletionTimestamp"))
        reasons = [
            entry["reason"] for entry in state_of(api, "there")["conditions"] if entry["type"] == "DisruptionTarget"
        ]
        assert reasons == ["DeletionByTaintManager"]
    finally:
        kubernetes.start("node2")
        kubernetes.wait_nodes(2)
    assert kubernetes.is_up()
    start_pod(api, "again", "true", nodeName="node2")
    assert ended(api, "again")["exitCode"] == 0


def test_commands_show_it_and_point_clients_at_it(kubernetes: KubernetesSandbox, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "sandbox-kubernetes").symlink_to(kubernetes.run_dir)
    environment = {**os.environ, "HOWDAH_HOME": str(tmp_path)}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [HOWDAH, "sandbox", *arguments], env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout

    said = run("up", "--kubernetes")
    assert said.endswith(
        f"`howdah run job.yaml --on kubernetes` uses it; KUBECONFIG={tmp_path}/state/sandbox-kubernetes/kubeconfig\n"
    )
    titles = [json.loads(line)["title"] for line in run("status", "--json").splitlines()]
    assert {"etcd", "kube-apiserver", "kubelet", "containerd"} <= set(titles)
    variables = dict(re.findall(r"^export (\w+)=(.*)$", run("env"), re.MULTILINE))
    assert Path(variables["KUBECONFIG"]).samefile(kubernetes.kubeconfig)
    assert variables["AWS_ENDPOINT_URL"] == kubernetes.client()["s3_endpoint"]
    settings = resolve({}, environment)
    assert Path(settings["kubernetes.kubeconfig"]).samefile(kubernetes.kubeconfig)
    assert settings["kubernetes.home"] == f"file://{kubernetes.shared_dir}/howdah"


def test_another_shape_is_refused_while_up(kubernetes: KubernetesSandbox) -> None:
    with pytest.raises(SpecError, match=r"nodes 2 \(asked for: 3\).*sandbox down --kubernetes"):
        KubernetesSandbox(kubernetes.run_dir, nodes=3).up()


def test_a_shape_that_cannot_be_is_refused_in_one_go() -> None:
    with pytest.raises(SpecError) as refused:
        validate(KubernetesShape(nodes=0, memory_mib=1))
    assert "nodes" in str(refused.value)
    assert "memory_mib" in str(refused.value)


def traces(run_dir: Path) -> dict[str, list[str]]:
    """Return what of a sandbox this machine has."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(run_dir).encode() in (entry / "cmdline").read_bytes():
                processes.append(entry.name)
        except OSError:
            continue
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(run_dir) in line]
    interfaces = [path.name for path in Path("/sys/class/net").glob(f"*{identity(run_dir)}*")]
    groups = os.walk("/sys/fs/cgroup")  # those of other clusters come and go
    cgroups = [f"{above}/{name}" for above, names, _ in groups for name in names if identity(run_dir) in name]
    return {"processes": processes, "mounts": mounts, "interfaces": interfaces, "cgroups": cgroups}


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_is_left(kubernetes: KubernetesSandbox, tmp_path: Path, killed: bool) -> None:
    run_dir = tmp_path / "run"
    small = KubernetesSandbox(run_dir, nodes=1, cache=kubernetes.cache)
    small.up()
    try:
        api = small.api()
        start_pod(api, "running", "sleep", "600")
        wait_phase(api, "running", "Running")
        found = traces(run_dir)
        assert found["mounts"] == []  # all of them are in the nodes' namespaces
        assert all(found[kind] for kind in ("processes", "interfaces", "cgroups"))
        if killed:
            known = [Process.from_pid(daemon.pid) for daemon in small.status() if daemon.pid]
            victims = [process for process in known if process]
            for process in victims:
                process.send(signal.SIGKILL)
            until("their end", lambda: not any(process.alive() for process in victims))
            assert not small.is_up()
            small.up()  # goes on with its data
            assert wait_phase(small.api(), "running", "Failed")
    finally:
        small.down()
    assert not run_dir.exists()
    assert traces(run_dir) == {"processes": [], "mounts": [], "interfaces": [], "cgroups": []}
