"""ContainerManagementProtocol: starts and stops containers on their nodes.

A node's token comes once per attempt, with the first container granted there, and is kept. Each call makes a connection
of its own; otherwise a gang on a thousand nodes would hold a thousand connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from google.protobuf.message import Message

from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.hadoop.rpc import Address, M, RpcConnection
from howdah.wire.credentials import Token

PROTOCOL = "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB"
CALLS_AT_ONCE = 64
"""Calls to NodeManagers at once: more would only fill the master's memory with connections."""
NOT_READY_RETRIES = 10


class NodeManagers:
    """The nodes of which this master has tokens. Methods raise EngineUnavailable (no answer) and EngineRejected
    (refused)."""

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, int], Token] = {}
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    def remember(self, tokens: Iterable[pb.NmToken]) -> None:
        """Keep these tokens for later calls."""
        for entry in tokens:
            token = entry.token
            key = (entry.node.host, entry.node.port)
            self._tokens[key] = Token(token.identifier, token.password, token.kind, token.service)

    async def start(self, container: pb.Container, context: pb.LaunchContext) -> None:
        """Start a granted container, at most 10 minutes after the grant (its token expires)."""
        request = pb.StartRequest(containers=[pb.StartContainer(context=context, token=container.token)])
        for _ in range(NOT_READY_RETRIES):
            answer = await self._call(container.node, "startContainers", request, pb.StartResponse)
            if not answer.failed:
                return
            if not answer.failed[0].exception.class_name.endswith("NMNotYetReadyException"):
                break
            await asyncio.sleep(1)  # the node has restarted and not found the ResourceManager yet
        raise EngineRejected(f"node {container.node.host} did not start the container: {_first_line(answer.failed)}")

    async def stop(self, node: pb.NodeId, ids: Iterable[pb.ContainerId]) -> None:
        """Kill these containers; those that have ended are no error."""
        await self._call(node, "stopContainers", pb.ContainerIds(ids=ids), pb.StopResponse)

    async def statuses(self, node: pb.NodeId, ids: Iterable[pb.ContainerId]) -> list[pb.ContainerStatus]:
        """Return the node's statuses of its containers; unknown containers are left out."""
        answer = await self._call(node, "getContainerStatuses", pb.ContainerIds(ids=ids), pb.StatusesResponse)
        return list(answer.statuses)

    async def _call(self, node: pb.NodeId, method: str, request: Message, kind: type[M]) -> M:
        token = self._tokens.get((node.host, node.port))
        if token is None:
            raise EngineUnavailable(f"no token for node {node.host}:{node.port} has come")
        async with self._slots:
            connection = RpcConnection(Address(node.host, node.port, "NodeManager"), PROTOCOL, token)
            try:
                return await connection.call(method, request, kind)
            finally:
                await connection.close()


def _first_line(failed: Sequence[pb.ContainerException]) -> str:
    lines = failed[0].exception.message.strip().splitlines()
    return lines[0] if lines else failed[0].exception.class_name
