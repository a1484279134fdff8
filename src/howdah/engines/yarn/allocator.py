"""The allocator that runs inside the master's container on YARN.

It sends one heartbeat at a time: quickly while it waits for containers, more slowly the longer nothing happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from howdah.engines import (
    GONE,
    NO_PREFERENCES,
    Allocator,
    AttemptOver,
    ContainerPreferences,
    Launch,
    MasterContext,
    PendingReason,
)
from howdah.engines.yarn import conf, exit_codes, images, placement_constraints, records
from howdah.engines.yarn.admission_checks import label_of
from howdah.engines.yarn.diagnostics import attempt_end
from howdah.engines.yarn.nm.container_management_protocol import NodeManagers
from howdah.engines.yarn.nm.launch_context import common_environment, context, literal
from howdah.engines.yarn.preemption_warnings import PreemptionWarnings
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.rm.application_master_protocol import TOKEN_KIND, ApplicationMaster, ContainerRequest
from howdah.errors import EngineRejected, EngineUnavailable, HowdahError
from howdah.hadoop.rpc import RpcError
from howdah.spec import Container, Exit, JobSpec, Outcome, State
from howdah.spec.containers import requested_image, runtime_variables
from howdah.spec.events import Allocated, AllocationLost, ContainerEnded, Event, MasterEnded, Noted
from howdah.spec.message import message
from howdah.wire import credentials
from howdah.wire.clock import since_boot
from howdah.wire.credentials import Credentials
from howdah.wire.launch_messages import OWN_NETWORK
from howdah.wire.messages import ImageCheck

MIN_PAUSE_S, MAX_PAUSE_S, PAUSE_GROWTH = 0.02, 1.0, 1.5
_VCORES = 1  # SchedulerResourceTypes.CPU of yarn_service_protos.proto
"""Seconds between two heartbeats: the shortest, the longest, and the factor by which a pause grows while containers are
awaited and nothing happens."""
_FINAL_STATUS = {State.SUCCEEDED: 1, State.FAILED: 2, State.CANCELLED: 3}


class YarnAllocator(Allocator):
    """Asks YARN for containers. Each role has its own allocation request id, numbered from 1; a granted container is
    matched to its role by this id. If a role's first container has another constraint than the others, it is another
    request of the role, with an id of its own."""

    restarts = True
    runs_images = True

    def __init__(
        self, master_context: MasterContext, configuration: conf.Configuration, held_credentials: Credentials
    ) -> None:
        self._context, self._configuration = master_context, configuration
        tokens = held_credentials.of_kind(TOKEN_KIND)
        if not tokens:
            raise EngineRejected(f"the master's credentials have no {TOKEN_KIND}: is it run by YARN?")
        schedulers = configuration.resourcemanagers("scheduler")
        self._am = ApplicationMaster(schedulers, tokens[0], configuration.silence_limit)
        # Executors read their data as the user does; only the master speaks to the ResourceManager.
        self._executor_tokens = {
            alias: token for alias, token in held_credentials.tokens.items() if token.kind != TOKEN_KIND
        }
        self._node_managers = NodeManagers()
        job = master_context.staged.job
        self._role_of_request = dict(enumerate(job.roles, 1))
        self._request_id_of = {(role, False): number for number, role in self._role_of_request.items()}
        self._resources_of_request: dict[int, Mapping[str, int]] = {}
        self._roles_with_first, _ = placement_constraints.order(job)
        self._role_of_running: dict[str, str] = {}
        self._unsatisfied = placement_constraints.UnsatisfiedConstraints(job)
        self._avoided_hosts: dict[str, frozenset[str]] = {}
        self._racks: dict[str, str] = json.loads(
            master_context.staged.settings.get(placement_constraints.RACKS) or "{}"
        )
        self._granted: dict[str, pb.Container] = {}
        self._previous_containers: dict[str, pb.Container] = {}
        self._heartbeat_now = asyncio.Event()
        self._heartbeat_pause_s = MIN_PAUSE_S
        self._unavailable_since = 0.0
        self._answered_at = since_boot()
        self._headroom: dict[str, int] = {}
        self._counts_vcores = False
        self._attempt_is_over = False
        self._preemption_warnings = PreemptionWarnings(configuration)
        self._proxy_addresses: set[str] = set()
        self._previous_end_task: asyncio.Task[MasterEnded | None] | None = None

    @classmethod
    async def open(cls, context: MasterContext) -> YarnAllocator:
        """Register with the ResourceManager that YARN's environment and the job's configuration name."""
        allocator = cls(context, conf.load(os.environ.get("HADOOP_CONF_DIR")), credentials.load())
        answer = await allocator._am.register(context.host, context.port, f"{context.url}/")
        allocator._node_managers.remember(answer.nm_tokens)
        allocator.queue, allocator._counts_vcores = answer.queue, _VCORES in answer.counted
        previous = {records.container_id(container.id): container for container in answer.previous}
        allocator._previous_containers = previous
        allocator.attempt = records.attempt_of(os.environ.get("CONTAINER_ID", ""))
        if allocator.attempt > 1 and not allocator._configuration.secure:  # with Kerberos a master is no client
            allocator._previous_end_task = asyncio.create_task(allocator._fetch_previous_attempt_end())
        allocator._proxy_addresses = await asyncio.to_thread(_resolve_addresses, allocator._proxy_hosts())
        return allocator

    async def _fetch_previous_attempt_end(self) -> MasterEnded | None:
        """Ask the ResourceManager how the earlier attempt ended: the log says at most that it was ordered to end."""
        application_id, previous_attempt = records.parse_application_id(self._context.job_id), self.attempt - 1
        try:
            async with ResourceManagerClient(self._configuration, limit_s=0.0) as rm:
                ended = attempt_end(await rm.attempt_diagnostics(application_id, previous_attempt))
        except HowdahError:
            return None
        return MasterEnded(time.time(), previous_attempt, ended) if ended else None

    async def adopt(self, containers: Collection[Container]) -> Mapping[str, Exit]:
        """Take over containers; the first heartbeat reports how containers ended while there was no master."""
        known = {container.id: container.role for container in containers}
        for id_, container in self._previous_containers.items():
            if id_ in known:
                self._granted[id_], self._role_of_running[id_] = container, known[id_]
            else:
                self._am.release(container.id)
        ends = {id_: Exit("withdrawn", detail=GONE) for id_ in known.keys() - self._granted.keys()}
        if ends:
            with contextlib.suppress(EngineUnavailable):
                response = await self._am.allocate()
                self._node_managers.remember(response.nm_tokens)
                for status in response.completed:
                    id_ = records.container_id(status.id)
                    if id_ in known:  # maybe one that still ran when this master registered
                        ends[id_] = exit_codes.exit_without_master(status.exit_status, status.diagnostics)
                        self._granted.pop(id_, None), self._role_of_running.pop(id_, None)
        return ends

    def may_be_replaced(self) -> bool:
        return self.silent_s() > self._configuration.expiry

    def silent_s(self) -> float:
        return since_boot() - self._answered_at

    def signalled(self, signal: str) -> Event:
        """Return that the allocation is lost. NodeManagers end containers by this signal for every reason; if the
        job is to end, the ResourceManager says so to clients."""
        left = self._configuration.number("yarn.nodemanager.sleep-delay-before-sigkill.ms", 250) / 1000
        return AllocationLost(time.time(), message("signal {name}", name=signal), within_s=left)

    def request(self, role: str, count: int, preferences: ContainerPreferences = NO_PREFERENCES) -> None:
        job = self._context.staged.job
        wanted = records.amounts(preferences.resources_for(job.roles[role]))
        prefer = {host: count for host, count in preferences.prefer.items() if host in self._racks}
        tags, constraint = placement_constraints.tags_of(job, role), placement_constraints.constraint_of(job, role)
        request = ContainerRequest(0, 0, count, wanted, label_of(job, role), prefer, self._racks, tags, constraint)
        if role in self._roles_with_first:
            roles = self._role_of_running.values()
            running = {tag for name in roles for tag in placement_constraints.tags_of(job, name)}
            first = 0 if running & {*request.tags} else min(1, count)  # others can be placed near a tag that runs
            ahead = placement_constraints.constraint_of_first(request.constraint, request.tags)
            self._request(role, replace(request, count=first, constraint=ahead), is_first=True)
            request = replace(request, count=count - first)
        self._request(role, request)
        self._avoided_hosts[role] = frozenset(preferences.avoid)
        self._heartbeat_soon()

    def _hosts_avoided_by_all(self) -> frozenset[str]:
        """Return the hosts that every role with outstanding requests avoids. YARN excludes hosts from an application,
        not from a role; the master releases a container on a host that its role avoids."""
        roles = {self._role_of_request[number] for number in self._am.outstanding}
        avoided = [self._avoided_hosts.get(role, frozenset()) for role in roles]
        return frozenset.intersection(*avoided) if avoided else frozenset()

    def _request(self, role: str, request: ContainerRequest, is_first: bool = False) -> None:
        """Send a request under the role's number, or under a number of its own for the role's first container. A
        request of another size gets a new number, and the earlier request is withdrawn."""
        key = (role, is_first)
        request_id = self._request_id_of.setdefault(key, max(self._role_of_request) + 1)
        self._role_of_request[request_id] = role
        before = self._resources_of_request.setdefault(request_id, request.resources)
        if before != request.resources:
            self._am.request(replace(request, id=request_id, priority=request_id, count=0, resources=before))
            request_id = self._request_id_of[key] = max(self._role_of_request) + 1
            self._role_of_request[request_id], self._resources_of_request[request_id] = role, request.resources
        self._am.request(replace(request, id=request_id, priority=request_id))

    def release(self, container_id: str, cause: str = "") -> None:
        container = self._granted.get(container_id)
        if container is not None:
            self._role_of_running.pop(container_id, None)
            self._am.release(container.id)
            self._heartbeat_soon()

    def _heartbeat_soon(self) -> None:
        self._heartbeat_pause_s = MIN_PAUSE_S
        self._heartbeat_now.set()

    async def pending_reasons(self, job: JobSpec, missing: Mapping[str, int]) -> list[PendingReason]:
        from howdah.engines.yarn.pending_reasons import pending_reasons, reasons_from_headroom

        if self._configuration.secure:  # with Kerberos a master is no client
            return reasons_from_headroom(self._headroom, self._context.job_id, job, missing)
        async with ResourceManagerClient(self._configuration, limit_s=0.0) as rm:
            report = await rm.report(records.parse_application_id(self._context.job_id))
            return [] if report is None else await pending_reasons(rm, self._configuration, report, job, missing)

    async def poll(self) -> list[Event]:
        """Pause, then send a heartbeat. An unreachable ResourceManager is noted once, and again when it is back."""
        await self._wait_for_next_heartbeat()
        if self._attempt_is_over:
            return []
        self._am.avoid(self._hosts_avoided_by_all())
        asked = since_boot()
        try:
            response = await self._am.allocate(self.progress)
        except EngineUnavailable as error:
            return self._on_unavailable(error)
        except RpcError as error:  # the request is refused, not this master
            if placement_constraints.says_disabled(error.text):
                raise EngineRejected(placement_constraints.DISABLED) from None
            raise
        except AttemptOver as error:
            self._attempt_is_over = True
            return [AllocationLost(time.time(), str(error))]
        self._answered_at = asked
        if response.HasField("headroom"):
            self._headroom = records.from_resource(response.headroom)
            if not self._counts_vcores:
                self._headroom.pop(records.VCORES)
        self._node_managers.remember(response.nm_tokens)
        events = [*self._reconnected_notes(), *self._previous_attempt_end_events(), *self._events_of_response(response)]
        if any(isinstance(event, Allocated) for event in events):
            self._heartbeat_pause_s = MIN_PAUSE_S
        return events

    async def _wait_for_next_heartbeat(self) -> None:
        """Wait until there is something to send, or the next heartbeat is due."""
        is_waiting = self._am.outstanding and not self._attempt_is_over
        pause = self._heartbeat_pause_s if is_waiting else MAX_PAUSE_S
        try:
            await asyncio.wait_for(self._heartbeat_now.wait(), pause)
        except (TimeoutError, asyncio.TimeoutError):
            self._heartbeat_pause_s = min(self._heartbeat_pause_s * PAUSE_GROWTH, MAX_PAUSE_S)
        self._heartbeat_now.clear()

    def _on_unavailable(self, error: EngineUnavailable) -> list[Event]:
        now = time.monotonic()
        limit = self._configuration.silence_limit
        if not self._unavailable_since:
            self._unavailable_since = now
            template = "{reason}; containers run on, trying again for {minutes} min"
            return [Noted(time.time(), message(template, reason=str(error), minutes=f"{limit / 60:g}"))]
        if now - self._unavailable_since > limit:
            self._attempt_is_over = True
            raise EngineUnavailable(f"no ResourceManager for {now - self._unavailable_since:.0f} s: {error}")
        return []

    def _previous_attempt_end_events(self) -> Iterator[Event]:
        if self._previous_end_task is not None and self._previous_end_task.done():
            answer, self._previous_end_task = self._previous_end_task.result(), None
            if answer is not None:
                yield replace(answer, time=time.time())

    def _reconnected_notes(self) -> Iterator[Event]:
        renewed, manager = self._am.registered_anew(), self._am.manager
        if self._unavailable_since:
            seconds, self._unavailable_since = time.monotonic() - self._unavailable_since, 0.0
            template = "{manager} answers again after {seconds} s"
            yield Noted(time.time(), message(template, manager=manager, seconds=f"{seconds:.0f}"))
        elif renewed:
            template = "registered anew with {manager}: it was restarted, or took over from another"
            yield Noted(time.time(), message(template, manager=manager))

    def _events_of_response(self, response: pb.AllocateResponse) -> Iterator[Event]:
        now = time.time()
        for container in response.previous:
            if records.container_id(container.id) not in self._granted:
                self._am.release(container.id)
        yield from self._preemption_warnings.new_events(response, self._granted, now)
        for container in response.allocated:
            yield self._record_allocation(container, now)
        for status in response.completed:
            id_ = records.container_id(status.id)
            role, granted = self._role_of_running.pop(id_, ""), self._granted.pop(id_, None)
            if granted:  # after a restart YARN reports some ends twice
                asked = runtime_variables(self._context.staged.job, role) if role else {}
                refused = exit_codes.refused_image(status.exit_status, status.diagnostics, asked, granted.node.host)
                yield ContainerEnded(now, id_, refused or exit_codes.explain(status.exit_status, status.diagnostics))
        rejected = {entry.request.allocation_request_id: entry.reason for entry in response.rejected}
        roles = self._role_of_request
        reasons = {roles[number]: reason for number, reason in rejected.items() if number in roles}
        yield from self._unsatisfied.new_notes(self._am.missing(roles), reasons, now)

    def _record_allocation(self, container: pb.Container, now: float) -> Allocated:
        id_, role = records.container_id(container.id), self._role_of_request[container.allocation_request_id]
        self._granted[id_], self._role_of_running[id_] = container, role
        log_url = f"http://{container.node_http_address}/node/containerlogs/{id_}/{self._context.staged.user}"
        resources = records.to_resources(container.resource)
        return Allocated(now, Container(id_, container.node.host, role, resources, log_url))

    async def launch(self, container: Container, launch: Launch) -> None:
        granted = self._granted.get(container.id)
        if granted is None:
            raise EngineRejected(f"{container.id} is gone already")
        staged = self._context.staged
        environment = common_environment(staged.runtime, staged.user, self._configuration.secure)
        # Where the cluster assigns GPUs, those that a container without GPUs sees belong to other containers.
        if records.from_resource(granted.resource).get(records.GPU) == 0:
            environment["CUDA_VISIBLE_DEVICES"] = ""
        variables = {**launch.environment, **runtime_variables(staged.job, container.role)}
        environment |= {name: literal(value) for name, value in variables.items()}
        if requested_image(variables):
            environment[OWN_NETWORK] = "1"
        environment["HOWDAH_CONTAINER"] = container.id  # marks the processes that are killed with the executor
        secrets = Credentials(self._executor_tokens, dict(launch.secrets))
        files = (*(staged.files if launch.files is None else launch.files), *staged.runtime)
        start = context(files, environment, launch.command, secrets, "executor.stderr")
        await self._node_managers.start(granted, start)

    @staticmethod
    def image_check(job: JobSpec, role: str, host: str) -> ImageCheck:
        return images.nodemanager_check(runtime_variables(job, role), host)

    async def unregister(self, outcome: Outcome, progress: float = 1.0) -> None:
        if not self._attempt_is_over:
            with contextlib.suppress(HowdahError):
                await self._am.allocate(progress)
            await self._am.finish(_FINAL_STATUS[outcome.state], outcome.diagnostics)
        await self._am.close()

    def trusts_proxy_request(self, peer: str, proxy_user: str) -> bool:
        """Return whether the request comes from YARN's proxy, known by its address; only the proxy can vouch for a
        user.

        Without access control YARN shows everything to every caller, and calls a caller without a name its static user.
        """
        users = {self._context.staged.user}
        if not self._configuration.secure and not self._configuration.flag("yarn.acl.enable"):
            users.add(self._configuration.text("hadoop.http.staticuser.user"))
        return peer in self._proxy_addresses and proxy_user in users

    def _proxy_hosts(self) -> list[str]:
        """Return yarn.web-proxy.address, else the ResourceManagers' own hosts."""
        proxy = self._configuration.text("yarn.web-proxy.address").rpartition(":")[0]
        return [proxy] if proxy else [rm.host for rm in self._configuration.resourcemanagers()]


def _resolve_addresses(hosts: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for host in hosts:
        try:
            found.update(str(entry[4][0]) for entry in socket.getaddrinfo(host, None))
        except OSError:
            continue
    return found
