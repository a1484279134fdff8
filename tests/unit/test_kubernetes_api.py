"""Tests how the API of Kubernetes is called: connections that the server closes, servers behind a path, and watches."""

from __future__ import annotations

import socket
import sys
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes_server import KubernetesServer, kubernetes_server

from howdah.engines.kubernetes import api as kubernetes_api
from howdah.engines.kubernetes import kubeconfig
from howdah.engines.kubernetes.api import KubernetesApi
from howdah.engines.kubernetes.kubeconfig import ClusterAccess
from howdah.errors import EngineUnavailable


@pytest.fixture
def server() -> Iterator[KubernetesServer]:
    with kubernetes_server() as found:
        yield found


def api_of(server: KubernetesServer, directory: Path) -> KubernetesApi:
    return KubernetesApi(kubeconfig.load(str(server.kubeconfig(directory / "kubeconfig")), ""), "team")


@pytest.fixture
def connected() -> Iterator[list[int]]:
    """Give the ports to which this process connects from now on."""
    ports: list[int] = []
    active = True

    def note(event: str, arguments: Any) -> None:
        if active and event == "socket.connect":
            ports.append(arguments[1][1])

    sys.addaudithook(note)  # there is no way to remove it
    yield ports
    active = False


@pytest.mark.parametrize("closes", [False, True])
def test_every_connection_leads_to_the_server(
    closes: bool, server: KubernetesServer, connected: list[int], tmp_path: Path
) -> None:
    server.closes = closes
    api = api_of(server, tmp_path)
    for _ in range(3):  # the second one once went to port 80, without TLS
        assert api.get(api.path("jobs"))["items"] == []
    port = urllib.parse.urlsplit(server.url).port
    assert connected == [port] * (3 if closes else 1)
    api.close()


def test_a_server_behind_a_path(server: KubernetesServer, tmp_path: Path) -> None:
    server.prefix = "/k8s/clusters/c-1"
    api = api_of(server, tmp_path)
    server.add("pods", {"metadata": {"name": "p"}})
    assert api.get(api.path("pods", "p"))["metadata"]["name"] == "p"
    assert [event["type"] for event in api.watch(api.path("pods", a="b"), "0")] == ["BOOKMARK"]
    assert [call.split("?")[0] for call in server.calls] == [
        "GET /k8s/clusters/c-1/api/v1/namespaces/team/pods/p",
        "GET /k8s/clusters/c-1/api/v1/namespaces/team/pods",
    ]


def test_a_call_that_met_another_one_is_made_again(
    server: KubernetesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'Operation cannot be fulfilled on resourcequotas "team": the object has been modified; please try again'
    met, serve = [(409, {"message": said, "reason": "Conflict"})], server.serve
    monkeypatch.setattr(server, "serve", lambda *call: met.pop() if met else serve(*call))
    api = api_of(server, tmp_path)
    api.ensure("pods", {"metadata": {"name": "p"}})
    assert server.calls == ["POST /api/v1/namespaces/team/pods"] * 2
    assert list(server.objects["pods"]) == ["p"]
    monkeypatch.setattr(kubernetes_api, "BUSY_LIMIT_S", 0.0)
    met = [(409, {"message": said, "reason": "Conflict"})]
    with pytest.raises(EngineUnavailable, match=r"cannot answer now \(409\): Operation cannot be fulfilled"):
        api.ensure("pods", {"metadata": {"name": "q"}})


def test_watches_end_with_the_api() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    cluster = ClusterAccess(f"http://127.0.0.1:{listener.getsockname()[1]}", "team", "main", None, lambda: "")
    api, seen, first = KubernetesApi(cluster, "team"), [], threading.Event()

    def watch() -> None:
        try:
            for event in api.watch("/api/v1/namespaces/team/pods?a=b", "0"):
                seen.append(event)
                first.set()
        except EngineUnavailable as error:
            seen.append(error)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    with listener, listener.accept()[0] as connection:
        connection.recv(4096)
        connection.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"type": "BOOKMARK"}\n')
        assert first.wait(10.0)
        api.close()
        watching.join(10.0)
        assert not watching.is_alive()
    assert seen[0] == {"type": "BOOKMARK"}
