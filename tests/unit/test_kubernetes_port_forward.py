"""Tests the forwarding of ports with a server that speaks the protocol of `kubectl port-forward`, with TLS and
without."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from howdah.engines.kubernetes.api import KubernetesApi
from howdah.engines.kubernetes.kubeconfig import ClusterAccess
from howdah.engines.kubernetes.port_forward import PodForward
from howdah.errors import EngineUnavailable

PROTOCOL, LIMIT_S, MIB = "v4.channel.k8s.io", 20.0, 1 << 20
Serve = Callable[[ServerConnection], None]


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-nodes"]
    files = ["-keyout", str(base / "key"), "-out", str(base / "crt")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    subprocess.run(["openssl", "req", "-x509", *kind, *subject, *files], check=True, capture_output=True, timeout=60)
    return base / "crt", base / "key"


@pytest.fixture(params=["plain", "tls"])
def forwards(request: pytest.FixtureRequest, certificate: tuple[Path, Path]) -> Iterator[Callable[[Serve], PodForward]]:
    """Give what makes a forward to a pod whose connections a function serves."""
    servers: list[Server] = []
    made: list[PodForward] = []

    def make(serve_pod: Serve) -> PodForward:
        def handle(connection: ServerConnection) -> None:
            port = (7001).to_bytes(2, "little")
            with contextlib.suppress(ConnectionClosed):
                connection.send(b"\0" + port)
                connection.send(b"\1" + port)
            serve_pod(connection)

        within = request.param == "tls"
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if within else None
        if tls is not None:
            tls.load_cert_chain(*certificate)
        protocols = [PROTOCOL]
        server = serve(handle, "127.0.0.1", 0, subprotocols=protocols, ssl=tls, max_size=None)  # type: ignore[arg-type]
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        trusted = ssl.create_default_context(cafile=str(certificate[0])) if within else None
        url = f"http{'s' if within else ''}://127.0.0.1:{server.socket.getsockname()[1]}/k8s/c-1"
        api = KubernetesApi(ClusterAccess(url, "team", "main", trusted, lambda: "token-of-alice"), "team")
        made.append(PodForward(api, "pod", "http://10.1.1.1:7001"))
        return made[-1]

    yield make
    for forward in made:
        forward.close()
    for server in servers:
        server.shutdown()


def connected(forward: PodForward) -> socket.socket:
    host, _, port = forward.address.partition(":")
    return socket.create_connection((host, int(port)), LIMIT_S)


def echo(connection: ServerConnection) -> None:
    for message in connection:
        connection.send(message)


def read(near: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (data := near.recv(MIB)):
        found += data
    return found


def test_data_goes_both_ways_at_once(forwards: Callable[[Serve], PodForward]) -> None:
    seen: list[str] = []

    def serve_pod(connection: ServerConnection) -> None:
        assert connection.request is not None
        seen.extend([connection.request.path, connection.request.headers["Authorization"]])
        echo(connection)

    with connected(forwards(serve_pod)) as near:
        data = bytes(range(256)) * (8 * MIB // 256)
        sender = threading.Thread(target=near.sendall, args=(data,), daemon=True)
        sender.start()
        assert read(near, len(data)) == data
        sender.join(LIMIT_S)
    assert seen == ["/k8s/c-1/api/v1/namespaces/team/pods/pod/portforward?ports=7001", "Bearer token-of-alice"]


def test_a_message_in_several_frames(forwards: Callable[[Serve], PodForward]) -> None:
    with connected(forwards(lambda connection: connection.send([b"\0one ", b"two ", b"three"]))) as near:
        assert read(near, 99) == b"one two three", "and then the end, as the far side has ended"


def test_a_far_side_that_breaks_ends_the_near_side(forwards: Callable[[Serve], PodForward]) -> None:
    def serve_pod(connection: ServerConnection) -> None:
        connection.send(b"\0half")
        connection.recv()
        connection.socket.shutdown(socket.SHUT_RDWR)  # without a word of the protocol

    with connected(forwards(serve_pod)) as near:
        assert near.recv(99) == b"half"
        near.sendall(b"go")
        assert read(near, 99) == b""


def test_what_the_server_says_of_an_error_is_shown(
    forwards: Callable[[Serve], PodForward], capfd: pytest.CaptureFixture[str]
) -> None:
    def serve_pod(connection: ServerConnection) -> None:
        connection.send(b"\1connection refused\n")
        with pytest.raises(ConnectionClosed):
            connection.recv(LIMIT_S)

    with connected(forwards(serve_pod)) as near:
        assert read(near, 99) == b""
    assert capfd.readouterr().err == "no way to pod: connection refused\n"


def test_a_request_whose_sender_has_given_up_is_not_made(forwards: Callable[[Serve], PodForward]) -> None:
    got, ended = list[object](), threading.Event()

    def serve_pod(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            got.extend(connection)
        ended.set()

    with connected(forwards(serve_pod)) as near:  # it has gone before the far side is open
        near.sendall(b"POST /v1/actions/cancel")
    assert ended.wait(LIMIT_S)
    assert got == []


def test_a_forward_that_is_closed_takes_no_connection(forwards: Callable[[Serve], PodForward]) -> None:
    forward = forwards(echo)
    with connected(forward) as near:
        near.sendall(b"before")
        assert read(near, 6) == b"before"
        forward.close()
        with pytest.raises(ConnectionRefusedError):
            connected(forward)
        near.sendall(b"after")
        assert read(near, 5) == b"after", "what is open ends by itself"


def test_a_server_that_does_not_forward_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cluster = ClusterAccess(f"http://127.0.0.1:{listener.getsockname()[1]}", "team", "main", None, lambda: "")
        forward = PodForward(KubernetesApi(cluster, "team"), "pod", "http://10.1.1.1:7001")
        with connected(forward) as near:
            far, _ = listener.accept()
            with far:
                far.recv(4096)
                far.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            assert read(near, 99) == b""
        forward.close()
    assert "no way to pod: server rejected WebSocket connection: HTTP 403" in capfd.readouterr().err


@pytest.mark.parametrize("url", ["", "http://10.1.1.1"])
def test_an_address_without_a_port_cannot_be_forwarded(url: str) -> None:
    cluster = ClusterAccess("http://127.0.0.1:1", "team", "main", None, lambda: "")
    with pytest.raises(EngineUnavailable, match="without a port"):
        PodForward(KubernetesApi(cluster, "team"), "pod", url)


def test_the_forward_goes_on_after_a_shortage_of_files(forwards: Callable[[Serve], PodForward]) -> None:
    forward = forwards(echo)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as held:
        early = [held.enter_context(socket.socket()) for _ in range(3)]
        highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with contextlib.suppress(OSError):
            while True:
                held.enter_context(Path(os.devnull).open())
        host, _, port = forward.address.partition(":")
        for near in early:
            near.connect((host, int(port)))
            near.settimeout(0.2)
            with contextlib.suppress(TimeoutError):  # nobody can accept it, or go on to the server
                assert near.recv(1) == b""
    with connected(forward) as near:
        near.sendall(b"after")
        assert read(near, 5) == b"after"
