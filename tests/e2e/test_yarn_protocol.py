"""Tests Hadoop's protocols with a real Hadoop: logins, queues, tokens, moves, large logs."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from unmanaged import unmanaged

from howdah.engines import AttemptOver
from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration, load
from howdah.engines.yarn.logs import aggregated
from howdah.engines.yarn.nm.container_management_protocol import NodeManagers
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.rm.application_master_protocol import ApplicationMaster, ContainerRequest
from howdah.errors import EngineRejected, EngineUnavailable
from howdah.hadoop.rpc import RpcError
from howdah.sandbox import Sandbox
from howdah.storage.factory import filesystem

T = TypeVar("T")
FAILED, KILLED, FINISHED = 7, 8, 6


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 120))


@pytest.fixture
def cluster(sandbox: Sandbox) -> Configuration:
    return load(str(sandbox.conf_dir))


async def submit(rm: ResourceManagerClient, command: str, queue: str = "default") -> pb.ApplicationId:
    """An application whose master is a shell line."""
    context = pb.SubmissionContext(
        application_id=(await rm.new_application()).id,
        name="protocol",
        queue=queue,
        type="HOWDAH-TEST",
        tags=["tagged"],
        master=pb.LaunchContext(command=[f"{command} 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"]),
        max_attempts=1,
        resource=records.to_resource({records.MEMORY: 128, records.VCORES: 1}),
    )
    await rm.submit(context)
    return context.application_id


async def until(rm: ResourceManagerClient, id_: pb.ApplicationId, *states: int) -> pb.ApplicationReport:
    while (report := await rm.report(id_)) is None or report.state not in states:
        await asyncio.sleep(0.1)
    return report


def test_the_cluster_is_seen(cluster: Configuration) -> None:
    async def look() -> None:
        async with ResourceManagerClient(cluster) as rm:
            nodes = await rm.nodes()
            assert len(nodes) == 3
            assert all(records.from_resource(node.capability)[records.GPU] == 4 for node in nodes)
            assert await rm.submittable_queues() == ["default", "prod"]
            assert await rm.queue("nosuch") is None
            assert await rm.report(pb.ApplicationId(cluster_timestamp=1, id=1)) is None
            assert (await rm.new_application()).maximum.memory == 8192

    run(look())


def test_an_unknown_queue_is_refused_at_submission(cluster: Configuration) -> None:
    async def refused() -> None:
        async with ResourceManagerClient(cluster) as rm:
            await submit(rm, "true", "nosuch")

    with pytest.raises(EngineRejected, match="unknown queue: nosuch"):
        run(refused())


def test_kill_and_list(cluster: Configuration) -> None:
    async def whole() -> None:
        async with ResourceManagerClient(cluster) as rm:
            id_ = await submit(rm, "sleep 600")
            listed = await rm.reports(types=["HOWDAH-TEST"], users=[cluster.user], tags=["tagged"])
            assert id_ in [found.id for found in listed]
            assert await rm.reports(types=["NO-SUCH-TYPE"]) == []
            await rm.kill(id_, "enough")
            assert (await until(rm, id_, KILLED)).diagnostics.strip().endswith("enough")
            await rm.kill(id_)
            await rm.kill(pb.ApplicationId(cluster_timestamp=1, id=1))

    run(whole())


def test_wrong_tokens_are_refused(cluster: Configuration) -> None:
    async def wrong() -> None:
        _, token = await unmanaged(cluster)
        forged = dataclasses.replace(token, password=bytes(20))
        schedulers = cluster.resourcemanagers("scheduler")
        with pytest.raises(RpcError, match="SaslException"):
            await ApplicationMaster(schedulers, forged).register("h", 1, "")
        am, nodes = ApplicationMaster(schedulers, token), NodeManagers()
        await am.register("h", 1, "")
        container = await granted(am, nodes)
        nodes._tokens = {key: dataclasses.replace(held, password=bytes(20)) for key, held in nodes._tokens.items()}
        with pytest.raises(RpcError, match="SaslException"):
            await nodes.start(container, pb.LaunchContext(command=["true"]))
        with pytest.raises(EngineUnavailable, match="no token for node"):
            await NodeManagers().statuses(container.node, [container.id])
        await am.finish(1, "")
        await am.close()

    run(wrong())


async def granted(am: ApplicationMaster, nodes: NodeManagers) -> pb.Container:
    am.request(ContainerRequest(1, 1, 1, {records.MEMORY: 128, records.VCORES: 1}))
    while True:
        answer = await am.allocate()
        nodes.remember(answer.nm_tokens)
        if answer.allocated:
            return answer.allocated[0]
        await asyncio.sleep(0.05)


def test_start_status_stop_and_expiry_of_an_attempt(cluster: Configuration) -> None:
    async def whole() -> None:
        id_, token = await unmanaged(cluster)
        am, nodes = ApplicationMaster(cluster.resourcemanagers("scheduler"), token), NodeManagers()
        await am.register("h", 1, "http://h:1/")
        container = await granted(am, nodes)
        await nodes.start(container, pb.LaunchContext(command=["exec sleep 600"]))
        assert [status.state for status in await nodes.statuses(container.node, [container.id])] == [2]
        with pytest.raises(EngineRejected, match="did not start the container"):
            await nodes.start(container, pb.LaunchContext(command=["exec sleep 600"]))
        await nodes.stop(container.node, [container.id])
        completed: list[pb.ContainerStatus] = []
        while not completed:
            completed += (await am.allocate(0.5)).completed
            await asyncio.sleep(0.1)
        assert completed[0].exit_status in (-105, 143, 137)
        async with ResourceManagerClient(cluster) as rm:
            report = await rm.report(id_)
            assert report is not None
            assert (report.original_tracking_url, report.progress) == ("http://h:1/", 0.5)
            await rm.kill(id_)
            with pytest.raises(AttemptOver, match="YARN has ended it"):
                await until_refused(am)
        await am.close()

    run(whole())


async def until_refused(am: ApplicationMaster) -> None:
    while True:
        await am.allocate()
        await asyncio.sleep(0.05)


def test_an_unknown_label_is_refused(cluster: Configuration) -> None:
    async def whole() -> None:
        _, token = await unmanaged(cluster)
        am = ApplicationMaster(cluster.resourcemanagers("scheduler"), token)
        await am.register("h", 1, "")
        am.request(ContainerRequest(1, 1, 1, {records.MEMORY: 128, records.VCORES: 1}, "nosuch"))
        with pytest.raises(RpcError, match="InvalidLabelResourceRequestException"):
            await am.allocate()
        am.request(ContainerRequest(1, 1, 0, {records.MEMORY: 128, records.VCORES: 1}))
        await am.finish(1, "")
        await am.close()

    run(whole())


def test_a_large_log_is_read_whole(cluster: Configuration) -> None:
    lines = 400_000

    async def whole() -> pb.ApplicationReport:
        async with ResourceManagerClient(cluster) as rm:
            id_ = await submit(rm, f"seq -f 'line %012.0f of many' {lines}")
            report = await until(rm, id_, FAILED)  # it did not register
            while report.log_aggregation not in (4, 5, 6):
                await asyncio.sleep(0.2)
                report = await until(rm, id_, FAILED)
            return report

    report = run(whole())
    expected = hashlib.sha256(b"".join(b"line %012d of many\n" % number for number in range(1, lines + 1))).hexdigest()
    files = filesystem(cluster.text("fs.defaultFS"), cluster.directory)
    digest, largest, begun = hashlib.sha256(), 0, time.monotonic()
    for _, name, piece in aggregated.read(files, cluster, records.application_id(report.id), report.user):
        if name == "stdout":
            digest.update(piece)
            largest = max(largest, len(piece))
    assert digest.hexdigest() == expected
    assert largest <= 1 << 16
    assert time.monotonic() - begun < 60
