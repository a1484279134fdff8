"""ApplicationMasterProtocol: sends requests and receives containers, one `allocate` call at a time.

The ResourceManager may forget a master at any time (a restart, a failover). All facts that it must know are therefore
kept here as the wanted state, not as messages that were sent, and are sent again after a new registration.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from howdah.engines import AttemptOver
from howdah.engines.yarn import records
from howdah.engines.yarn.placement_constraints import message, satisfied_anywhere
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.errors import EngineUnavailable
from howdah.hadoop.constraints import Constraint
from howdah.hadoop.failover import FailoverClient
from howdah.hadoop.rpc import Address, RpcError
from howdah.spec.values import dataclass
from howdah.wire.credentials import Token

PROTOCOL = "org.apache.hadoop.yarn.api.ApplicationMasterProtocolPB"
TOKEN_KIND = "YARN_AM_RM_TOKEN"  # noqa: S105
ANYWHERE = "*"
SILENCE_LIMIT_S = 900.0
"""Hadoop's default for yarn.resourcemanager.connect.max-wait.ms."""
RETRY_S, AGAIN_S = 1.0, 0.1
"""Seconds before a call to a ResourceManager that did not answer is repeated; and seconds before asking again whether
it has confirmed the end of the application."""
_RESYNC, _SHUTDOWN = 1, 2
_GUARANTEED = 1
_ENDED = ("ApplicationAttemptNotFoundException", "InvalidToken")  # the attempt, for YARN


@dataclass(frozen=True)
class ContainerRequest:
    """A request for equal containers. Requests of different sizes need different ids and priorities."""

    id: int
    priority: int
    count: int
    """The number of containers that have not been granted yet."""
    resources: Mapping[str, int]
    node_label: str = ""
    prefer: Mapping[str, int] = field(default_factory=dict)
    """The number of containers that should be on each host."""
    racks: Mapping[str, str] = field(default_factory=dict)
    """The rack of each host: a ResourceManager that grants a container on a host also subtracts it from the host's
    rack, and fails if the request has no such rack."""
    tags: tuple[str, ...] = ()
    """The tags that the containers carry; YARN then takes no `prefer`, and only the request's count may change."""
    constraint: Constraint | None = None
    """Where containers with tags may go."""

    def scheduling_request(self) -> pb.SchedulingRequest:
        """Return a request with tags in the ResourceManager's form."""
        return pb.SchedulingRequest(
            allocation_request_id=self.id,
            priority=pb.Priority(priority=self.priority),
            execution=pb.ExecutionTypeRequest(type=_GUARANTEED, enforce=True),
            tags=self.tags,
            sizing=pb.ResourceSizing(containers=self.count, capability=records.to_resource(self.resources)),
            constraint=message(self.constraint or satisfied_anywhere(self.tags), self.node_label),
        )

    def messages(self) -> list[pb.ResourceRequest]:
        """Return an untagged request in the ResourceManager's form; counts are absolute for its priority and id."""
        on_racks = Counter[str]()
        for host, count in self.prefer.items():
            on_racks[self.racks[host]] += count
        return [
            pb.ResourceRequest(
                priority=pb.Priority(priority=self.priority),
                resource_name=name,
                capability=records.to_resource(self.resources),
                containers=min(count, self.count),
                relax_locality=True,
                node_label=self.node_label,
                execution=pb.ExecutionTypeRequest(type=_GUARANTEED, enforce=True),
                allocation_request_id=self.id,
            )
            for name, count in {**self.prefer, **on_racks, ANYWHERE: self.count}.items()
        ]


class ApplicationMaster:
    """Speaks to the ResourceManager for one attempt of an application.

    Every method raises EngineUnavailable if no ResourceManager answers; the next call then also sends what could not be
    sent. `register` and `finish` have no next call, so they are repeated for `limit_s` seconds.
    """

    def __init__(self, addresses: Sequence[Address], token: Token, limit_s: float = SILENCE_LIMIT_S) -> None:
        self._rm, self._limit_s = FailoverClient(addresses, PROTOCOL, token), limit_s
        self._registration = pb.RegisterRequest()
        self._response_id = 0
        self._requests: dict[int, ContainerRequest] = {}
        self._releases: dict[str, pb.ContainerId] = {}
        self._unsent: set[int | str] = set()  # the ids of requests, the names of released containers
        self._blacklist: set[str] = set()
        self._blacklist_sent: set[str] = set()
        self._renewed = False

    async def register(self, host: str, port: int, tracking_url: str) -> pb.RegisterResponse:
        """Register this master's address; return the containers of an earlier attempt that still run."""
        self._registration = pb.RegisterRequest(host=host, rpc_port=port, tracking_url=tracking_url)
        deadline = asyncio.get_running_loop().time() + self._limit_s
        while True:
            try:
                return await self._register()
            except EngineUnavailable as error:
                await self._pause(deadline, error, RETRY_S)

    async def _pause(self, deadline: float, error: EngineUnavailable, pause: float) -> None:
        if asyncio.get_running_loop().time() > deadline:
            raise EngineUnavailable(f"{error}, for {self._limit_s:g} s now") from error
        await asyncio.sleep(pause)

    async def _register(self) -> pb.RegisterResponse:
        self._response_id, self._unsent, self._blacklist_sent = 0, {*self._requests, *self._releases}, set()
        try:
            return await self._rm.call("registerApplicationMaster", self._registration, pb.RegisterResponse)
        except RpcError as error:
            if error.name in _ENDED:
                raise AttemptOver(f"YARN has ended it ({error.name})") from None
            if "already registered" in error.text:  # the answer to the first request was lost
                return pb.RegisterResponse()
            raise

    @property
    def outstanding(self) -> set[int]:
        """Return the ids of requests for containers that have not been granted."""
        return {request.id for request in self._requests.values() if request.count}

    def missing(self, roles: Mapping[int, str]) -> Counter[str]:
        """Return the number of outstanding containers by role; `roles` has the ids of their requests."""
        found = Counter[str]()
        for request in self._requests.values():
            found[roles[request.id]] += request.count
        return found

    @property
    def manager(self) -> Address:
        """Return the ResourceManager that answered last."""
        return self._rm.current

    def registered_anew(self) -> bool:
        """Return whether this attempt had to register again since the last call."""
        renewed, self._renewed = self._renewed, False
        return renewed

    def request(self, request: ContainerRequest) -> None:
        """Replace the request `request.id`; a count of 0 withdraws it."""
        if request.count or request.id in self._requests:
            self._requests[request.id] = request
            self._unsent.add(request.id)

    def release(self, container_id: pb.ContainerId) -> None:
        """Release a container; its processes are killed."""
        name = records.container_id(container_id)
        self._releases[name] = container_id
        self._unsent.add(name)

    def avoid(self, hosts: Iterable[str]) -> None:
        """Avoid exactly these hosts from now on."""
        self._blacklist = set(hosts)

    async def allocate(self, progress: float = 0.0) -> pb.AllocateResponse:
        """Send a heartbeat: it reports changes and returns news. Containers that are not wanted any more are released.

        Raises:
            AttemptOver: the ResourceManager has ended this attempt, or wants it to end.
            RpcError: it refuses a request.
        """
        sent, self._unsent = self._unsent, set()
        avoided = set(self._blacklist)
        try:
            response = await self._call_allocate(self._allocate_request(progress, sent))
        except BaseException:
            self._unsent |= sent
            raise
        if response is None:
            renewed = await self._register()
            self._renewed = True
            return pb.AllocateResponse(nm_tokens=renewed.nm_tokens, previous=renewed.previous)
        self._blacklist_sent, self._response_id = avoided, response.response_id
        if response.HasField("am_rm_token"):
            new = response.am_rm_token
            await self._rm.log_in(Token(new.identifier, new.password, new.kind, new.service))
        if response.command == _SHUTDOWN:
            raise AttemptOver("the ResourceManager has requested the shutdown of this master")
        self._settle_asks(response)
        return response

    async def _call_allocate(self, request: pb.AllocateRequest) -> pb.AllocateResponse | None:
        """Call allocate; return None if the ResourceManager does not know this master, or no longer."""
        try:
            response = await self._rm.call("allocate", request, pb.AllocateResponse)
        except RpcError as error:
            if error.name in _ENDED:
                raise AttemptOver(f"YARN has ended it ({error.name})") from None
            if error.name != "ApplicationMasterNotRegisteredException":
                raise
            return None
        return None if response.command == _RESYNC else response

    def _allocate_request(self, progress: float, unsent: Collection[int | str]) -> pb.AllocateRequest:
        requests = [request for request in self._requests.values() if request.id in unsent]
        heartbeat = pb.AllocateRequest(
            asks=[message for request in requests if not request.tags for message in request.messages()],
            scheduling_requests=[request.scheduling_request() for request in requests if request.tags],
            releases=[id_ for name, id_ in self._releases.items() if name in unsent],
            response_id=self._response_id,
            progress=progress,
        )
        if self._blacklist != self._blacklist_sent:
            heartbeat.blacklist.add.extend(sorted(self._blacklist - self._blacklist_sent))
            heartbeat.blacklist.remove.extend(sorted(self._blacklist_sent - self._blacklist))
        return heartbeat

    def _settle_asks(self, response: pb.AllocateResponse) -> None:
        """Subtract the granted containers; those beyond what is wanted were granted before the last message arrived."""
        granted = list(response.allocated)
        del response.allocated[:]
        for container in granted:
            request = self._requests.get(container.allocation_request_id)
            if request is None or request.count == 0:
                self.release(container.id)
            else:
                self._requests[request.id] = replace(request, count=request.count - 1)
                response.allocated.append(container)
        for status in response.completed:
            self._releases.pop(records.container_id(status.id), None)
        self._unsent |= {rejected.request.allocation_request_id for rejected in response.rejected} & self.outstanding

    async def finish(self, final_status: int, diagnostics: str) -> None:
        """End the application: 1 succeeded, 2 failed, 3 killed. YARN then kills all its containers."""
        request = pb.FinishRequest(diagnostics=diagnostics, tracking_url="", final_status=final_status)
        deadline = asyncio.get_running_loop().time() + self._limit_s
        unheard = EngineUnavailable("the ResourceManager did not confirm the unregistration")
        asked = False
        while True:
            pause = RETRY_S
            try:
                if (await self._rm.call("finishApplicationMaster", request, pb.FinishResponse)).unregistered:
                    return
                pause = AGAIN_S
            except EngineUnavailable as error:
                unheard = error
            except RpcError as error:
                if error.name in _ENDED and asked:  # the answer to an earlier request was lost
                    return
                if error.name != "ApplicationMasterNotRegisteredException":
                    raise
                try:
                    await self._register()
                except EngineUnavailable as error:
                    unheard = error
                except (AttemptOver, RpcError):
                    if asked:  # an earlier ResourceManager has ended the attempt, so this one does not know it
                        return
                    raise
            asked = True
            await self._pause(deadline, unheard, pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._rm.close()
