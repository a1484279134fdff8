"""Tests the engine of Kubernetes by the engines' contract, and from a machine that reaches no pod."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_jobs import opened_engine, pods_of
from submitted_job import WAITING, until
from submitted_job import SubmittedJob as Job

from howdah.client import history_service
from howdah.sandbox import KubernetesSandbox
from howdah.testing.engine_contract import EngineContract

HOWDAH = str(Path(sys.executable).with_name("howdah"))

pytestmark = pytest.mark.usefixtures("kubernetes_settings")


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Start no Hadoop for these tests."""


class TestKubernetesEngine(EngineContract):
    name = "kubernetes"


FETCH = """import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], timeout=60).read().decode())"""


def addresses_of(pods: list[dict[str, Any]]) -> list[str]:
    """Return the pods' addresses, which the cluster tells some time after their programs have begun."""
    return [pod["status"]["podIP"] for pod in pods if "podIP" in pod["status"]]


class Laptop:
    """A network with a leg in the cluster's, and no route to its pods; `inside` begins a command that runs there."""

    def __init__(self, kubernetes: KubernetesSandbox, holder: int) -> None:
        cluster = kubernetes._loaded()
        self.inside = ["nsenter", f"--net=/proc/{holder}/ns/net"]
        control = ["nsenter", f"--net=/proc/{cluster.processes['control'].pid}/ns/net"]
        address = f"10.{cluster.record.network.second}.0.200/24"
        for command in (
            [*control, "ip", "link", "add", "laptop", "type", "veth", "peer", "name", "eth0", "netns", str(holder)],
            [*control, "ip", "link", "set", "laptop", "master", "bridge", "up"],
            [*self.inside, "ip", "link", "set", "lo", "up"],
            [*self.inside, "ip", "address", "add", address, "dev", "eth0"],
            [*self.inside, "ip", "link", "set", "eth0", "up"],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=60)

    def run(self, *command: str) -> str:
        done = subprocess.run([*self.inside, *command], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def printed_link(self, *command: str) -> Iterator[str]:
        """Yield the link that a command prints, and on which it stays; end it by Ctrl-C."""
        with subprocess.Popen([*self.inside, *command], stdout=subprocess.PIPE, text=True) as running:
            try:
                assert running.stdout is not None
                line = running.stdout.readline()
                assert line, "no link is printed"
                yield line.split()[-1]
                assert running.poll() is None, "the link leads through the command"
            finally:
                running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0

    def fetch(self, link: str, path: str) -> str:
        address = urllib.parse.urlsplit(link)
        token = dict(urllib.parse.parse_qsl(f"{address.query}&{address.fragment}"))["token"]
        url = f"http://{address.netloc}{address.path}{path}?token={urllib.parse.quote(token)}"
        return self.run(sys.executable, "-c", FETCH, url)


@pytest.fixture
def laptop(kubernetes: KubernetesSandbox) -> Iterator[Laptop]:
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as holder:
        try:
            own = Path("/proc/self/ns/net").readlink()
            until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own, "the namespace")
            yield Laptop(kubernetes, holder.pid)
        finally:
            holder.kill()


def test_a_laptop_reaches_a_job_through_the_api_server(
    laptop: Laptop, kubernetes: KubernetesSandbox, tmp_path: Path
) -> None:
    with opened_engine() as engine:
        job = Job(engine, tmp_path, f"echo printed there; {WAITING.format(mark=tmp_path / 'mark')}")
        job.program()
        (address,) = until(lambda: addresses_of(pods_of(kubernetes, job)), "the address of the pod")
        connect = [sys.executable, "-c", "import socket, sys; socket.create_connection((sys.argv[1], 80), 5)", address]
        refused = subprocess.run([*laptop.inside, *connect], capture_output=True, text=True)
        assert "Network is unreachable" in refused.stderr, "the pods' network must not lead there"
        said = laptop.run(HOWDAH, "status", job.id)
        assert f"page: `howdah page {job.id}`" in said
        assert "127.0.0.1" not in said, "the end of a tunnel whose process has ended"
        assert "worker:0" in said, "only the master knows the tasks"
        assert "printed there" in laptop.run(HOWDAH, "logs", job.id)
        with laptop.printed_link(HOWDAH, "page", job.id) as link:
            assert link.startswith("http://127.0.0.1:")
            assert job.id in laptop.fetch(link, f"api/v1/jobs/{job.id}")
        laptop.run(HOWDAH, "cancel", job.id)


def test_a_laptop_reaches_the_history_server_in_the_cluster(laptop: Laptop) -> None:
    with opened_engine() as engine, laptop.printed_link(HOWDAH, "history", "--on", "kubernetes") as link:
        assert link.startswith("http://127.0.0.1:")
        service = history_service.find_running_service(engine)
        assert service is not None
        until(lambda: service.id in laptop.fetch(link, "api/v1/jobs"), "the server's own job among all jobs")
