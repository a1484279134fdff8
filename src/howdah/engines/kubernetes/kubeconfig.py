"""Finds the API server and this process's identity for it: in a pod by the pod's service account, elsewhere by a
kubeconfig.

Outside a cluster a kubeconfig may name a program that prints credentials (client.authentication.k8s.io), as clouds do.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import os
import ssl
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from howdah.errors import EngineRejected, EngineUnavailable, SpecError
from howdah.spec.values import dataclass

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PLUGIN_LIMIT_S = 60.0
_EARLY_S = 60.0
"""Seconds before a token expires at which the program is asked for another one."""
_UNKNOWN_TO_HOWDAH = ("as", "as-groups", "as-uid", "as-user-extra", "auth-provider", "username")
"""Other ways to identify the caller. If they were ignored, calls would be made under another identity, or under
none."""
_KNOWN = "token, tokenFile, client-certificate and exec"


@dataclass(frozen=True)
class ClusterAccess:
    """An API server, and the way to call it."""

    server: str
    """The URL by which this machine calls the API server."""
    namespace: str
    """The namespace of the context; "" if it names none."""
    name: str
    """The name for people: that of the context, or the pod's own cluster."""
    tls: ssl.SSLContext | None
    """The TLS settings for https. They may hold a certificate that identifies the caller."""
    token: Callable[[], str]
    """Returns the bearer token that is valid now; "" if the certificate is enough."""
    tls_name: str = ""
    """The name in the server's certificate, if it differs from that of the URL."""
    proxy: str = ""
    """The URL of the proxy by which the server is reached; "" for none."""


def in_pod() -> bool:
    """Return whether this process is in a pod that has a service account."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (ACCOUNT / "token").exists()


def own_cluster() -> ClusterAccess:
    """Return the cluster of this pod. The token is read at each use, because the kubelet renews its file."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT_HTTPS") or "443"
    tls = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    return ClusterAccess(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=(ACCOUNT / "namespace").read_text().strip(),
        name="its own cluster",
        tls=tls,
        token=lambda: (ACCOUNT / "token").read_text().strip(),
    )


def config_files(setting: str) -> list[Path]:
    """Return the kubeconfigs in use: the setting, else KUBECONFIG, else ~/.kube/config; some may not exist."""
    named = setting or os.environ.get("KUBECONFIG", "")
    return [Path(part).expanduser() for part in named.split(os.pathsep) if part] or [Path.home() / ".kube" / "config"]


def load(setting: str, context: str) -> ClusterAccess:
    """Return the cluster of a context, "" for the current one.

    Raises:
        SpecError: there is no such file or context. EngineUnavailable: a file is wrong.
    """
    files = config_files(setting)
    known, where = _merged(files)
    name = context or known["current-context"]
    if not name:
        place = "kubernetes.context" if where else "kubernetes.kubeconfig"
        problem = f"{where or files[0]} has no current context" if where else f"no such file: {files[0]}"
        raise SpecError.at(place, f"{problem}; give a kubeconfig, as `kubectl config view` shows it")
    if name not in known["contexts"]:
        problem = f"is {name!r}, contexts of {where} are {', '.join(sorted(known['contexts'])) or '(none)'}"
        raise SpecError.at("kubernetes.context", problem)
    chosen = known["contexts"][name]
    for kind, what in (("clusters", "cluster"), ("users", "user")):
        if chosen.get(what) and chosen[what] not in known[kind]:
            raise EngineUnavailable(f"{where}: context {name!r} names the {what} {chosen[what]!r}, which is not there")
    cluster, user = known["clusters"].get(chosen.get("cluster"), {}), known["users"].get(chosen.get("user"), {})
    try:
        return _cluster(name, chosen, cluster, user)
    except (OSError, ValueError, binascii.Error, ssl.SSLError) as error:
        raise EngineUnavailable(f"{where}: context {name!r} cannot be used: {error}") from error


def _merged(files: list[Path]) -> tuple[dict[str, Any], str]:
    """Return the merged content of the files (of two entries with one name the first counts), and the names of the
    files that exist. Paths in a file are relative to it."""
    known: dict[str, Any] = {"contexts": {}, "clusters": {}, "users": {}, "current-context": ""}
    found = [path for path in files if path.exists()]
    if not found:
        return known, ""
    import yaml  # programs in a pod do not need this module

    for path in found:
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            for kind, part in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
                for entry in content.get(kind) or ():
                    known[kind].setdefault(entry["name"], {**(entry.get(part) or {}), "": str(path.parent)})
            known["current-context"] = known["current-context"] or content.get("current-context") or ""
        except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
            problem = " ".join(str(error).split()) or type(error).__name__
            raise EngineUnavailable(f"{path} is not a kubeconfig: {problem}") from error
    return known, ", ".join(map(str, found))


def _cluster(
    name: str, context: Mapping[str, str], cluster: Mapping[str, Any], user: Mapping[str, Any]
) -> ClusterAccess:
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        raise ValueError(f"its cluster has no server with a URL, but {server!r}")
    for entry in _UNKNOWN_TO_HOWDAH:
        if user.get(entry):
            raise ValueError(f"its user has {entry!r}, which howdah does not know; it takes {_KNOWN}")
    proxy = str(cluster.get("proxy-url") or _proxy_of_environment(server))
    if proxy and not proxy.startswith("http://"):
        raise ValueError(f"its server is reached by the proxy {proxy}, of which howdah knows http:// alone")
    tls = None
    if server.startswith("https:"):
        authority = _content(cluster, "certificate-authority")
        tls = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        certificate, key = _content(user, "client-certificate"), _content(user, "client-key")
        if certificate:
            load_certificate(tls, certificate, key)
    return ClusterAccess(
        server=server.rstrip("/"),
        namespace=str(context.get("namespace") or ""),
        name=name,
        tls=tls,
        token=_token(user, tls),
        tls_name=str(cluster.get("tls-server-name") or ""),
        proxy=proxy,
    )


def _content(entry: Mapping[str, Any], name: str) -> bytes:
    """Return the value that a kubeconfig holds as `NAME-data`, or in the file that it names under `NAME`; b"" for
    neither."""
    if entry.get(f"{name}-data"):
        return base64.b64decode(str(entry[f"{name}-data"]), validate=True)
    return Path(entry[""], str(entry[name])).read_bytes() if entry.get(name) else b""


def load_certificate(tls: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Let `tls` present a certificate. OpenSSL can read it only from a file, so a file is used that is on no disk."""
    file = os.memfd_create("certificate")
    try:
        with os.fdopen(os.dup(file), "wb") as stream:
            stream.write(certificate.rstrip(b"\n") + b"\n" + key)
        tls.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def _proxy_of_environment(server: str) -> str:
    address = urllib.parse.urlsplit(server)
    return "" if urllib.request.proxy_bypass(address.netloc) else urllib.request.getproxies().get(address.scheme, "")


def _token(user: Mapping[str, Any], tls: ssl.SSLContext | None) -> Callable[[], str]:
    if user.get("exec"):
        return _Plugin(user["exec"], user[""], tls)
    if user.get("tokenFile"):
        return Path(user[""], str(user["tokenFile"])).read_text
    fixed = str(user.get("token") or "")
    return lambda: fixed


class _Plugin:
    """Runs the program that a kubeconfig names for a token, and keeps the token until it expires."""

    def __init__(self, spec: Mapping[str, Any], directory: str, tls: ssl.SSLContext | None) -> None:
        command = str(spec["command"])
        self._command = [str(Path(directory, command)) if "/" in command else command, *(spec.get("args") or ())]
        self._spec, self._tls = spec, tls
        self._held, self._until = "", 0.0

    def __call__(self) -> str:
        if time.time() >= self._until:
            status = self._run()
            self._held, key = str(status.get("token") or ""), str(status.get("clientKeyData") or "")
            if self._tls is not None and status.get("clientCertificateData"):
                load_certificate(self._tls, str(status["clientCertificateData"]).encode(), key.encode())
            expires = str(status.get("expirationTimestamp") or "")
            self._until = _epoch(expires) - _EARLY_S if expires else float("inf")
        return self._held

    def _run(self) -> Mapping[str, Any]:
        kind = {"apiVersion": self._spec.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
        own = {each["name"]: each["value"] for each in self._spec.get("env") or ()}
        variables = {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(kind)}
        name = self._command[0]
        try:
            done = subprocess.run(
                self._command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=PLUGIN_LIMIT_S
            )
            if done.returncode:
                said = done.stderr.decode("utf-8", "replace").strip().splitlines()
                raise EngineRejected(f"{name}, which the kubeconfig names, gives no credentials: {(said or ['?'])[-1]}")
            status: Mapping[str, Any] = json.loads(done.stdout)["status"]
            return status
        except subprocess.TimeoutExpired:
            problem = f"{name}, which the kubeconfig names, gave no credentials within {PLUGIN_LIMIT_S:.0f} s"
            raise EngineUnavailable(problem) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = self._spec.get("installHint") or error
            raise EngineUnavailable(f"{name}, which the kubeconfig names, gives no credentials: {hint}") from error


def _epoch(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
