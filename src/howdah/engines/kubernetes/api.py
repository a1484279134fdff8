"""Calls the REST API of a Kubernetes cluster. A master needs nothing but this and Python's own library."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
import urllib.parse
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from howdah.engines.kubernetes import kubeconfig
from howdah.engines.kubernetes.kubeconfig import ClusterAccess
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError

CALL_LIMIT_S = 15.0
"""Seconds that one call may take."""
BUSY_LIMIT_S = 20.0
"""Seconds for which a call is repeated while the server says that it is busy."""
WATCH_S = 240
"""Seconds after which the server ends a watch, and the next one begins."""
_WATCH_SILENCE_S = WATCH_S + 30.0
_BUSY = (429, 500, 502, 503, 504)
_CONFLICT = "Conflict"
"""Several servers have updated a count, such as the use of a quota, at the same time: one of them may try again."""
_BROKEN = (http.client.RemoteDisconnected, http.client.CannotSendRequest, ConnectionError, ssl.SSLEOFError)
MERGE = "application/merge-patch+json"

Object = dict[str, Any]


class ApiRefused(EngineRejected):
    """The API server refuses a call; `status` is the HTTP status, `reason` is Kubernetes' own word, such as
    `AlreadyExists`."""

    def __init__(self, text: str, status: int, reason: str) -> None:
        super().__init__(text)
        self.status, self.reason = status, reason

    @property
    def is_quota(self) -> bool:
        """Return whether a quota of the namespace is used up, so that the same call may succeed later."""
        return self.status == http.client.FORBIDDEN and "exceeded quota" in str(self)


class WatchExpired(HowdahError):
    """The server no longer remembers the changes since the last event: everything must be listed again."""


class KubernetesApi:
    """The API of one cluster, in one namespace. Threads may share it.

    Calls raise ApiRefused if the server refuses, and EngineUnavailable if it does not answer.
    """

    def __init__(self, cluster: ClusterAccess, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._address = urllib.parse.urlsplit(cluster.server)
        self._idle: list[http.client.HTTPConnection] = []
        self._watches: set[socket.socket] = set()
        weakref.finalize(self, _close, self._idle)

    @classmethod
    def of_settings(cls, settings: Mapping[str, str]) -> KubernetesApi:
        """Return the API of the cluster and namespace that the settings `kubernetes.*`, or else a kubeconfig, name.

        Raises:
            SpecError, EngineUnavailable: no cluster is named, or not as it should be.
        """
        own = {name: settings.get(f"kubernetes.{name}") or "" for name in ("kubeconfig", "context", "namespace")}
        cluster = kubeconfig.load(own["kubeconfig"], own["context"])
        return cls(cluster, own["namespace"] or cluster.namespace or "default")

    def close(self) -> None:
        """Close open connections, and end watches."""
        for watch in list(self._watches):
            with contextlib.suppress(OSError):  # the thread that reads from it closes it
                watch.shutdown(socket.SHUT_RDWR)
        _close(self._idle)

    def path(self, kind: str, name: str = "", part: str = "", **query: str) -> str:
        """Return the path of the namespace's objects of a kind (`pods`, `jobs`), of one of them, or of its part."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        parts = [group, "namespaces", self.namespace, kind, name, part]
        path = "/".join(urllib.parse.quote(each, safe="/") for each in parts if each)
        return f"{path}?{urllib.parse.urlencode(query)}" if query else path

    def on_server(self, path: str) -> str:
        """Return a path of the API as a request names it: below the path of the server's URL, if it has one, as behind
        a proxy for several clusters."""
        return self._address.path.rstrip("/") + path

    def get(self, path: str) -> Object:
        """Return an object, or a list of objects."""
        return self.call("GET", path)

    def find(self, path: str) -> Object | None:
        """Return an object; None if it does not exist."""
        try:
            return self.get(path)
        except ApiRefused as error:
            if error.status != http.client.NOT_FOUND:
                raise
            return None

    def create(self, kind: str, body: Mapping[str, Any], dry_run: bool = False) -> Object:
        """Create an object; with `dry_run` the server checks everything but does not store it."""
        query = {"dryRun": "All", "fieldValidation": "Strict"} if dry_run else {}
        return self.call("POST", self.path(kind, **query), body)

    def ensure(self, kind: str, body: Mapping[str, Any]) -> None:
        """Create an object unless one of its name exists: the answer to an earlier request may have been lost."""
        try:
            self.read("POST", self.path(kind), body)  # nobody needs the answer parsed
        except ApiRefused as error:
            if error.reason != "AlreadyExists":
                raise

    def delete(self, kind: str, name: str, grace_s: int | None = None) -> None:
        """Delete an object, and what it owns after it; do nothing if it does not exist."""
        options: Object = {"propagationPolicy": "Background"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            self.call("DELETE", self.path(kind, name), options)
        except ApiRefused as error:
            if error.status != http.client.NOT_FOUND:
                raise

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "") -> Object:
        """Make a call, whose `body` is sent as JSON of the content type `kind`; return the answer."""
        found: Object = json.loads(self.read(method, path, body, kind))
        return found

    def read(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "") -> bytes:
        """Make a call; return the bytes of its answer. A server that is busy is asked again for a while."""
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        until, pause = time.monotonic() + BUSY_LIMIT_S, 0.2
        while True:
            answer, content = self._exchange(method, path, data, kind)
            if answer.status < 300:
                return content
            error = self._error(answer.status, content)
            if not isinstance(error, EngineUnavailable) or time.monotonic() + pause > until:
                raise error
            wait = answer.headers.get("Retry-After", "")
            time.sleep(min(float(wait) if wait.isdecimal() else pause, BUSY_LIMIT_S))
            pause *= 2

    def _exchange(
        self, method: str, path: str, data: bytes | None, kind: str
    ) -> tuple[http.client.HTTPResponse, bytes]:
        while True:
            connection, is_used = None, False
            try:
                with contextlib.suppress(IndexError):
                    connection, is_used = self._idle.pop(), True
                connection = connection or self._connect(CALL_LIMIT_S)
                connection.request(method, self.on_server(path), data, self._headers(kind))
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                if connection is not None:
                    connection.close()
                if not (is_used and isinstance(error, _BROKEN)):  # the server closes connections that are idle
                    raise self.unavailable(error) from error
            else:
                if connection.sock is not None:  # else the server closes it after this answer
                    self._idle.append(connection)
                return answer, content

    def authorization(self) -> dict[str, str]:
        """Return the header that identifies the caller; none if a certificate does."""
        token = self.cluster.token().strip()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _headers(self, kind: str = "") -> dict[str, str]:
        return {"Content-Type": kind or "application/json", "Accept": "application/json", **self.authorization()}

    def _connect(self, limit_s: float) -> http.client.HTTPConnection:
        """Return a new connection, each of whose reads and writes takes at most `limit_s`."""
        connection = http.client.HTTPConnection(self._address.hostname or "", timeout=limit_s)
        connection.auto_open = 0  # it would open another one without TLS
        connection.sock = self.open_socket(limit_s)
        return connection

    def open_socket(self, limit_s: float) -> socket.socket:
        """Return a connected socket, through TLS where the server's URL says so.

        Raises:
            OSError: the server does not answer.
        """
        host = self._address.hostname or ""
        port = self._address.port or (443 if self._address.scheme == "https" else 80)
        if self.cluster.proxy:
            proxy = urllib.parse.urlsplit(self.cluster.proxy)
            tunnel = http.client.HTTPConnection(proxy.hostname or "", proxy.port or 80, timeout=limit_s)
            tunnel.set_tunnel(host, port)
            tunnel.connect()
            raw = tunnel.sock
        else:
            raw = socket.create_connection((host, port), limit_s)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A watch must notice within half a minute that the server is gone without a word.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 4)):
            raw.setsockopt(socket.IPPROTO_TCP, option, value)
        if self.cluster.tls is None:
            return raw
        self.cluster.token()  # the program that prints it may bring a certificate, too
        return self.cluster.tls.wrap_socket(raw, server_hostname=self.cluster.tls_name or host)

    def watch(self, path: str, version: str) -> Iterator[Object]:
        """Yield the changes of a list since its `version`, as `{"type": …, "object": …}`, until the server ends it.
        `path` has a query.

        Raises:
            WatchExpired: the list must be read again. EngineUnavailable: the connection broke.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, "timeoutSeconds": WATCH_S}
        connection = answer = None
        try:
            connection = self._connect(_WATCH_SILENCE_S)
            watched = connection.sock  # the connection forgets it when the server says that it will close it
            self._watches.add(watched)
            connection.request(
                "GET", self.on_server(f"{path}&{urllib.parse.urlencode(query)}"), headers=self._headers()
            )
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise self._error(answer.status, answer.read())
            while line := answer.readline():
                event: Object = json.loads(line)
                if event["type"] == "ERROR":
                    raise self._error(event["object"].get("code", 500), json.dumps(event["object"]).encode())
                yield event
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self.unavailable(error) from error
        finally:
            if answer is not None:
                answer.close()
            if connection is not None:
                self._watches.discard(watched)
                connection.close()

    def unavailable(self, error: BaseException) -> EngineUnavailable:
        """Return the error for a server that does not answer."""
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted: {error.verify_message}"
        where = f"Kubernetes at {self.cluster.server} ({self.cluster.name})"
        return EngineUnavailable(f"{where} does not answer: {reason}")

    def _error(self, status: int, data: bytes) -> HowdahError:
        """Return the error for an answer. 401 only says that these credentials are not accepted."""
        if status == http.client.GONE:
            return WatchExpired(self.cluster.server)
        try:
            said = json.loads(data)
            text, reason = str(said.get("message") or ""), str(said.get("reason") or "")
        except (ValueError, AttributeError):
            text, reason = data.decode("utf-8", "replace").strip()[:300], ""
        where = f"Kubernetes at {self.cluster.server} ({self.cluster.name})"
        if status in _BUSY or reason == _CONFLICT:
            return EngineUnavailable(f"{where} cannot answer now ({status}): {text}")
        if status == http.client.UNAUTHORIZED:
            text = "it does not accept these credentials: they may have expired, or be another cluster's"
            return ApiRefused(f"{where}: {text}", status, "Unauthorized")
        return ApiRefused(f"{where}: {text or f'refused with status {status}'}", status, reason)


def _close(connections: list[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
