"""Tests that simulated nodes refuse whatever a real NodeManager refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from simulated_nodes import SimulatedNodes

from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration
from howdah.engines.yarn.nm.container_management_protocol import PROTOCOL, NodeManagers
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.rm.application_master_protocol import ApplicationMaster, ContainerRequest
from howdah.errors import EngineRejected
from howdah.hadoop.rpc import Address, RpcConnection, RpcError, SimpleLogin
from howdah.sandbox import Sandbox
from howdah.wire.credentials import Token

SMALL = {records.MEMORY: 256, records.VCORES: 1}
LIMIT_S = 120


def within_limit(work: Coroutine[None, None, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work, LIMIT_S)

    asyncio.run(limited())


def token_of(message: pb.Token) -> Token:
    return Token(message.identifier, message.password, message.kind, message.service)


def context(id_: pb.ApplicationId, **fields: object) -> pb.SubmissionContext:
    defaults = {"name": "simulated", "queue": "default", "max_attempts": 1, "resource": records.to_resource(SMALL)}
    return pb.SubmissionContext(application_id=id_, master=pb.LaunchContext(command=["true"]), **{**defaults, **fields})


@asynccontextmanager
async def unmanaged_master(configuration: Configuration) -> AsyncIterator[ApplicationMaster]:
    """An application whose master is this test: the ResourceManager hands its token to whoever submitted it."""
    async with ResourceManagerClient(configuration) as client:
        id_ = (await client.new_application()).id
        report = await client.submit(context(id_, unmanaged=True))
        while report is None or not report.am_rm_token.identifier:
            await asyncio.sleep(0.05)
            report = await client.report(id_)
        master = ApplicationMaster(configuration.resourcemanagers("scheduler"), token_of(report.am_rm_token))
        try:
            await master.register("127.0.0.1", 0, "")
            yield master
            await master.finish(1, "")
        finally:
            await master.close()


async def collect(
    master: ApplicationMaster, enough: Callable[[], bool], take: Callable[[pb.AllocateResponse], Awaitable[None]]
) -> None:
    """Poll the ResourceManager until `enough`, handing each answer to `take`."""
    while not enough():
        await take(await master.allocate())
        await asyncio.sleep(0.05)


async def granted(master: ApplicationMaster, count: int) -> tuple[list[pb.Container], list[pb.NmToken]]:
    containers: list[pb.Container] = []
    tokens: list[pb.NmToken] = []

    async def keep(answer: pb.AllocateResponse) -> None:
        containers.extend(answer.allocated)
        tokens.extend(answer.nm_tokens)

    master.request(ContainerRequest(1, 1, count, SMALL))
    await collect(master, lambda: len(containers) == count, keep)
    return containers, tokens


def test_every_container_starts_and_its_end_is_reported(resourcemanager: Sandbox, configuration: Configuration) -> None:
    async def run() -> None:
        status = iter(range(40))
        async with (
            SimulatedNodes(configuration, 20, lambda token, launch: (0.5, next(status)), heartbeat_s=0.2) as nodes,
            unmanaged_master(configuration) as master,
        ):
            await asyncio.to_thread(resourcemanager.wait_nodes, 20)
            containers, tokens = await granted(master, 40)
            managers = NodeManagers()
            managers.remember(tokens)
            await asyncio.gather(*(managers.start(one, pb.LaunchContext(command=["true"])) for one in containers))
            ended: dict[str, int] = {}

            async def note(answer: pb.AllocateResponse) -> None:
                ended.update({records.container_id(one.id): one.exit_status for one in answer.completed})

            await collect(master, lambda: len(ended) == 40, note)
            assert sorted(ended.values()) == list(range(40))
            assert nodes.counts["started"] == 40
            assert nodes.counts["refused_logins"] == 0

    within_limit(run())


def test_a_stopped_container_is_reported_as_killed(configuration: Configuration) -> None:
    async def run() -> None:
        async with (
            SimulatedNodes(configuration, 2, lambda token, launch: (3600, 0), heartbeat_s=0.2),
            unmanaged_master(configuration) as master,
        ):
            [container], tokens = await granted(master, 1)
            managers = NodeManagers()
            managers.remember(tokens)
            await managers.start(container, pb.LaunchContext())
            [status] = await managers.statuses(container.node, [container.id])
            assert status.state == 2
            await managers.stop(container.node, [container.id])
            ended: list[int] = []

            async def note(answer: pb.AllocateResponse) -> None:
                ended.extend(one.exit_status for one in answer.completed)

            await collect(master, lambda: bool(ended), note)
            assert ended == [-105]

    within_limit(run())


def test_only_the_nodes_own_token_logs_in(configuration: Configuration) -> None:
    async def attempt(container: pb.Container, login: Token | SimpleLogin) -> None:
        connection = RpcConnection(Address(container.node.host, container.node.port, "NodeManager"), PROTOCOL, login)
        try:
            await connection.call("getContainerStatuses", pb.ContainerIds(ids=[container.id]), pb.StatusesResponse, 10)
        finally:
            await connection.close()

    async def run() -> None:
        async with (
            SimulatedNodes(configuration, 2, heartbeat_s=0.2, resources={**SMALL, records.GPU: 0}) as nodes,
            unmanaged_master(configuration) as master,
        ):
            (here, _), tokens = await granted(master, 2)
            right = next(token_of(entry.token) for entry in tokens if entry.node == here.node)
            other = next(token_of(entry.token) for entry in tokens if entry.node != here.node)
            await attempt(here, right)
            wrong = [replace(right, password=b"guessed"), replace(right, identifier=right.identifier + b"\x20\x7f")]
            for login in [*wrong, other]:
                with pytest.raises(RpcError, match="InvalidToken"):
                    await attempt(here, login)
            with pytest.raises(EngineRejected, match="SIMPLE"):
                await attempt(here, SimpleLogin("root"))
            assert nodes.counts["refused_logins"] == 4
            assert nodes.counts["logins"] == 1

    within_limit(run())


def test_a_forged_container_token_starts_nothing(configuration: Configuration) -> None:
    async def run() -> None:
        async with (
            SimulatedNodes(configuration, 2, heartbeat_s=0.2) as nodes,
            unmanaged_master(configuration) as master,
        ):
            [container], tokens = await granted(master, 1)
            managers = NodeManagers()
            managers.remember(tokens)
            forged = pb.ContainerTokenIdentifier.FromString(container.token.identifier)
            forged.resource.memory = 1 << 20
            container.token.identifier = forged.SerializeToString()
            with pytest.raises(EngineRejected, match="Invalid container token"):
                await managers.start(container, pb.LaunchContext())
            assert nodes.counts["refused_starts"] == 1
            assert nodes.counts["started"] == 0

    within_limit(run())


def test_hadoops_own_client_logs_in_and_starts_a_master(configuration: Configuration) -> None:
    async def run() -> None:
        commands: list[str] = []

        def behave(token: pb.ContainerTokenIdentifier, launch: pb.LaunchContext) -> tuple[float, int]:
            commands.extend(launch.command)
            return 0.2, 3

        async with (
            SimulatedNodes(configuration, 2, behave, heartbeat_s=0.2),
            ResourceManagerClient(configuration) as client,
        ):
            id_ = (await client.new_application()).id
            report = await client.submit(context(id_))
            while records.APPLICATION_STATES[report.state] != "FAILED":
                await asyncio.sleep(0.1)
                report = await client.report(id_)
            assert commands == ["true"]
            assert "exitCode: 3" in report.diagnostics

    within_limit(run())
