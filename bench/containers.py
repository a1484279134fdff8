"""Measures containers started a second, with a real ResourceManager and simulated nodes that check every token.

The nodes run in a process of their own; the clock goes from the ask to the last start. Beside it the ResourceManager's
own share: the time in which it grants them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bench.report import Report
from bench.temp_home import temp_home
from howdah.engines.yarn import records
from howdah.engines.yarn.conf import Configuration, load
from howdah.engines.yarn.nm.container_management_protocol import NodeManagers
from howdah.engines.yarn.proto import hadoop_pb2 as pb
from howdah.engines.yarn.rm.application_client_protocol import ResourceManagerClient
from howdah.engines.yarn.rm.application_master_protocol import ApplicationMaster, ContainerRequest
from howdah.sandbox import Sandbox
from howdah.wire.credentials import Token

NODES, CONTAINERS, ROUNDS, A_SECOND = 200, 4000, 3, 2000.0
SMALL = {records.MEMORY: 256, records.VCORES: 1}
LIMIT_S = 120.0


def measure(report: Report) -> None:
    """Measure gangs of thousands, one after the other."""
    with temp_home(), Sandbox(nodes=0) as sandbox:
        os.environ["HADOOP_CONF_DIR"] = str(sandbox.conf_dir)
        with _nodes(sandbox):
            sandbox.wait_nodes(NODES)
            found = [asyncio.run(asyncio.wait_for(_gang(load(str(sandbox.conf_dir))), LIMIT_S)) for _ in range(ROUNDS)]
    report.figure(
        f"{CONTAINERS} containers on {NODES} nodes: granted a second", [granted for granted, _ in found], "/s"
    )
    rate = report.figure("started a second, from the first grant", [started for _, started in found], "/s")
    report.target("containers started a second", rate, A_SECOND, "/s", at_least=True)


@contextlib.contextmanager
def _nodes(sandbox: Sandbox) -> Iterator[None]:
    contract = Path(__file__).parents[1] / "tests" / "contract"
    program = (
        "import asyncio, sys\n"
        f"sys.path.insert(0, {str(contract)!r})\n"
        "from simulated_nodes import SimulatedNodes\n"
        "from howdah.engines.yarn.conf import load\n"
        "async def main():\n"
        f"    async with SimulatedNodes(load({str(sandbox.conf_dir)!r}), {NODES}, lambda t, l: (3600, 0)):\n"
        "        await asyncio.sleep(3600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            yield
        finally:
            process.terminate()


@contextlib.asynccontextmanager
async def _master(configuration: Configuration) -> AsyncIterator[ApplicationMaster]:
    """Register an application whose master is this process."""
    async with ResourceManagerClient(configuration) as client:
        id_ = (await client.new_application()).id
        launch = pb.LaunchContext(command=["true"])
        fields = {"name": "gang", "queue": "default", "max_attempts": 1, "resource": records.to_resource(SMALL)}
        report = await client.submit(
            pb.SubmissionContext(application_id=id_, master=launch, unmanaged=True, **fields)  # type: ignore[arg-type]
        )
        while report is None or not report.am_rm_token.identifier:
            await asyncio.sleep(0.05)
            report = await client.report(id_)
        token = report.am_rm_token
        known = Token(token.identifier, token.password, token.kind, token.service)
        master = ApplicationMaster(configuration.resourcemanagers("scheduler"), known)
        try:
            await master.register("127.0.0.1", 0, "")
            yield master
            await master.finish(1, "")
        finally:
            await master.close()


async def _gang(configuration: Configuration) -> tuple[float, float]:
    """Measure containers granted and started a second."""
    managers, starts = NodeManagers(), list[asyncio.Task[None]]()
    async with _master(configuration) as master:
        master.request(ContainerRequest(1, 1, CONTAINERS, SMALL))
        first = granted = 0.0
        while len(starts) < CONTAINERS:
            answer = await master.allocate()
            managers.remember(answer.nm_tokens)
            if answer.allocated and not first:
                first = time.monotonic()
            launch = pb.LaunchContext(command=["true"])
            starts += [asyncio.create_task(managers.start(one, launch)) for one in answer.allocated]
            granted = time.monotonic()
            await asyncio.sleep(0.02)
        await asyncio.gather(*starts)
        started = time.monotonic()
    return CONTAINERS / (granted - first), CONTAINERS / (started - first)
