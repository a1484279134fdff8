"""Writes Hadoop's configuration files for one sandbox: the same text for the same `Shape` and `Ports`.

`conf/` is an ordinary client configuration (HADOOP_CONF_DIR). A NodeManager reads `conf-nm<i>/`, which differs only in
its addresses; one of two servers of a kind (`rm1`, `nn2`, …) reads `conf-<id>/`, which names the server.
Property names and defaults are those of Hadoop's *-default.xml.
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from pathlib import Path

from howdah.hadoop.conf import to_xml
from howdah.sandbox import hdfs
from howdah.sandbox.shape import Ports, Shape

Site = dict[str, object]
_RM_HOSTS = {"rm1": "127.0.0.1", "rm2": "127.0.0.2"}
EXCLUDED = "excluded-nodes"
"""The file with the hosts that the ResourceManager excludes."""

_LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


def node_host(number: int) -> str:
    """Return the loopback address of NodeManager 1, 2, ...: the host of its NodeId."""
    return f"127.0.0.{10 + number}"


def rm_hosts(shape: Shape) -> dict[str, str]:
    """Return the host of each ResourceManager by its id; two use the same ports."""
    return _RM_HOSTS if shape.resourcemanagers > 1 else {"rm": "127.0.0.1"}


def rm_web(rm_id: str, ports: Ports) -> str:
    """Return the address of a ResourceManager's pages. Hadoop's links to them know one loopback address only."""
    return f"127.0.0.1:{ports.rm2_web if rm_id == 'rm2' else ports.rm_web}"


def write(run: Path, shape: Shape, ports: Ports) -> None:
    """Write every file the daemons and clients of this sandbox read."""
    (run / EXCLUDED).touch()
    # With this file Java asks no name server, so the file must have this machine's own name.
    (run / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()}\n")
    sites = {
        "core-site": core(run, shape, ports),
        "hdfs-site": hdfs.site(run, shape, ports),
        "yarn-site": yarn(run, shape, ports),
        "resource-types": resource_types(),
        "capacity-scheduler": capacity_scheduler(),
    }
    if shape.datanodes < 2:
        sites["hdfs-site"] |= hdfs.data_node(run, shape, ports, "dn", "127.0.0.1")
    _write_directory(run / "conf", sites, shape)
    _write_hdfs(run, sites, shape, ports)
    for id_ in rm_hosts(shape) if shape.resourcemanagers > 1 else ():
        named = {**sites["yarn-site"], "yarn.resourcemanager.ha.id": id_}
        _write_directory(run / f"conf-{id_}", {**sites, "yarn-site": named}, shape)
    for number in range(1, shape.nodes + 1):
        node = {**sites["yarn-site"], **node_manager(run, number, ports)}
        _write_directory(run / f"conf-nm{number}", {**sites, "yarn-site": node}, shape)


def _write_hdfs(run: Path, sites: Mapping[str, Site], shape: Shape, ports: Ports) -> None:
    """Write the directories that distinguish two NameNodes or DataNodes."""
    own: dict[str, Site] = {}
    if shape.namenodes > 1:
        own |= {id_: {"dfs.ha.namenode.id": id_} for id_ in hdfs.name_nodes(shape, ports)}
    if shape.datanodes > 1:
        ids = enumerate(hdfs.data_nodes(shape, ports), 1)
        own |= {id_: hdfs.data_node(run, shape, ports, id_, node_host(number)) for number, id_ in ids}
    for id_, site in own.items():
        _write_directory(run / f"conf-{id_}", {**sites, "hdfs-site": {**sites["hdfs-site"], **site}}, shape)


def _write_directory(directory: Path, sites: Mapping[str, Site], shape: Shape) -> None:
    directory.mkdir(exist_ok=True)
    for name, site in sites.items():
        (directory / f"{name}.xml").write_text(to_xml({**site, **shape.properties.get(name, {})}))
    (directory / "log4j.properties").write_text(_LOG4J)


def core(run: Path, shape: Shape, ports: Ports) -> Site:
    return {
        "fs.defaultFS": hdfs.root(shape, ports) if shape.hdfs else "file:///",
        "hadoop.tmp.dir": run / "tmp",
        "hadoop.security.authentication": "simple",
        "hadoop.http.staticuser.user": getpass.getuser(),
        "ipc.client.connect.max.retries": 20,
    }


def yarn(run: Path, shape: Shape, ports: Ports) -> Site:
    rm = "yarn.resourcemanager"
    scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
    store = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
    return {
        **_resource_managers(shape, ports),
        f"{rm}.scheduler.class": scheduler,
        f"{rm}.recovery.enabled": "true",
        f"{rm}.store.class": store,
        f"{rm}.fs.state-store.uri": f"file://{run}/rmstate",
        f"{rm}.work-preserving-recovery.scheduling-wait-ms": 2000,
        f"{rm}.am.max-attempts": 3,
        f"{rm}.placement-constraints.handler": "scheduler",
        # How long a NodeManager waits before it looks for a restarted ResourceManager again; 30 s by default.
        f"{rm}.connect.retry-interval.ms": 2000,
        **_preemption_settings(),
        f"{rm}.nodes.exclude-path": run / EXCLUDED,
        # How often it looks whether a node that is being decommissioned is empty, or its time is over; 20 by default.
        f"{rm}.decommissioning-nodes-watcher.poll-interval-secs": 1,
        "yarn.nm.liveness-monitor.expiry-interval-ms": shape.expiry_s * 1000,
        "yarn.am.liveness-monitor.expiry-interval-ms": 60000,
        "yarn.node-labels.enabled": "true",
        "yarn.node-labels.fs-store.root-dir": f"file://{run}/labels",
        "yarn.node-attribute.fs-store.root-dir": f"file://{run}/attributes",
        "yarn.scheduler.minimum-allocation-mb": 64,
        "yarn.scheduler.maximum-allocation-mb": shape.memory_mib,
        "yarn.scheduler.maximum-allocation-vcores": shape.vcores,
        "yarn.log-aggregation-enable": "true",
        "yarn.acl.enable": "false",
        **_node_defaults(shape),
    }


def _resource_managers(shape: Shape, ports: Ports) -> Site:
    """Return the addresses of the ResourceManagers. Two have ids; which of them is active is set without ZooKeeper."""
    rm, hosts = "yarn.resourcemanager", rm_hosts(shape)
    site: Site = {}
    if len(hosts) > 1:
        site = {
            f"{rm}.ha.enabled": "true",
            f"{rm}.ha.automatic-failover.enabled": "false",
            f"{rm}.ha.rm-ids": ",".join(hosts),
            f"{rm}.cluster-id": "sandbox",
            # How long a NodeManager pauses before it tries the other one.
            "yarn.client.failover-sleep-base-ms": 200,
            "yarn.client.failover-sleep-max-ms": 1000,
        }
    services = ("", "scheduler.", "resource-tracker.", "admin.")
    named = dict(zip(services, (ports.rm, ports.rm_scheduler, ports.rm_tracker, ports.rm_admin), strict=True))
    for id_, host in hosts.items():
        end = f".{id_}" if len(hosts) > 1 else ""
        site[f"{rm}.hostname{end}"] = host
        site |= {f"{rm}.{name}address{end}": f"{host}:{port}" for name, port in named.items()}
        site[f"{rm}.webapp.address{end}"] = rm_web(id_, ports)
    return site


def _preemption_settings() -> Site:
    monitor = "yarn.resourcemanager.monitor.capacity.preemption"
    return {
        "yarn.resourcemanager.scheduler.monitor.enable": "true",
        f"{monitor}.monitoring_interval": 1000,
        f"{monitor}.max_wait_before_kill": 5000,
        f"{monitor}.total_preemption_per_round": "1.0",
        f"{monitor}.natural_termination_factor": "1.0",
    }


def _node_defaults(shape: Shape) -> Site:
    nm = "yarn.nodemanager"
    return {
        f"{nm}.resource.memory-mb": shape.memory_mib,
        f"{nm}.resource.cpu-vcores": shape.vcores,
        # A count without the gpu plugin: the plugin would want nvidia-smi.
        f"{nm}.resource-plugins": "",
        f"{nm}.resource-type.yarn.io/gpu": shape.gpus,
        f"{nm}.pmem-check-enabled": "true",
        # Hadoop's default, true, leaves memory limits to cgroups even where it uses none: nothing would be killed.
        f"{nm}.resource.memory.enforced": "false",
        f"{nm}.vmem-check-enabled": "false",
        f"{nm}.container-monitor.interval-ms": 1000,
        f"{nm}.remote-app-log-dir": "/logs",
        f"{nm}.aux-services": "",
        f"{nm}.disk-health-checker.max-disk-utilization-per-disk-percentage": 99,
    }


def node_manager(run: Path, number: int, ports: Ports) -> Site:
    host = node_host(number)
    return {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.address": f"{host}:{ports.nm}",
        "yarn.nodemanager.localizer.address": f"{host}:{ports.nm_localizer}",
        "yarn.nodemanager.webapp.address": f"{host}:{ports.nm_web}",
        "yarn.nodemanager.collector-service.address": f"{host}:{ports.nm_collector}",
        "yarn.nodemanager.local-dirs": run / f"nm{number}" / "local",
        "yarn.nodemanager.log-dirs": run / f"nm{number}" / "logs",
    }


def resource_types() -> Site:
    gpu = "yarn.resource-types.yarn.io/gpu"
    return {
        "yarn.resource-types": "yarn.io/gpu",
        f"{gpu}.units": "",
        f"{gpu}.minimum-allocation": 0,
        f"{gpu}.maximum-allocation": 16,
    }


def capacity_scheduler() -> Site:
    """Return two queues that may each borrow the other half, with a node label `big` for tests to set."""
    root = "yarn.scheduler.capacity.root"
    dominant = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    site: Site = {
        "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
        "yarn.scheduler.capacity.resource-calculator": dominant,
        f"{root}.queues": "default,prod",
        f"{root}.accessible-node-labels": "*",
        f"{root}.accessible-node-labels.big.capacity": 100,
    }
    for queue in ("default", "prod"):
        site |= {
            f"{root}.{queue}.capacity": 50,
            f"{root}.{queue}.maximum-capacity": 100,
            f"{root}.{queue}.user-limit-factor": 10,
            f"{root}.{queue}.accessible-node-labels": "big",
            f"{root}.{queue}.accessible-node-labels.big.capacity": 50,
        }
    return site
