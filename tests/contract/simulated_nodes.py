"""Simulates thousands of NodeManagers in one asyncio process for a real ResourceManager; containers run nothing.

They register and send heartbeats in the protocol ResourceTracker, and serve ContainerManagement to every client that
proves by SASL that it has the node's token. A container 'runs' for a while and ends with the given exit status. Node i
is 127.1.(i >> 8).(i & 255); one listening socket serves them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from digest_server import DigestServer
from google.protobuf.message import DecodeError, Message

from howdah.api.async_tasks import cancel_all
from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import EngineUnavailable
from howdah.hadoop.rpc import (
    CHALLENGE,
    CONTEXT_CALL,
    INITIATE,
    NEGOTIATE,
    RESPONSE,
    SASL_CALL,
    SUCCESS,
    RpcConnection,
    SimpleLogin,
    frame,
    parse_delimited,
    read_frame,
)

TRACKER = "org.apache.hadoop.yarn.server.api.ResourceTrackerPB"
INVALID_TOKEN = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
YARN_EXCEPTION = "org.apache.hadoop.yarn.exceptions.YarnException"
RUNNING, COMPLETE = 2, 3
STILL_RUNNING, KILLED_BY_MASTER, KILLED_BY_MANAGER = -1000, -105, -106  # ContainerExitStatus
RESYNC = 1
RM_CONNECTIONS = 8

Behaviour = Callable[[pb.ContainerTokenIdentifier, pb.LaunchContext], "tuple[float, int]"]
"""How long a container runs (seconds) and with what status it ends."""


class Refused(Exception):
    """Is sent to the caller as a Java exception of this class."""

    def __init__(self, java_class: str, text: str) -> None:
        super().__init__(text)
        self.java_class = java_class


class Keys:
    """Holds a node's master keys of one kind: the current one and earlier ones, for tokens made before a roll-over."""

    def __init__(self) -> None:
        self.present = pb.MasterKey()
        self._by_id: dict[int, bytes] = {}

    def renew(self, key: pb.MasterKey) -> None:
        if key.key:
            self.present = key
            self._by_id[key.id] = key.key

    def password(self, key_id: int, identifier: bytes) -> bytes | None:
        """Return the ResourceManager's signature of this identifier; None if its key is not known here."""
        key = self._by_id.get(key_id)
        return hmac.new(key, identifier, hashlib.sha1).digest() if key else None


class Node:
    """Simulates one NodeManager towards the ResourceManager."""

    def __init__(self, number: int, port: int, resource: pb.Resource) -> None:
        self.id = pb.NodeId(host=f"127.1.{number >> 8}.{number & 255}", port=port)
        self.resource = resource
        self.container_keys, self.nm_keys = Keys(), Keys()
        self.running: dict[str, tuple[pb.ContainerId, float, int]] = {}
        self.ended: dict[str, pb.ContainerStatus] = {}
        self._response_id = 0

    async def register(self, manager: RpcConnection) -> None:
        request = pb.RegisterNodeRequest(node=self.id, http_port=8042, resource=self.resource, version="3.5.0")
        request.status.CopyFrom(self._status())
        answer = await manager.call("registerNodeManager", request, pb.RegisterNodeResponse)
        if answer.action:
            raise EngineUnavailable(f"the ResourceManager refuses {self.id.host}: {answer.diagnostics}")
        self._response_id = 0
        self._renew(answer)

    async def unregister(self, manager: RpcConnection) -> None:
        """Unregister as a stopped NodeManager does: it is gone at once. The request's only field is the node."""
        await manager.call("unRegisterNodeManager", pb.RegisterNodeRequest(node=self.id), pb.Empty)

    async def beat(self, manager: RpcConnection) -> None:
        self._end_those_due(time.monotonic())
        keys = {"container_key": self.container_keys.present, "nm_key": self.nm_keys.present}
        request = pb.HeartbeatRequest(status=self._status(), **keys)
        answer = await manager.call("nodeHeartbeat", request, pb.HeartbeatResponse)
        self._response_id = answer.response_id
        self._renew(answer)
        for id_ in answer.remove:
            self.ended.pop(records.container_id(id_), None)
        for id_ in answer.cleanup:
            self.end(id_, KILLED_BY_MANAGER, "Container killed by the ResourceManager.")
        if answer.action == RESYNC:
            await self.register(manager)

    def _renew(self, answer: pb.RegisterNodeResponse | pb.HeartbeatResponse) -> None:
        self.container_keys.renew(answer.container_key)
        self.nm_keys.renew(answer.nm_key)

    def _status(self) -> pb.NodeStatus:
        health = pb.NodeHealth(healthy=True, report="", reported_ms=int(time.time() * 1000))
        running = [
            pb.ContainerStatus(id=id_, state=RUNNING, exit_status=STILL_RUNNING) for id_, _, _ in self.running.values()
        ]
        containers = [*running, *self.ended.values()]
        return pb.NodeStatus(node=self.id, response_id=self._response_id, containers=containers, health=health)

    def start(self, id_: pb.ContainerId, runs_s: float, exit_status: int) -> None:
        self.running[records.container_id(id_)] = (id_, time.monotonic() + runs_s, exit_status)

    def end(self, id_: pb.ContainerId, exit_status: int, diagnostics: str = "") -> None:
        """End a running container; nothing happens to any other."""
        name = records.container_id(id_)
        if self.running.pop(name, None):
            status = pb.ContainerStatus(id=id_, state=COMPLETE, exit_status=exit_status, diagnostics=diagnostics)
            self.ended[name] = status

    def _end_those_due(self, now: float) -> None:
        for id_, due, exit_status in list(self.running.values()):
            if now >= due:
                self.end(id_, exit_status)


class SimulatedNodes:
    """Runs `count` nodes, which register when the context is entered and leave when it is left.

    `counts` counts events: `beats`, `logins`, `refused_logins`, `started`, `refused_starts`.
    """

    def __init__(
        self,
        configuration: Configuration,
        count: int,
        behaviour: Behaviour = lambda token, context: (1.0, 0),
        heartbeat_s: float = 1.0,
        resources: dict[str, int] | None = None,
    ) -> None:
        [manager] = configuration.resourcemanagers("resource-tracker")
        self._managers = [
            RpcConnection(manager, TRACKER, SimpleLogin(configuration.user)) for _ in range(RM_CONNECTIONS)
        ]
        self._count, self._heartbeat_s, self.behaviour = count, heartbeat_s, behaviour
        wanted = resources or {records.MEMORY: 65536, records.VCORES: 32, records.GPU: 8}
        self._resource = records.to_resource(wanted)
        self.nodes: dict[str, Node] = {}
        self.counts: Counter[str] = Counter()
        self._serving: set[asyncio.Task[None]] = set()
        self._beating: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> SimulatedNodes:
        # Every 127.1.x.y at once is only to be had as 0.0.0.0; a connection from elsewhere finds no node.
        self._server = await asyncio.start_server(self._serve, "0.0.0.0", 0, backlog=4096)
        port = self._server.sockets[0].getsockname()[1]
        nodes = [Node(256 + number, port, self._resource) for number in range(self._count)]
        self.nodes = {node.id.host: node for node in nodes}
        try:
            await asyncio.gather(*(node.register(self._manager(at)) for at, node in enumerate(nodes)))
        except BaseException:
            await self._close()
            raise
        self._beating = [asyncio.create_task(self._beat(at, node)) for at, node in enumerate(nodes)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        """Stop everything; ignore a ResourceManager that has ended."""
        self._server.close()
        await cancel_all(lambda: [task for task in (*self._beating, *self._serving) if not task.done()])
        leaving = [node.unregister(self._manager(at)) for at, node in enumerate(self.nodes.values())]
        await asyncio.gather(*leaving, return_exceptions=True)
        for manager in self._managers:
            await manager.close()

    def _manager(self, number: int) -> RpcConnection:
        return self._managers[number % RM_CONNECTIONS]

    async def _beat(self, number: int, node: Node) -> None:
        await asyncio.sleep(self._heartbeat_s * number / self._count)  # spread, as a cluster's are
        while True:
            with contextlib.suppress(EngineUnavailable):  # a restarting ResourceManager
                await node.beat(self._manager(number))
                self.counts["beats"] += 1
            await asyncio.sleep(self._heartbeat_s)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        try:
            node = self.nodes.get(writer.get_extra_info("sockname")[0])
            if node:
                await Served(self, node, reader, writer).run()
        except (EOFError, OSError, DecodeError, IndexError):
            pass
        finally:
            self._serving.discard(task)
            writer.close()


class Served:
    """Serves one connection to one node, from its first byte on."""

    def __init__(
        self, nodes: SimulatedNodes, node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._nodes, self._node, self._reader, self._writer = nodes, node, reader, writer
        self._digest = DigestServer(self._password)
        self._token: pb.NmTokenIdentifier | None = None

    async def run(self) -> None:
        preamble = await self._reader.readexactly(7)
        if not preamble.startswith(b"hrpc\x09"):
            return
        while True:
            data = await read_frame(self._reader)
            header, position = parse_delimited(pb.RpcRequestHeader, data)
            try:
                self._handle(header.call_id, data, position)
            except (PermissionError, Refused) as refused:
                fatal = self._token is None
                java_class = getattr(refused, "java_class", INVALID_TOKEN)
                self._reply(header.call_id, status=2 if fatal else 1, error=(java_class, str(refused)))
                if fatal:
                    self._nodes.counts["refused_logins"] += 1
                    return

    def _handle(self, call_id: int, data: bytes, position: int) -> None:
        if call_id == SASL_CALL:
            self._log_in(parse_delimited(pb.Sasl, data, position)[0])
        elif self._token is None:
            raise PermissionError("SIMPLE authentication is not enabled. Available:[TOKEN]")
        elif call_id != CONTEXT_CALL:
            call, position = parse_delimited(pb.RequestHeader, data, position)
            self._reply(call_id, self._call(call.method, data, position))

    def _reply(self, call_id: int, *messages: Message, status: int = 0, error: tuple[str, str] = ("", "")) -> None:
        header = pb.RpcResponseHeader(call_id=call_id & 0xFFFFFFFF, status=status, server_ipc_version=9)
        if status:
            header.exception_class, header.error_message = error
        self._writer.write(frame(header, *messages))

    def _log_in(self, message: pb.Sasl) -> None:
        if message.state == NEGOTIATE:
            auth = pb.SaslAuth(method="TOKEN", mechanism="DIGEST-MD5", protocol="", server_id="default")
            auth.challenge = self._digest.challenge()
            self._reply(SASL_CALL, pb.Sasl(state=NEGOTIATE, auths=[auth]))
        elif message.state in (INITIATE, RESPONSE) and message.token:
            proof = self._digest.verify(message.token)
            self._token = pb.NmTokenIdentifier.FromString(self._digest.identifier)
            self._nodes.counts["logins"] += 1
            self._reply(SASL_CALL, pb.Sasl(state=SUCCESS, token=proof))
        elif message.state == INITIATE:  # it wants the challenge apart from the offer
            self._reply(SASL_CALL, pb.Sasl(state=CHALLENGE, token=self._digest.challenge()))
        else:
            raise PermissionError(f"SASL state {message.state} out of turn")

    def _password(self, identifier: bytes) -> bytes | None:
        token = pb.NmTokenIdentifier.FromString(identifier)
        if token.node != self._node.id:
            raise PermissionError(f"Given NMToken is for {token.node.host}, not for {self._node.id.host}")
        return self._node.nm_keys.password(token.key_id, identifier)

    def _call(self, method: str, data: bytes, position: int) -> Message:
        if method == "startContainers":
            return self._start(parse_delimited(pb.StartRequest, data, position)[0])
        ids = parse_delimited(pb.ContainerIds, data, position)[0].ids
        if method == "stopContainers":
            for id_ in ids:
                self._node.end(id_, KILLED_BY_MASTER, "Container killed by the ApplicationMaster.")
            return pb.StopResponse(stopped=ids)
        if method == "getContainerStatuses":
            found = (self._status(id_) for id_ in ids)
            return pb.StatusesResponse(statuses=[status for status in found if status])
        raise Refused("org.apache.hadoop.ipc.RpcNoSuchMethodException", f"Unknown method {method} called")

    def _status(self, id_: pb.ContainerId) -> pb.ContainerStatus | None:
        name = records.container_id(id_)
        if name in self._node.running:
            return pb.ContainerStatus(id=id_, state=RUNNING, exit_status=STILL_RUNNING)
        return self._node.ended.get(name)

    def _start(self, request: pb.StartRequest) -> pb.StartResponse:
        answer = pb.StartResponse()
        for wanted in request.containers:
            token = pb.ContainerTokenIdentifier.FromString(wanted.token.identifier)
            try:
                self._check(token, wanted.token)
            except Refused as refused:
                self._nodes.counts["refused_starts"] += 1
                exception = pb.SerializedException(message=str(refused), class_name=refused.java_class)
                answer.failed.add(id=token.id, exception=exception)
            else:
                self._node.start(token.id, *self._nodes.behaviour(token, wanted.context))
                self._nodes.counts["started"] += 1
                answer.started.append(token.id)
        return answer

    def _check(self, token: pb.ContainerTokenIdentifier, carried: pb.Token) -> None:
        """Check as ContainerManagerImpl does: signed for this node and the logged-in application, and not too old."""
        assert self._token
        password = self._node.container_keys.password(token.key_id, carried.identifier)
        if password is None or not hmac.compare_digest(password, carried.password):
            raise Refused(INVALID_TOKEN, "Invalid container token used for starting container")
        if token.node_address != f"{self._node.id.host}:{self._node.id.port}":
            raise Refused(YARN_EXCEPTION, f"Unauthorized request to start container: it is for {token.node_address}")
        if token.id.attempt_id.application_id != self._token.attempt_id.application_id:
            raise Refused(YARN_EXCEPTION, "Unauthorized request to start container: NMToken of another application")
        if token.expires_ms < time.time() * 1000:
            raise Refused(YARN_EXCEPTION, "Unauthorized request to start container. This token is expired.")
        if records.container_id(token.id) in self._node.running:
            raise Refused(YARN_EXCEPTION, "Unauthorized request to start container: it runs already")
