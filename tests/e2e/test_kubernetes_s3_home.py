"""Tests Kubernetes with a home on an object store, where pods and this machine have no directory in common: whole jobs,
what the command line says of them, a killed master, and what happens if the store does not take a job."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from clusters import HOWDAH, KubernetesCluster, ScenarioJob
from kubernetes_jobs import evict
from kubernetes_setup import object_store_home
from submitted_job import LIMIT_S, until

from howdah.client.job_end import report_of
from howdah.engines.kubernetes import manifests
from howdah.sandbox import KubernetesSandbox
from howdah.spec import State
from howdah.spec.events import Launched, TookOver
from howdah.storage.factory import filesystem
from howdah.storage.fsspec_adapter import FsspecFileSystem
from howdah.testing.engine_contract import EngineContract

NAMESPACE = "/api/v1/namespaces/howdah"
WAITING = "trap 'exit 0' USR1; echo begun; while :; do sleep 0.2; done"


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


@pytest.fixture(scope="module")
def store(kubernetes: KubernetesSandbox) -> Iterator[str]:
    with object_store_home(kubernetes) as home:
        yield home


@pytest.fixture
def cluster(request: pytest.FixtureRequest, store: str, tmp_path: Path) -> Iterator[KubernetesCluster]:
    """Give the cluster; what still runs there after a test is cancelled."""
    found = KubernetesCluster(request, tmp_path)
    yield found
    engine = found.engine()
    for report in engine.describe():
        if not report.state.ended:
            engine.cancel(report.id)


def howdah(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [HOWDAH, *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def test_a_job_with_nothing_but_the_store(store: str, tmp_path: Path) -> None:
    files = filesystem(store)
    (tmp_path / "program.py").write_text(
        "import os, pathlib\n"
        "print(pathlib.Path('note.txt').read_text(), pathlib.Path('packed/inner.txt').read_text())\n"
        "print(sorted(path.read_text() for path in pathlib.Path('data').rglob('*.txt')))\n"
        "pathlib.Path('output').mkdir()\n"
        "pathlib.Path('output/model').write_text('trained')\n"
    )
    (tmp_path / "note.txt").write_text("a file")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("inner.txt", "an archive")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "one.txt").write_text("here")
    files.write_bytes(f"{store}-data/two.txt", b"there")
    (tmp_path / "job.yaml").write_text(f"""
name: on a store
files: [program.py, note.txt]
archives: ['packed.zip#packed']
inputs:
- {{path: data, to: data/local}}
- {{path: '{store}-data', to: data/stored}}
outputs: [{{path: '{store}-out', from: output, tasks: 'worker:0'}}]
roles: {{worker: {{command: python3 program.py, resources: {{memory: 256MiB}}}}}}
timeouts: {{stop: 1s}}
""")
    done = howdah("run", "--on", "kubernetes", str(tmp_path / "job.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    job_id = next(word for word in done.stderr.split() + done.stdout.split() if word.startswith("kubernetes-"))
    job_id = job_id.strip(".,:()")
    assert files.read_bytes(f"{store}-out/model") == b"trained"
    logs = howdah("logs", job_id)
    assert logs.returncode == 0, logs.stderr
    assert "a file an archive\n['here', 'there']" in "\n".join(
        line.rpartition("| ")[2] for line in logs.stdout.splitlines()
    )
    assert f"{job_id}" in howdah("list", "--on", "kubernetes").stdout
    status = howdah("status", job_id)
    assert "SUCCEEDED" in status.stdout, status.stdout + status.stderr
    explained = howdah("explain", job_id)
    assert explained.returncode == 0, explained.stderr
    stored = b"".join(files.read_bytes(entry.uri) for entry in files.walk(f"{store}/jobs/{job_id}"))
    assert b"hush" not in stored
    assert not files.exists(f"{store}/jobs/{job_id}/key"), "a master removes the key last"


def test_a_killed_master_is_followed_by_another(cluster: KubernetesCluster, tmp_path: Path) -> None:
    job = ScenarioJob(cluster, tmp_path, WAITING, {"replicas": 2})
    programs = [job.program(index) for index in (0, 1)]
    os.kill(job.master(), signal.SIGKILL)
    until(lambda: job.of(TookOver), "the next master")
    assert [job.program(index) for index in (0, 1)] == programs
    for program in programs:
        os.kill(program, signal.SIGUSR1)
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert [each.attempt for each in job.of(Launched)] == [1, 1], "taking over restarts nothing"


def test_an_evicted_master_is_followed_by_another(
    cluster: KubernetesCluster, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    job = ScenarioJob(cluster, tmp_path, WAITING)
    program = job.program()
    selector = f"{manifests.JOB}%3D{job.id},{manifests.ROLE}%3D{manifests.MASTER}"
    (pod,) = kubernetes.api().get(f"{NAMESPACE}/pods?labelSelector={selector}")["items"]
    evict(kubernetes, pod["metadata"]["name"])
    until(lambda: job.of(TookOver), "the next master")
    os.kill(program, signal.SIGUSR1)
    assert job.ended().state is State.SUCCEEDED, job.report.diagnostics
    assert len(job.of(Launched)) == 1, "taking over restarts nothing"


def test_a_job_is_followed_and_cancelled(cluster: KubernetesCluster, tmp_path: Path) -> None:
    job = ScenarioJob(cluster, tmp_path, WAITING, {"replicas": 2})
    job.program(0), job.program(1)
    key = job.engine.job_key(report_of(job.engine, job.id))
    assert key, "the key is in the job's Secret"
    shown = howdah("logs", job.id, "worker:0")
    assert "begun" in shown.stdout, shown.stderr
    done = howdah("cancel", job.id)
    assert done.returncode == 0, done.stderr
    assert job.ended().state is State.CANCELLED
    assert "cancelled by " in job.report.diagnostics
    until(lambda: not job.left(), f"the end of all processes of {job.id}")
    until(lambda: job.engine.job_key(job.report) is None, "the removal of the key")
    assert "begun" in howdah("logs", job.id).stdout


def test_a_master_that_starts_too_late_says_so(
    cluster: KubernetesCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """moto does not look at the end of a URL's time: it does not find the object instead."""
    signed_url = FsspecFileSystem.signed_url
    monkeypatch.setattr(FsspecFileSystem, "signed_url", lambda *given: signed_url(*given).replace("?", "-gone?"))
    monkeypatch.setattr("howdah.engines.kubernetes.engine.SIGNED_S", 1)
    job = ScenarioJob(cluster, tmp_path, "true")
    assert job.ended().state is State.FAILED
    assert "a master can start for" in job.report.diagnostics


# What is wrong is one line, and nothing is left


def left(cluster: KubernetesCluster, kubernetes: KubernetesSandbox, store: str) -> set[str]:
    kinds = ("secrets", "configmaps")
    found = [entry for kind in kinds for entry in kubernetes.api().get(f"{NAMESPACE}/{kind}")["items"]]
    jobs = filesystem(store).walk(f"{store}/jobs") if filesystem(store).exists(f"{store}/jobs") else ()
    return {
        *(report.id for report in cluster.engine().describe()),
        *(entry["metadata"]["name"] for entry in found),
        *(entry.uri for entry in jobs),
    }


def submit(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "job.yaml").write_text("roles: {worker: {command: 'true'}}\n")
    return howdah("submit", "--on", "kubernetes", str(tmp_path / "job.yaml"), **environment)


def test_a_wrong_bucket(cluster: KubernetesCluster, kubernetes: KubernetesSandbox, store: str, tmp_path: Path) -> None:
    before = left(cluster, kubernetes, store)
    done = submit(tmp_path, HOWDAH_KUBERNETES_HOME="s3://no-such-bucket/howdah")
    assert done.returncode == 66, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "s3://no-such-bucket/howdah" in line
    assert "the specified bucket does not exist" in line
    assert left(cluster, kubernetes, store) == before
    assert not fsspec.filesystem("s3").exists("s3://no-such-bucket")


def test_wrong_credentials(
    cluster: KubernetesCluster, kubernetes: KubernetesSandbox, store: str, tmp_path: Path
) -> None:
    before = left(cluster, kubernetes, store)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    strict = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "1"}  # from the second call on keys must be right
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env=strict, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        made = urllib.request.Request(f"http://127.0.0.1:{port}/bucket", method="PUT")
        until(lambda: answers(made), "the store")
        done = submit(
            tmp_path,
            AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}",
            AWS_ACCESS_KEY_ID="nobody",
            HOWDAH_KUBERNETES_HOME="s3://bucket/howdah",
        )
    finally:
        server.kill()
        server.wait()
    assert done.returncode == 66, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert "s3://bucket/howdah" in line
    assert "key id you provided does not exist" in line or "forbidden" in line
    assert "hush" not in line
    assert left(cluster, kubernetes, store) == before


def answers(request: urllib.request.Request) -> bool:
    try:
        urllib.request.urlopen(request, timeout=10).close()
    except OSError:
        return False
    return True


def test_pods_without_access_to_the_store(cluster: KubernetesCluster, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOWDAH_KUBERNETES_ENVIRONMENT_SECRETS", "")
        job = ScenarioJob(cluster, tmp_path, "true")
    assert job.ended().state is State.FAILED
    assert "credentials" in job.report.diagnostics, job.report.diagnostics


def test_a_home_that_is_neither(tmp_path: Path, store: str) -> None:
    done = submit(tmp_path, HOWDAH_KUBERNETES_HOME="ftp://host/howdah")
    assert done.returncode == 64, done.stderr
    assert "kubernetes.home: is 'ftp://host/howdah', must be a directory" in done.stderr


class TestKubernetesEngineOnObjectStore(EngineContract):
    name = "kubernetes"

    @pytest.fixture(autouse=True)
    def programs_see_this_machine(self, kubernetes: KubernetesSandbox, store: str) -> Iterator[None]:
        """Let programs see the temporary directory, in which the suite looks for what they do."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HOWDAH_KUBERNETES_VOLUMES", "/tmp")
            yield
