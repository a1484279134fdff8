"""Talks to a sandbox's apiserver as its administrator."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from howdah.sandbox.kubernetes.certificates import Certificates

ADMIN = "admin"
"""The name of the administrator's certificate."""
_LIMIT_S = 10.0


class AdminApi:
    """The apiserver's REST API. A call that it refuses raises urllib.error.HTTPError; without an answer, OSError."""

    def __init__(self, server: str, certificates: Certificates) -> None:
        self._server = server
        context = ssl.create_default_context(cafile=str(certificates.certificate()))
        context.load_cert_chain(certificates.certificate(ADMIN), certificates.key(ADMIN))
        # Proxies of the environment don't know the sandbox's addresses.
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def text(self, path: str, method: str = "GET", body: object = None, kind: str = "application/json") -> str:
        """Return the answer to a request as text. `kind` is the content type of `body`, which is sent as JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - always https
            f"{self._server}{path}", data, {"Content-Type": kind}, method=method
        )
        with self._opener.open(request, timeout=_LIMIT_S) as answer:
            return str(answer.read().decode())

    def get(self, path: str) -> Any:
        return json.loads(self.text(path))

    def create(self, path: str, body: object) -> Any:
        return json.loads(self.text(path, "POST", body))

    def delete(self, path: str) -> Any:
        return json.loads(self.text(path, "DELETE"))

    def merge(self, path: str, body: object) -> Any:
        """Patch an object with `body`; fields that are not in `body` stay."""
        return json.loads(self.text(path, "PATCH", body, "application/merge-patch+json"))

    def ensure(self, path: str, body: object) -> None:
        """Create an object unless it exists."""
        try:
            self.create(path, body)
        except urllib.error.HTTPError as error:
            if error.code != http.client.CONFLICT:
                raise

    def is_ready(self) -> bool:
        """Return whether the apiserver is completely ready."""
        try:
            return self.text("/readyz") == "ok"
        except (OSError, http.client.HTTPException):
            return False

    def ready_nodes(self) -> list[dict[str, Any]]:
        """Return the nodes whose kubelet says that they are ready; none if the apiserver does not answer."""
        try:
            nodes = self.get("/api/v1/nodes")["items"]
        except (OSError, http.client.HTTPException, ValueError):
            return []
        return [node for node in nodes if _is_ready(node)]


def _is_ready(node: dict[str, Any]) -> bool:
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in node["status"].get("conditions", ()))
