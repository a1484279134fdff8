"""The sandbox's HDFS: one NameNode, or two that share their edits in a directory; one DataNode or two.

If there are two NameNodes, one is active. `howdah.sandbox.hadoop_daemons` chooses it, as an administrator does, without
ZooKeeper.
"""

from __future__ import annotations

from pathlib import Path

from howdah.sandbox.shape import Ports, Shape

SERVICE = "sandbox"
"""The name service of two NameNodes: `hdfs://sandbox`."""
_PROXY = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_LOCAL = "127.0.0.1"


def name_nodes(shape: Shape, ports: Ports) -> dict[str, list[str]]:
    """Return the addresses of each NameNode, by id: that of its RPC and that of its pages."""
    found = [[ports.namenode, ports.namenode_web], [ports.namenode2, ports.namenode2_web]]
    return _addresses_by_id("nn", found[: shape.namenodes])


def data_nodes(shape: Shape, ports: Ports) -> dict[str, list[str]]:
    """Return the addresses of each DataNode, by id: for data, for its pages and for its RPC.

    All have one host, because a NameNode identifies a DataNode by the host from which it calls.
    """
    first = [ports.datanode, ports.datanode_web, ports.datanode_ipc]
    return _addresses_by_id(
        "dn", [first, [ports.datanode2, ports.datanode2_web, ports.datanode2_ipc]][: shape.datanodes]
    )


def _addresses_by_id(kind: str, servers: list[list[int]]) -> dict[str, list[str]]:
    """Return addresses by id: `nn` if there is one NameNode, `nn1` and `nn2` if there are two."""
    ids = [kind] if len(servers) == 1 else [f"{kind}{number}" for number in range(1, len(servers) + 1)]
    return {id_: [f"{_LOCAL}:{port}" for port in ports] for id_, ports in zip(ids, servers, strict=True)}


def root(shape: Shape, ports: Ports) -> str:
    """Return the URI of the file system's root."""
    return f"hdfs://{SERVICE}" if shape.namenodes > 1 else f"hdfs://{_LOCAL}:{ports.namenode}"


def site(run: Path, shape: Shape, ports: Ports) -> dict[str, object]:
    """Return the properties that clients and every daemon read."""
    found: dict[str, object] = {
        "dfs.replication": shape.datanodes,
        "dfs.blocksize": 16 << 20,
        "dfs.namenode.fs-limits.min-block-size": 1 << 20,
        "dfs.namenode.safemode.extension": 0,
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
    }
    if shape.namenodes < 2:
        found["dfs.namenode.name.dir"] = f"file://{name_dir(run, 'nn')}"
        found["dfs.namenode.http-address"] = f"{_LOCAL}:{ports.namenode_web}"
        return found
    found |= {
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


def name_dir(run: Path, node_id: str) -> Path:
    """Return where a NameNode keeps its image."""
    return run / "dfs" / ("name" if node_id == "nn" else f"name-{node_id}")


def data_node(run: Path, shape: Shape, ports: Ports, node_id: str, host: str) -> dict[str, object]:
    """Return the properties of one DataNode; `host` is the name that it reports, that of a YARN node."""
    data, web, ipc = data_nodes(shape, ports)[node_id]
    return {
        "dfs.datanode.data.dir": f"file://{run}/dfs/{'data' if node_id == 'dn' else f'data-{node_id}'}",
        "dfs.datanode.hostname": host,
        "dfs.datanode.address": data,
        "dfs.datanode.http.address": web,
        "dfs.datanode.ipc.address": ipc,
    }
