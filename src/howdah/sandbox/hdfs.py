"""The sandbox's HDFS: one NameNode or two that share their edits in a folder, one DataNode or two.

Of two NameNodes one serves; which one is said by hand, as an administrator does, without ZooKeeper.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from howdah.sandbox.conf import Ports, Shape

SERVICE = "sandbox"
"""The name service of two NameNodes: `hdfs://sandbox`."""
_PROXY = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_LOCAL = "127.0.0.1"


def name_nodes(shape: Shape, ports: Ports) -> dict[str, tuple[str, str]]:
    """Each NameNode's id, and where it serves and has its pages."""
    if shape.namenodes < 2:
        return {"nn": (f"{_LOCAL}:{ports.namenode}", f"{_LOCAL}:{ports.namenode_web}")}
    return {
        "nn1": (f"{_LOCAL}:{ports.namenode}", f"{_LOCAL}:{ports.namenode_web}"),
        "nn2": (f"{_LOCAL}:{ports.namenode2}", f"{_LOCAL}:{ports.namenode2_web}"),
    }


def data_nodes(shape: Shape, ports: Ports) -> dict[str, tuple[str, str, str]]:
    """Each DataNode's id, and where it takes data, has its pages and is administered.

    All are on one address: a NameNode takes a DataNode's to be the one that it is called from.
    """
    if shape.datanodes < 2:
        return {"dn": _at(ports.datanode, ports.datanode_web, ports.datanode_ipc)}
    return {
        "dn1": _at(ports.datanode, ports.datanode_web, ports.datanode_ipc),
        "dn2": _at(ports.datanode2, ports.datanode2_web, ports.datanode2_ipc),
    }


def _at(data: int, web: int, ipc: int) -> tuple[str, str, str]:
    return f"{_LOCAL}:{data}", f"{_LOCAL}:{web}", f"{_LOCAL}:{ipc}"


def root(shape: Shape, ports: Ports) -> str:
    """The URI of the whole file system."""
    return f"hdfs://{SERVICE}" if shape.namenodes > 1 else f"hdfs://{_LOCAL}:{ports.namenode}"


def site(run: Path, shape: Shape, ports: Ports) -> dict[str, object]:
    """What clients and every daemon know."""
    return {
        "dfs.replication": shape.datanodes,
        "dfs.blocksize": 16 << 20,
        "dfs.namenode.fs-limits.min-block-size": 1 << 20,
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        **_name_nodes(run, shape, ports),
    }


def _name_nodes(run: Path, shape: Shape, ports: Ports) -> dict[str, object]:
    if shape.namenodes < 2:
        return {
            "dfs.namenode.name.dir": f"file://{run}/dfs/name",
            "dfs.namenode.http-address": f"{_LOCAL}:{ports.namenode_web}",
        }
    found: dict[str, object] = {
        "dfs.nameservices": SERVICE,
        f"dfs.ha.namenodes.{SERVICE}": ",".join(name_nodes(shape, ports)),
        f"dfs.client.failover.proxy.provider.{SERVICE}": _PROXY,
        "dfs.ha.automatic-failover.enabled": "false",
        "dfs.namenode.shared.edits.dir": f"file://{run}/dfs/shared",
    }
    for id_, (address, web) in name_nodes(shape, ports).items():
        found[f"dfs.namenode.rpc-address.{SERVICE}.{id_}"] = address
        found[f"dfs.namenode.http-address.{SERVICE}.{id_}"] = web
        found[f"dfs.namenode.name.dir.{SERVICE}.{id_}"] = f"file://{name_dir(run, id_)}"
    return found


def name_dir(run: Path, id_: str) -> Path:
    """Where a NameNode keeps its image."""
    return run / "dfs" / ("name" if id_ == "nn" else f"name-{id_}")


def name_node(id_: str) -> dict[str, object]:
    """What one of two NameNodes knows beyond that."""
    return {"dfs.ha.namenode.id": id_}


def data_node(run: Path, shape: Shape, ports: Ports, id_: str, host: str) -> dict[str, object]:
    """What one DataNode knows beyond that; `host` is the name that it gives itself, a YARN node's."""
    data, web, ipc = data_nodes(shape, ports)[id_]
    return {
        "dfs.datanode.data.dir": f"file://{data_dir(run, id_)}",
        "dfs.datanode.hostname": host,
        "dfs.datanode.address": data,
        "dfs.datanode.http.address": web,
        "dfs.datanode.ipc.address": ipc,
    }


def data_dir(run: Path, id_: str) -> Path:
    """Where a DataNode keeps its blocks."""
    return run / "dfs" / ("data" if id_ == "dn" else f"data-{id_}")
