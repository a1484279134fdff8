"""The content of the record of a Hadoop sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from howdah.sandbox.conf import node_host
from howdah.sandbox.process import Process
from howdah.sandbox.record import Record
from howdah.sandbox.shape import Ports, Shape
from howdah.spec.values import dataclass


@dataclass(frozen=True)
class HadoopRecord(Record):
    """The content of the sandbox.json of a Hadoop sandbox."""

    shape: Shape
    ports: Ports
    java: str
    """The Java with which daemons are started, at first and later."""
    java_release: int
    jars: str
    """The jars with which daemons are started, at first and later."""
    processes: Mapping[str, Process] = field(default_factory=dict)

    @classmethod
    def _from_document(cls, known: dict[str, Any], processes: Mapping[str, Process]) -> HadoopRecord:
        shape, ports = Shape(**known["shape"]), Ports(**known["ports"])
        return cls(shape, ports, known["java"], known["java_release"], known["jars"], processes)

    def _document(self, run: Path) -> dict[str, Any]:
        return {
            "hadoop": self.shape.hadoop,
            "conf_dir": str(run / "conf"),
            "nodes": [node_host(number) for number in range(1, self.shape.nodes + 1)],
            "ports": asdict(self.ports),
            "java": self.java,
            "java_release": self.java_release,
            "jars": self.jars,
        }
