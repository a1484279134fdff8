"""The Allocator that runs inside the master's container on YARN.

One heartbeat at a time: quickly while something is outstanding, slower the longer nothing comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Iterable, Iterator

from howdah.engines import Allocator, Launch, MasterContext
from howdah.engines.yarn import conf, exits, records
from howdah.engines.yarn.applicationmaster import TOKEN_KIND, ApplicationMaster, Ask
from howdah.engines.yarn.launch import common_environment, context, literal
from howdah.engines.yarn.nodemanager import NodeManagers
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.refusals import label_of
from howdah.engines.yarn.rpc import RpcError
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError
from howdah.spec import Container, Outcome, State
from howdah.spec.events import Allocated, CancelRequested, ContainerEnded, Event, Noted
from howdah.wire import credentials
from howdah.wire.credentials import Credentials

QUICK_S, SLOW_S, GROWTH = 0.02, 1.0, 1.5
_FINAL_STATUS = {State.SUCCEEDED: 1, State.FAILED: 2, State.CANCELLED: 3}
_BAD_NODE_STATES = (3, 4, 5, 6, 7, 8)


class YarnAllocator(Allocator):
    """Roles are told apart by the allocation request id of their ask: the role's number, from 1."""

    def __init__(self, served: MasterContext, configuration: conf.Configuration, held: Credentials) -> None:
        self._served, self._configuration = served, configuration
        tokens = held.of_kind(TOKEN_KIND)
        if not tokens:
            raise EngineRejected(f"the master's credentials have no {TOKEN_KIND}: is it run by YARN?")
        schedulers = configuration.resourcemanagers("scheduler")
        self._am = ApplicationMaster(schedulers, tokens[0], configuration.silence_limit)
        # Executors read their data as the user does; speaking to the ResourceManager is the master's alone.
        self._tokens = {alias: token for alias, token in held.tokens.items() if token.kind != TOKEN_KIND}
        self._nodes = NodeManagers()
        self._roles = dict(enumerate(served.staged.job.roles, 1))
        self._granted: dict[str, pb.Container] = {}
        self._wake = asyncio.Event()
        self._pause = QUICK_S
        self._silent_since = 0.0
        self._dismissed = False
        self._announced: set[str] = set()
        self._proxies: set[str] = set()

    @classmethod
    async def open(cls, context: MasterContext) -> YarnAllocator:
        """Register with the ResourceManager that YARN's environment and our configuration name."""
        allocator = cls(context, conf.load(os.environ.get("HADOOP_CONF_DIR")), credentials.load())
        answer = await allocator._am.register(context.host, context.port, f"{context.url}/")
        allocator._nodes.remember(answer.nm_tokens)
        for container in answer.previous:  # of an earlier attempt, whose gang is gone
            allocator._am.release(container.id)
        allocator._proxies = await asyncio.to_thread(_addresses, allocator._proxy_hosts())
        return allocator

    def request(self, role: str, count: int) -> None:
        job = self._served.staged.job
        number = next(number for number, name in self._roles.items() if name == role)
        wanted = records.amounts(job.roles[role].resources)
        self._am.ask(Ask(number, number, count, wanted, label_of(job, role)))
        self._hurry()

    def release(self, container_id: str) -> None:
        container = self._granted.get(container_id)
        if container is not None:
            self._am.release(container.id)
            self._hurry()

    def _hurry(self) -> None:
        self._pause = QUICK_S
        self._wake.set()

    async def poll(self) -> list[Event]:
        """A pause, then a heartbeat. An unreachable ResourceManager is noted once and when it is back."""
        await self._rest()
        if self._dismissed:
            return []
        try:
            response = await self._am.allocate()
        except EngineUnavailable as error:
            return self._unavailable(error)
        except RpcError:  # what we ask for is refused, not we
            raise
        except EngineRejected as error:
            self._dismissed = True
            return [CancelRequested(time.time(), f"YARN: {error}")]
        self._nodes.remember(response.nm_tokens)
        events = [*self._back_again(), *self._news(response)]
        if any(isinstance(event, Allocated) for event in events):
            self._pause = QUICK_S
        return events

    async def _rest(self) -> None:
        """Until something is to be said, or the next heartbeat is due."""
        pause = self._pause if self._am.outstanding and not self._dismissed else SLOW_S
        try:
            await asyncio.wait_for(self._wake.wait(), pause)
        except (TimeoutError, asyncio.TimeoutError):
            self._pause = min(self._pause * GROWTH, SLOW_S)
        self._wake.clear()

    def _unavailable(self, error: EngineUnavailable) -> list[Event]:
        now = time.monotonic()
        limit = self._configuration.silence_limit
        if not self._silent_since:
            self._silent_since = now
            return [Noted(time.time(), f"{error}; containers run on, trying again for {limit / 60:g} min")]
        if now - self._silent_since > limit:
            self._dismissed = True
            raise EngineUnavailable(f"no ResourceManager for {now - self._silent_since:.0f} s: {error}")
        return []

    def _back_again(self) -> Iterator[Event]:
        renewed, manager = self._am.registered_anew(), self._am.manager
        if self._silent_since:
            seconds, self._silent_since = time.monotonic() - self._silent_since, 0.0
            yield Noted(time.time(), f"{manager} answers again after {seconds:.0f} s")
        elif renewed:
            yield Noted(time.time(), f"registered anew with {manager}: it was restarted, or took over from another")

    def _news(self, response: pb.AllocateResponse) -> Iterator[Event]:
        now = time.time()
        for container in response.previous:
            if records.container_id(container.id) not in self._granted:
                self._am.release(container.id)
        yield from self._nodes_news(response.nodes, now)
        for container in response.allocated:
            yield self._allocated(container, now)
        for status in response.completed:
            id_ = records.container_id(status.id)
            if self._granted.pop(id_, None):  # YARN tells some twice after a restart
                yield ContainerEnded(now, id_, exits.explain(status.exit_status, status.diagnostics))
        yield from self._preemption(response.preemption, now)

    def _nodes_news(self, nodes: Iterable[pb.NodeReport], now: float) -> Iterator[Event]:
        for node in nodes:
            ours = sum(container.node == node.node for container in self._granted.values())
            if ours and node.state in _BAD_NODE_STATES:
                state = records.name(records.NODE_STATES, node.state)
                yield Noted(now, f"node {node.node.host} with {ours} of our containers is {state} {node.health_report}")

    def _allocated(self, container: pb.Container, now: float) -> Allocated:
        id_, role = records.container_id(container.id), self._roles[container.allocation_request_id]
        self._granted[id_] = container
        log_url = f"http://{container.node_http_address}/node/containerlogs/{id_}/{self._served.staged.user}"
        resources = records.to_resources(container.resource)
        return Allocated(now, Container(id_, container.node.host, role, resources, log_url))

    def _preemption(self, message: pb.Preemption, now: float) -> Iterator[Event]:
        """The contract comes with every heartbeat until the containers go: each is told once."""
        named = [*message.strict.containers, *message.negotiable.containers]
        new = [id_ for id_ in (records.container_id(entry.id) for entry in named) if id_ not in self._announced]
        self._announced.update(new)
        for id_ in new:
            if id_ in self._granted:
                yield Noted(now, f"YARN is about to preempt {id_} on {self._granted[id_].node.host}")

    async def launch(self, container: Container, launch: Launch) -> None:
        granted = self._granted.get(container.id)
        if granted is None:
            raise EngineRejected(f"{container.id} is gone already")
        staged = self._served.staged
        environment = common_environment(staged.runtime, staged.user, self._configuration.secure)
        environment |= {name: literal(value) for name, value in launch.environment.items()}
        environment["HOWDAH_CONTAINER"] = container.id  # by this the executor's sweeper knows what is ours
        secrets = Credentials(self._tokens, dict(launch.secrets))
        files = (*staged.files, *staged.runtime)
        await self._nodes.start(granted, context(files, environment, launch.command, secrets, "executor.stderr"))

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        if not self._dismissed:
            with contextlib.suppress(HowdahError):
                await self._am.allocate(progress)
            await self._am.finish(_FINAL_STATUS[outcome.state], outcome.diagnostics)
        await self._am.close()

    def admits(self, peer: str, proxy_user: str) -> bool:
        """YARN's proxy vouches for a user only to those who know that it is the proxy: by its address.

        Without access control YARN shows everybody everything, and calls whoever has no name its static user.
        """
        users = {self._served.staged.user}
        if not self._configuration.secure and not self._configuration.flag("yarn.acl.enable"):
            users.add(self._configuration.text("hadoop.http.staticuser.user"))
        return peer in self._proxies and proxy_user in users

    def _proxy_hosts(self) -> list[str]:
        """yarn.web-proxy.address, else the ResourceManagers themselves."""
        proxy = self._configuration.text("yarn.web-proxy.address").rpartition(":")[0]
        return [proxy] if proxy else [rm.host for rm in self._configuration.resourcemanagers()]


def _addresses(hosts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for host in hosts:
        try:
            found.update(str(entry[4][0]) for entry in socket.getaddrinfo(host, None))
        except OSError:
            continue
    return found
