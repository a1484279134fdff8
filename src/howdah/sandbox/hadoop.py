"""Hadoop's daemons as commands: which class, how much heap, which addresses; the short names are the sandbox's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.sandbox import hdfs
from howdah.sandbox.conf import Ports, Shape, node_host, rm_hosts, rm_web
from howdah.sandbox.install import Java

# What a service manager would give the daemons, and these pass on to containers; the user's own environment
# (a venv on PATH, secrets) must not reach containers this way.
NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "JAVA_TOOL_OPTIONS")

_HDFS = "org.apache.hadoop.hdfs.server"
_YARN = "org.apache.hadoop.yarn.server"
ADMIN = {
    "ResourceManager": "org.apache.hadoop.yarn.client.cli.RMAdminCLI",
    "NameNode": "org.apache.hadoop.hdfs.tools.DFSHAAdmin",
}
"""What says which of two servers of a kind is active."""


@dataclass(frozen=True)
class DaemonRole:
    """One daemon: `conf` is a folder in the run dir; addresses are host:port."""

    name: str
    title: str
    main: str
    heap_mib: int
    conf: str
    address: str
    web: str
    more: tuple[str, ...] = ()

    @property
    def listens(self) -> tuple[str, ...]:
        """Every address that answers once it is ready; a ResourceManager's pages come before its RPC."""
        return (self.address, self.web, *self.more)


def roles(shape: Shape, ports: Ports) -> list[DaemonRole]:
    """The daemons of this shape in the order they are started."""
    nodes = [_node_manager(number, ports) for number in range(1, shape.nodes + 1)]
    return [*(_hdfs(shape, ports) if shape.hdfs else []), *_resource_managers(shape, ports), *nodes]


def _hdfs(shape: Shape, ports: Ports) -> list[DaemonRole]:
    name_node, data_node = f"{_HDFS}.namenode.NameNode", f"{_HDFS}.datanode.DataNode"
    name_nodes, data_nodes = hdfs.name_nodes(shape, ports), hdfs.data_nodes(shape, ports)
    return [
        *(DaemonRole(id_, "NameNode", name_node, 256, _conf(id_, "nn"), *at) for id_, at in name_nodes.items()),
        *(DaemonRole(id_, "DataNode", data_node, 192, _conf(id_, "dn"), *at[:2]) for id_, at in data_nodes.items()),
    ]


def _conf(id_: str, only: str) -> str:
    return "conf" if id_ == only else f"conf-{id_}"


def _resource_managers(shape: Shape, ports: Ports) -> list[DaemonRole]:
    main = f"{_YARN}.resourcemanager.ResourceManager"
    if shape.resourcemanagers > 1:  # on standby it listens to administrators only
        return [
            DaemonRole(id_, "ResourceManager", main, 512, f"conf-{id_}", f"{host}:{ports.rm_admin}", rm_web(id_, ports))
            for id_, host in rm_hosts(shape).items()
        ]
    more = (_local(ports.rm_scheduler), _local(ports.rm_tracker), _local(ports.rm_admin))
    return [DaemonRole("rm", "ResourceManager", main, 512, "conf", _local(ports.rm), _local(ports.rm_web), more)]


def _node_manager(number: int, ports: Ports) -> DaemonRole:
    host, name = node_host(number), f"nm{number}"
    main = f"{_YARN}.nodemanager.NodeManager"
    return DaemonRole(name, "NodeManager", main, 256, f"conf-{name}", f"{host}:{ports.nm}", f"{host}:{ports.nm_web}")


def _local(port: int) -> str:
    return f"127.0.0.1:{port}"


@dataclass(frozen=True)
class Launcher:
    """Turns a role into a command line and an environment."""

    hadoop: str
    java: Java
    jars: Path
    run: Path

    def command(self, role: DaemonRole) -> list[str]:
        return [*self._java(role.conf, role.heap_mib, role.name), role.main]

    def tool(self, main: str, arguments: Sequence[str], conf: str = "conf") -> list[str]:
        """A command that runs and ends, such as the NameNode's `-format`."""
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
            # Fast to start and small, which matters here more than how fast they run.
            *("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", f"-Xmx{heap_mib}m"),
            *("-Djava.net.preferIPv4Stack=true", f"-Djdk.net.hosts.file={run}/hosts"),
            *(f"-Dproc_{name}", f"-Dhadoop.log.dir={run}/log", "-Dhadoop.root.logger=INFO,console"),
            f"-Dlog4j.configuration=file:{run}/conf/log4j.properties",
            # Nothing of ours stays in the machine's own temporary folder.
            *("-XX:-UsePerfData", f"-Djava.io.tmpdir={run}/tmp"),  # noqa: S108
            # Guice, as old as Hadoop before 3.5 has it, defines classes by reflection.
            *([] if self.hadoop.startswith("3.5") else ["--add-opens=java.base/java.lang=ALL-UNNAMED"]),
            f"-XX:ErrorFile={run}/log/{name}-crash-%p.log",
            *("-cp", class_path),
        ]
