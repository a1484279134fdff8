"""The record of a Kubernetes sandbox: beside shape and processes it holds the facts that clients need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from howdah.sandbox.kubernetes.network import Network
from howdah.sandbox.kubernetes.shape import KubernetesShape
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class KubernetesRecord(Record):
    """The content of the sandbox.json of a Kubernetes sandbox."""

    version: str
    """The version of Kubernetes."""
    shape: KubernetesShape
    """What the user asked of the sandbox."""
    network: Network
    """The addresses."""
    binaries: str
    """The directory of the daemons with which they are started, at first and later."""
    s3_packages: str
    """The directory of the S3 server's Python packages; "" if the Python of this process has them."""
    client: Mapping[str, str] = field(default_factory=dict)
    """The facts for clients; the keys are named in `KubernetesDaemons.client`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of the engine that `howdah.config.settings` uses if nobody else sets them."""
    processes: Mapping[str, Process] = field(default_factory=dict)
    """The processes that run, by the names of their roles."""

    @classmethod
    def _from_document(cls, known: dict[str, Any], processes: Mapping[str, Process]) -> KubernetesRecord:
        shape, network = KubernetesShape(**known["shape"]), Network(**known["network"])
        places = (known["binaries"], known["s3_packages"])
        return cls(known["kubernetes"], shape, network, *places, known["client"], known["settings"], processes)

    def _document(self, run: Path) -> dict[str, Any]:
        return {
            "kubernetes": self.version,
            "client": dict(self.client),
            "settings": dict(self.settings),
            "network": asdict(self.network),
            "binaries": self.binaries,
            "s3_packages": self.s3_packages,
        }
