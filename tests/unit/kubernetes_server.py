"""A server that keeps the objects of a Kubernetes API in memory, and runs nothing."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Object = dict[str, Any]


class KubernetesServer:
    """Keeps objects by kind and name; `calls` has the method and path of each request."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Object]] = {}
        self.calls: list[str] = []
        self.deletions: list[Object] = []
        """The options of each deletion."""
        self.closes = False
        """Whether each answer says that the connection ends with it."""
        self.prefix = ""
        """The path below which the API is."""
        self.add("configmaps", {"metadata": {"name": "kube-root-ca.crt"}})
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or the content waits 40 ms for the client to have acknowledged the header

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else {}
                server.calls.append(f"{self.command} {self.path}")
                status, content = server.serve(self.command, self.path, body)
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                if server.closes:
                    self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - names of the standard library

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def add(self, kind: str, body: Object) -> Object:
        about = {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z", **body["metadata"]}
        made = {"status": {}, **body, "metadata": about}
        self.objects.setdefault(kind, {})[made["metadata"]["name"]] = made
        return made

    def serve(self, method: str, target: str, body: Object) -> tuple[int, Object]:
        address = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(address.query))
        if not address.path.startswith(f"{self.prefix}/api"):
            return 404, {"message": f"no API at {address.path}", "reason": "NotFound"}
        kind, _, name = address.path.partition("/namespaces/team/")[2].partition("/")
        known = self.objects.setdefault(kind, {})
        if method == "POST":
            return 201, body if query.get("dryRun") else self.add(kind, body)
        if query.get("watch"):
            return 200, {"type": "BOOKMARK", "object": {}}
        if not name:
            labels = [pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair]
            found = [each for each in known.values() if all(_label(each, key) == value for key, value in labels)]
            return 200, {"items": found}
        if name not in known:
            return 404, {"message": f"{kind} {name!r} not found", "reason": "NotFound"}
        if method == "PATCH":
            merge(known[name], body)
        if method == "DELETE":
            self.deletions.append(body)
        return 200, known.pop(name) if method == "DELETE" else known[name]

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here, to the namespace `team`."""
        content = {
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url + self.prefix}}],
            "users": [{"name": "u", "user": {"token": "token-of-alice"}}],
        }
        path.write_text(json.dumps(content))
        return path


def _label(found: Object, name: str) -> str | None:
    text: str | None = (found["metadata"].get("labels") or {}).get(name)
    return text


def merge(into: Object, change: Object) -> None:
    """Apply a merge patch."""
    for name, value in change.items():
        if isinstance(value, dict):
            merge(into.setdefault(name, {}), value)
        else:
            into[name] = value


@contextlib.contextmanager
def kubernetes_server() -> Iterator[KubernetesServer]:
    server = KubernetesServer()
    try:
        yield server
    finally:
        server.close()


def lead_to(server: KubernetesServer, directory: Path, environment: pytest.MonkeyPatch) -> None:
    """Let the settings lead to a server, with a home that pods see."""
    for name, value in {
        "HOME": str(directory / "home"),
        "VOLUMES": str(directory),
        "IMAGE": "python:3",
        "KUBECONFIG": str(server.kubeconfig(directory / "kubeconfig")),
    }.items():
        environment.setenv(f"HOWDAH_KUBERNETES_{name}", value)
