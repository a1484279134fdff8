"""Describes Hadoop's daemons (class, heap, addresses) and builds their command lines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from howdah.sandbox import hdfs
from howdah.sandbox.conf import node_host, rm_hosts, rm_web
from howdah.sandbox.daemons import DaemonRole
from howdah.sandbox.install import STARTS_FAST, Java
from howdah.sandbox.shape import Ports, Shape
from howdah.spec.values import dataclass

# The variables that a service manager would give the daemons. Daemons pass them on to containers, which must not get
# the user's own environment this way (a venv on PATH, secrets).
NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "JAVA_TOOL_OPTIONS")

_HDFS = "org.apache.hadoop.hdfs.server"
_YARN = "org.apache.hadoop.yarn.server"
ADMIN = {
    "ResourceManager": "org.apache.hadoop.yarn.client.cli.RMAdminCLI",
    "NameNode": "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
}
"""The tools that make one of two servers of a kind active."""


@dataclass(frozen=True, kw_only=True)
class HadoopRole(DaemonRole):
    """Describes one of Hadoop's daemons."""

    main: str
    """The class with its `main`."""
    heap_mib: int
    """The most memory of its heap."""
    conf: str
    """The directory of its configuration in the run directory."""


def roles(shape: Shape, ports: Ports) -> list[HadoopRole]:
    """Return the daemons of this shape in the order in which they are started."""
    nodes = [_node_manager(number, ports) for number in range(1, shape.nodes + 1)]
    return [*(_hdfs(shape, ports) if shape.hdfs else []), *_resource_managers(shape, ports), *nodes]


def _hdfs(shape: Shape, ports: Ports) -> Iterator[HadoopRole]:
    for title, main, heap_mib, servers in (
        ("NameNode", f"{_HDFS}.namenode.NameNode", 256, hdfs.name_nodes(shape, ports)),
        ("DataNode", f"{_HDFS}.datanode.DataNode", 192, hdfs.data_nodes(shape, ports)),
    ):
        for id_, (address, web, *_) in servers.items():
            conf = f"conf-{id_}" if len(servers) > 1 else "conf"
            yield HadoopRole(id_, title, address, web, main=main, heap_mib=heap_mib, conf=conf)


def _resource_managers(shape: Shape, ports: Ports) -> list[HadoopRole]:
    main = f"{_YARN}.resourcemanager.ResourceManager"
    if shape.resourcemanagers > 1:  # on standby a ResourceManager listens to administrators only
        admin = {id_: f"{host}:{ports.rm_admin}" for id_, host in rm_hosts(shape).items()}
        return [
            HadoopRole(id_, "ResourceManager", address, rm_web(id_, ports), main=main, heap_mib=512, conf=f"conf-{id_}")
            for id_, address in admin.items()
        ]
    used = (ports.rm, ports.rm_web, ports.rm_scheduler, ports.rm_tracker, ports.rm_admin)
    local = [f"127.0.0.1:{port}" for port in used]
    return [
        HadoopRole("rm", "ResourceManager", local[0], local[1], tuple(local[2:]), main=main, heap_mib=512, conf="conf")
    ]


def _node_manager(number: int, ports: Ports) -> HadoopRole:
    host, name = node_host(number), f"nm{number}"
    main = f"{_YARN}.nodemanager.NodeManager"
    address, web = f"{host}:{ports.nm}", f"{host}:{ports.nm_web}"
    return HadoopRole(name, "NodeManager", address, web, main=main, heap_mib=256, conf=f"conf-{name}")


@dataclass(frozen=True)
class Launcher:
    """Builds command lines and the environment of daemons and tools."""

    hadoop: str
    java: Java
    jars: Path
    run: Path

    def command(self, role: HadoopRole) -> list[str]:
        return [*self._java(role.conf, role.heap_mib, role.name), role.main]

    def tool(self, main: str, arguments: Sequence[str], conf: str = "conf") -> list[str]:
        """Return the command of a tool that runs and ends, such as the NameNode's `-format`."""
        return [*self._java(conf, 192, "tool"), main, *arguments]

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        conf = {"HADOOP_CONF_DIR": str(self.run / "conf"), "JAVA_HOME": str(self.java.home)}
        return {"PATH": NODE_PATH, **kept, **conf}

    def _java(self, conf: str, heap_mib: int, name: str) -> list[str]:
        run = self.run
        class_path = ":".join([str(run / conf), *sorted(str(jar) for jar in self.jars.glob("*.jar"))])
        return [
            str(self.java.program),
            *(*STARTS_FAST, f"-Xmx{heap_mib}m"),
            *("-Djava.net.preferIPv4Stack=true", f"-Djdk.net.hosts.file={run}/hosts"),
            *(f"-Dproc_{name}", f"-Dhadoop.log.dir={run}/log", "-Dhadoop.root.logger=INFO,console"),
            f"-Dlog4j.configuration=file:{run}/conf/log4j.properties",
            # The daemons write nothing into the machine's own temporary directory.
            *("-XX:-UsePerfData", f"-Djava.io.tmpdir={run}/tmp"),  # noqa: S108
            # Guice, as old as Hadoop before 3.5 has it, defines classes by reflection.
            *([] if self.hadoop.startswith("3.5") else ["--add-opens=java.base/java.lang=ALL-UNNAMED"]),
            f"-XX:ErrorFile={run}/log/{name}-crash-%p.log",
            *("-cp", class_path),
        ]
