"""Describes a sandbox: `Shape` is what a user asks for, `Ports` are the ports that its daemons listen at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from howdah.errors import Mistake, SpecError
from howdah.sandbox.sizes import size_mistakes
from howdah.spec.values import dataclass

MAX_NODES = 200
_MAX_DAEMONS = {"resourcemanagers": 2, "namenodes": 2, "datanodes": 2}
FILES = ("core-site", "hdfs-site", "yarn-site", "resource-types", "capacity-scheduler")


@dataclass(frozen=True)
class Shape:
    """The specification by the user; two sandboxes of one shape differ only in directory and ports.

    `properties` maps a file's name without `.xml` to properties that override the sandbox's own.
    """

    hadoop: str
    nodes: int = 3
    hdfs: bool = True
    memory_mib: int = 8192
    vcores: int = 8
    gpus: int = 4
    expiry_s: int = 15
    properties: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    resourcemanagers: int = 1
    namenodes: int = 1
    datanodes: int = 1

    @property
    def secure(self) -> bool:
        """Return whether the properties demand Kerberos."""
        return self.properties.get("core-site", {}).get("hadoop.security.authentication") == "kerberos"


def validate(shape: Shape) -> Shape:
    """Return the shape.

    Raises:
        SpecError: everything that is wrong in it.
    """
    minimum = {"nodes": 0, "memory_mib": 64, "vcores": 1, "gpus": 0, "expiry_s": 2, **dict.fromkeys(_MAX_DAEMONS, 1)}
    wrong = size_mistakes(shape, minimum, {"nodes": MAX_NODES, **_MAX_DAEMONS})
    for file in sorted(set(shape.properties) - set(FILES)):
        wrong.append(Mistake("properties", f"{file!r} is not one of {', '.join(FILES)}"))
    if wrong:
        raise SpecError(wrong)
    return shape


@dataclass(frozen=True)
class Ports:
    namenode: int
    namenode_web: int
    datanode: int
    datanode_web: int
    datanode_ipc: int
    rm: int
    rm_scheduler: int
    rm_tracker: int
    rm_admin: int
    rm_web: int
    nm: int
    nm_localizer: int
    nm_web: int
    nm_collector: int
    rm2_web: int = 0
    namenode2: int = 0
    namenode2_web: int = 0
    datanode2: int = 0
    datanode2_web: int = 0
    datanode2_ipc: int = 0
