"""Reads and writes sandbox.json: the shape of a run directory's sandbox, and its processes. The file is replaced whole,
so that no reader sees half of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path

from howdah.errors import StagingError
from howdah.sandbox.conf import node_host
from howdah.sandbox.process import Process
from howdah.sandbox.shape import Ports, Shape
from howdah.spec.values import dataclass

NAME = "sandbox.json"


@dataclass(frozen=True)
class SandboxRecord:
    """The content of sandbox.json."""

    shape: Shape
    ports: Ports
    java: str
    """The Java with which daemons are started again as at first."""
    java_release: int
    jars: str
    """The jars with which daemons are started again as at first."""
    processes: Mapping[str, Process] = field(default_factory=dict)

    def with_process(self, name: str, process: Process | None) -> SandboxRecord:
        others = {other: kept for other, kept in self.processes.items() if other != name}
        return replace(self, processes=others | ({name: process} if process else {}))


def load(run: Path) -> SandboxRecord | None:
    """Return the run directory's record; None if it holds no sandbox.

    Raises:
        StagingError: the record cannot be read.
    """
    path = run / NAME
    try:
        known = json.loads(path.read_text())
        processes = {name: Process(**entry) for name, entry in known["pids"].items()}
        shape, ports = Shape(**known["shape"]), Ports(**known["ports"])
        return SandboxRecord(shape, ports, known["java"], known["java_release"], known["jars"], processes)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"{path} is not a sandbox's record ({error})"
        raise StagingError(f"{problem}; remove {run} if nothing runs from it") from error


def save(run: Path, record: SandboxRecord) -> None:
    document = {
        "hadoop": record.shape.hadoop,
        "conf_dir": str(run / "conf"),
        "nodes": [node_host(number) for number in range(1, record.shape.nodes + 1)],
        "pids": {name: asdict(process) for name, process in record.processes.items()},
        "shape": asdict(record.shape),
        "ports": asdict(record.ports),
        "java": record.java,
        "java_release": record.java_release,
        "jars": record.jars,
    }
    fresh = run / f"{NAME}.new"
    fresh.write_text(json.dumps(document, indent=1) + "\n")
    fresh.replace(run / NAME)
