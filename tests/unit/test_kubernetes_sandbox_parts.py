"""Tests what the Kubernetes sandbox prepares before anything runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailable, SpecError
from howdah.sandbox import KubernetesSandbox
from howdah.sandbox.kubernetes import build, network
from howdah.sandbox.kubernetes.certificates import Certificates
from howdah.sandbox.kubernetes.network import Network


def test_without_root_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EngineUnavailable, match="a Kubernetes sandbox needs root"):
        KubernetesSandbox(tmp_path / "run").up()
    assert not (tmp_path / "run").exists()


def test_a_directory_that_nodes_do_not_see_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SpecError, match="/var/lib/mine is below /var/lib, of which each node has its own"):
        KubernetesSandbox(Path("/var/lib/mine")).up()


def test_a_network_is_chosen_to_which_nothing_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = [IPv4Network(f"10.{second}.7.0/24") for second in range(64, 249)]
    monkeypatch.setattr(network, "_routes", lambda: routes)
    assert network.choose("leg") == Network(249, "leg")
    routes.append(IPv4Network("10.249.0.0/16"))
    with pytest.raises(EngineUnavailable, match=r"every network between 10\.64"):
        network.choose("leg")


def test_this_machines_routes_are_read() -> None:
    assert all(route.prefixlen for route in network._routes())


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_certificates_are_the_authoritys_and_keys_are_private(tmp_path: Path) -> None:
    made = Certificates(tmp_path / "keys")
    made.make_authority()
    made.make("server", "system:node:node1", ["system:nodes"], ["node1", "10.64.0.11"])
    made.make("user", "howdah", ["howdah-users"])
    made.write_kubeconfig(tmp_path / "kubeconfig", "user", "https://10.64.0.2", "howdah")

    def openssl(*arguments: str) -> str:
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    for name in ("server", "user"):
        assert "OK" in openssl("verify", "-CAfile", str(made.certificate()), str(made.certificate(name)))
        assert made.key(name).stat().st_mode & 0o777 == 0o600
    shown = openssl("x509", "-noout", "-subject", "-ext", "subjectAltName", "-in", str(made.certificate("server")))
    shown = shown.replace(" = ", "=")
    for part in ("O=system:nodes, CN=system:node:node1", "DNS:node1", "IP Address:10.64.0.11"):
        assert part in shown
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    known = json.loads((tmp_path / "kubeconfig").read_text())
    assert known["contexts"][0]["context"]["namespace"] == "howdah"
    assert b64decode(known["users"][0]["user"]["client-key-data"]) == made.key("user").read_bytes()


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("go: downloading a v1\n# k8s.io/x\nmain.go:3:2: undefined: y\n", "main.go:3:2: undefined: y"),
        (
            "go: a@v1: Get: dial tcp: lookup proxy: no such host\n",
            "go: a@v1: Get: dial tcp: lookup proxy: no such host",
        ),
        ("signal: killed\n", "signal: killed"),
        ("", "(no output)"),
    ],
)
def test_a_failed_build_is_told_in_one_line(output: str, cause: str) -> None:
    assert build._cause(output) == cause


def test_every_module_of_the_build_has_a_hash() -> None:
    source = Path(build.__file__).with_name("source")
    required = [line.split()[:2] for line in (source / "go.mod").read_text().splitlines() if line.startswith("\t")]
    hashed = {tuple(line.split()[:2]) for line in (source / "go.sum").read_text().splitlines()}
    replaced = {entry[0] for entry in required if entry[1] == "=>"}
    missing = [
        entry for entry in required if entry[0] not in replaced and (entry[0], f"{entry[1]}/go.mod") not in hashed
    ]
    assert missing == []
